"""The machines that are expected to have measured, and the summary of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from helpers import comment_samples as samples
from helpers.github_calls import SHA, Call, Called, comment
from helpers.github_server import State
from machmeter.github import summary

RUNNERS = """
[[runner]]
name = "xeon"
labels = ["self-hosted", "machmeter-xeon"]
stacks = ["cpu"]
threads = 16
benchmarks = '^cpu'
workflows = ["benchmark-pr"]

[[runner]]
name = "gpu"
labels = ["self-hosted", "machmeter-gpu"]
stacks = ["cuda", "minimal"]
threads = 8
benchmarks = '^cuda'
workflows = ["benchmark-pr"]

[[runner]]
name = "nightly"
labels = ["self-hosted", "machmeter-nightly"]
stacks = ["cpu"]
threads = 8
benchmarks = '^cpu'
workflows = ["benchmark"]
"""


class Run:
    """The artifacts of a run of benchmark-pr, and the project whose list says which there should be."""

    def __init__(self, folder: Path) -> None:
        self.project, self.measured = folder / "project", folder / "measured"
        (self.project / ".github").mkdir(parents=True)
        (self.project / ".github/runners.toml").write_text(RUNNERS)

    def left(self, machine: str, stack: str, /, **claims: Any) -> Path:
        """Put measurements where the job of `machine` leaves them, and let them claim what they want."""
        content: Any = samples.all_samples()["nothing"]
        for side in ("base", "head"):
            named = msgspec.structs.replace(getattr(content, side), stack=claims.get("stack", stack))
            content = msgspec.structs.replace(content, **{side: named})
        path = self.measured / f"measurements-{machine}" / stack / "measurements.json"
        path.parent.mkdir(parents=True)
        content = msgspec.structs.replace(content, machine=claims.get("machine", machine))
        path.write_bytes(msgspec.json.encode(content))
        return path


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "run")


def comment_of(call: Call, run: Run) -> Called:
    return call("comment", "--repository", "o/r", "--pull-request", 7, "--sha", SHA,
                "--from", run.measured, "--project", run.project)  # fmt: skip


def titles(state: State) -> list[str]:
    return [line for line in state.comments[0]["body"].splitlines() if line.startswith("### ")]


def test_each_machine_and_stack_of_the_list_has_its_section(call: Call, state: State, run: Run) -> None:
    """A machine that measures no pull requests has none; neither has an artifact that is not expected."""
    for machine, stack in (("xeon", "cpu"), ("gpu", "cuda"), ("gpu", "minimal"), ("nightly", "cpu"), ("evil", "cpu")):
        run.left(machine, stack)
    assert comment_of(call, run).code == 0
    assert titles(state) == [
        "### Machmeter on `xeon`: no change", "### Machmeter on `gpu`: no change", "### Machmeter on `gpu`: no change",
    ]  # fmt: skip


def test_a_machine_that_has_left_nothing_is_named_with_the_reason(call: Call, state: State, run: Run) -> None:
    """Its job ended before it measured; or one of its stacks could not be measured; or a file is missing."""
    run.left("gpu", "minimal").unlink()
    said = comment_of(call, run)
    assert said.code == 30
    assert titles(state) == [
        "### Machmeter on `xeon`: no usable measurements",
        "### Machmeter on `gpu, stack cuda`: no usable measurements",
        "### Machmeter on `gpu, stack minimal`: no usable measurements",
    ]
    body = state.comments[0]["body"]
    assert body.count("its job has left nothing: it failed before it measured, or was cancelled") == 1
    assert body.count("its job has left nothing of this stack: the log of the run says why") == 1
    assert body.count("measurements.json is not there") == 1
    assert "no usable measurements of xeon: its job has left nothing" in said.out


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"machine": "gpu"}, "they claim to be of the machine 'gpu'"),
        ({"machine": "../../x @a\u202e"}, "they claim to be of the machine '../../x @a[U+202E]'"),
        ({"machine": "xeon\n"}, "they claim to be of the machine 'xeon'"),
        ({"stack": "cuda"}, "they claim to be of the stack 'cuda'"),
    ],
)
def test_measurements_that_claim_to_be_another_s_are_refused(
    call: Call, state: State, run: Run, claims: dict[str, str], words: str
) -> None:
    """The name that is shown is the one of the list."""
    run.left("xeon", "cpu", **claims)
    comment_of(call, run)
    assert titles(state)[0] == "### Machmeter on `xeon`: no usable measurements"
    assert words in state.comments[0]["body"]


@pytest.mark.parametrize("place", ["measurements-xeon", "measurements-xeon/cpu"])
def test_a_folder_that_is_a_link_is_not_followed(call: Call, state: State, run: Run, place: str) -> None:
    """One machine cannot show the file of another as its own, or any other file of the hosted machine."""
    run.left("gpu", "cpu", machine="xeon")
    link = run.measured / place
    link.parent.mkdir(exist_ok=True)
    target = run.measured / "measurements-gpu"
    link.symlink_to(target if place == "measurements-xeon" else target / "cpu")
    comment_of(call, run)
    assert titles(state)[0] == "### Machmeter on `xeon`: no usable measurements"
    assert "is a link (links are not followed)" in state.comments[0]["body"]


def test_one_comment_has_room_for_so_many_machines(call: Call, state: State, run: Run) -> None:
    """The list may be longer than anybody reads."""
    one = RUNNERS.split("[[runner]]")[1]
    many = [f"[[runner]]{one.replace('xeon', f'xeon-{number}')}" for number in range(25)]
    (run.project / ".github/runners.toml").write_text("".join(many))
    comment_of(call, run)
    assert len(titles(state)) == 21
    assert "### Machmeter on `5 more`: no usable measurements" in titles(state)


@pytest.mark.parametrize("both", [False, True])
def test_either_files_are_named_or_the_folder_of_the_artifacts(
    call: Call, files: dict[str, Path], run: Run, both: bool
) -> None:
    """Neither and both are said before anything is read."""
    more = ("--from", run.measured, "--project", run.project) if both else ()
    said = comment(call, *([files["gpu-1"]] if both else []), more=more)
    assert said.code == 2
    assert "name either files or" in said.err


def test_all_numbers_are_in_the_summary_of_the_run(
    call: Call, monkeypatch: pytest.MonkeyPatch, state: State, files: dict[str, Path], tmp_path: Path
) -> None:
    """Where the comment says three lines, and where it is shortened; also when it cannot be posted."""
    written = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(written))
    state.pulls["7"]["state"] = "closed"
    files["xeon-1"].write_bytes(msgspec.json.encode(samples.all_samples()["many-rows"]))
    assert comment(call, *files.values()).code == 35
    text = written.read_text()
    assert text.startswith("### Machmeter on ")
    for name, machine in (("many-rows", None), ("nothing", "gpu-1")):
        judged = samples.comparison(name)
        part = text.split(f"## All numbers of `{machine or judged.machine}`")[1].split("## All numbers")[0]
        rows = [line for line in part.splitlines() if line.startswith("| `")]
        assert len(rows) == len(judged.findings) + len(judged.lone)
    assert "| `cpu.onnxruntime.Network0499(int8, 8)` |" in text


def test_the_summary_stays_below_what_github_shows() -> None:
    """A summary of more than 1 MiB is not shown at all: rows are left out, and counted."""
    found = samples.comparison("many-rows")
    whole, short = summary.render([found]), summary.render([found], limit=100_000)
    assert len(whole.encode()) > 200_000
    assert 90_000 < len(short.encode()) <= 100_000
    assert "more rows, in the measurements of the run" in short.split("## All numbers")[1]


def test_a_link_in_the_artifact_is_not_written_through(call: Call, files: dict[str, Path], tmp_path: Path) -> None:
    """The folder came from an untrusted machine: a link in the comment's place is replaced."""
    other = tmp_path / "precious"
    other.write_text("kept")
    (files["gpu-1"].parent / "comment.md").symlink_to(other)
    assert comment(call, files["gpu-1"]).code == 0
    assert other.read_text() == "kept"
