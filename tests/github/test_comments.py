"""Commenting on GitHub, through the command line, against a stand-in that is held to GitHub's own description."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from helpers import comment_samples as samples
from helpers import github_server as githubserver
from helpers.github_server import ACTIONS, Fault, GitHub, State
from machmeter import cli
from machmeter.github import client, summary

MARKER = "<!-- machmeter: comparison -->"
SHA = samples.HEAD


class Called:
    """What a command has said, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


Call = Callable[..., Called]


@pytest.fixture
def state() -> State:
    known = State()
    known.pull(7, SHA)
    return known


@pytest.fixture
def github(state: State) -> Iterator[GitHub]:
    with githubserver.running(state) as server:
        yield server


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody waits: how long would have been waited."""
    found: list[float] = []
    original = client.repository
    monkeypatch.setattr(client, "repository", lambda name, **_: original(name, pause=found.append))
    return found


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], github: GitHub, pauses: list[float]
) -> Call:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.delenv("GITHUB_OUTPUT", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    def run(*arguments: object) -> Called:
        monkeypatch.setattr("sys.argv", ["machmeter", "github", *map(str, arguments)])
        code: Any = 0
        try:
            cli.main()
        except SystemExit as ending:
            code = ending.code
        said = capsys.readouterr()
        return Called(code or 0, said.out, said.err)

    return run


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Measurements of two machines, as their artifacts are unpacked."""
    found = {}
    for machine, name in (("xeon-1", "regression"), ("gpu-1", "nothing")):
        found[machine] = tmp_path / machine / "measurements.json"
        found[machine].parent.mkdir()
        content = msgspec.structs.replace(samples.all_samples()[name], machine=machine)
        found[machine].write_bytes(msgspec.json.encode(content))
    return found


def comment(call: Call, *paths: Path, number: int = 7, sha: str = SHA, more: tuple[object, ...] = ()) -> Called:
    return call("comment", "--repository", "o/r", "--pull-request", number, "--sha", sha, *more, *paths)


def test_the_first_comparison_makes_a_comment_and_a_regression_is_no_failure(
    call: Call, state: State, files: dict[str, Path]
) -> None:
    """Posting succeeds whatever the verdict."""
    said = comment(call, files["xeon-1"])
    assert (said.code, len(state.comments)) == (0, 1)
    posted = state.comments[0]
    assert posted["author"] == ACTIONS
    assert posted["body"].startswith(f"{MARKER}\n### Machmeter on `xeon-1`: 3 regressions, 1 improvement\n")
    assert said.out == f"created: https://github.com/o/r/pull/7#issuecomment-{posted['id']}\n"


def test_the_same_again_asks_for_nothing_to_be_written(
    call: Call, github: GitHub, state: State, files: dict[str, Path]
) -> None:
    """A run that is repeated changes nothing."""
    comment(call, files["xeon-1"])
    github.requests.clear()
    assert comment(call, files["xeon-1"]).out.startswith("unchanged: ")
    assert [method for method, _, _ in github.requests] == ["GET", "GET"]
    assert state.comments[0]["edits"] == 0


def test_ours_is_found_among_many_pages_by_marker_and_author(
    call: Call, github: GitHub, state: State, files: dict[str, Path]
) -> None:
    """245 comments, of which somebody else's quotes the marker and another of our author's has none."""
    for number in range(45):
        state.comment(7, "ann", f"comment {number}")
    state.comment(7, "mallory", f"{MARKER}\nlook, I am the machmeter")
    state.comment(7, ACTIONS, f"> {MARKER}\nsome other workflow quotes it")
    state.comment(7, ACTIONS, "coverage: 93 %")
    for number in range(200):
        state.comment(7, "ben", f"comment {number}")
    ours = state.comment(7, ACTIONS, f"{MARKER}\nan older comparison")
    said = comment(call, files["gpu-1"])
    assert said.out.startswith("updated: ")
    assert ours["body"].startswith(f"{MARKER}\n### Machmeter on `gpu-1`: no change")
    assert [item["edits"] for item in state.comments if item["edits"]] == [1]
    assert len(state.comments) == 249
    pages = [path for method, path in github.asked("GET") if "/comments" in path]
    assert len(pages) == 3


def test_of_several_comments_of_ours_the_first_stays(call: Call, state: State, files: dict[str, Path]) -> None:
    """Two jobs that did not see each other have commented both."""
    first = state.comment(7, ACTIONS, f"{MARKER}\nfirst")
    state.comment(7, "ann", "what is this?")
    state.comment(7, ACTIONS, f"{MARKER}\nsecond")
    assert comment(call, files["gpu-1"]).out.endswith("(1 older removed)\n")
    assert [(item["id"], item["author"]) for item in state.comments] == [
        (first["id"], ACTIONS), (first["id"] + 1, "ann"),
    ]  # fmt: skip


def test_all_machines_are_in_one_comment_and_what_is_missing_is_named(
    call: Call, state: State, files: dict[str, Path], tmp_path: Path
) -> None:
    """The machine with regressions comes first, then the one without measurements; the step succeeds."""
    files["gpu-1"].unlink()
    said = comment(call, files["gpu-1"], files["xeon-1"])
    assert said.code == 0
    body = state.comments[0]["body"]
    assert body.index("on `xeon-1`: 3 regressions") < body.index("on `gpu-1`: no usable measurements")
    assert "is not there: its run ended without measurements" in body
    assert "no usable measurements of gpu-1" in said.out


def test_measurements_that_cannot_be_used_are_said_and_fail_where_there_are_no_others(
    call: Call, state: State, tmp_path: Path
) -> None:
    """The pull request hears of it, and the step's exit code is 30."""
    file = tmp_path / "box" / "measurements.json"
    file.parent.mkdir()
    file.write_text('{"schema": 1}')
    said = comment(call, file)
    assert said.code == 30
    assert "on `box`: no usable measurements" in state.comments[0]["body"]
    assert said.err == "machmeter: none of the measurements can be used; the comment says why\n"


def test_the_measurements_choose_neither_the_pull_request_nor_the_commit(
    call: Call, state: State, files: dict[str, Path]
) -> None:
    """An artifact of another commit than the one that was to be measured is refused."""
    said = comment(call, files["xeon-1"], sha="c" * 40)
    assert said.code == 30
    assert "they are of the commit a1b2c3d4, and cccccccc was to be measured" in state.comments[0]["body"]


def test_a_head_that_was_pushed_meanwhile_is_said(call: Call, state: State, files: dict[str, Path]) -> None:
    """What was measured is no longer the head of the pull request."""
    state.pulls["7"]["head"] = "d" * 40
    assert comment(call, files["gpu-1"]).code == 0
    moved = "**The head has moved.** This is about `a1b2c3d4`; the head of the pull request is now `dddddddd`."
    assert moved in state.comments[0]["body"]


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda state: state.pulls.clear(), 32, "pull request 7 of o/r: GitHub answers 404"),
        (lambda state: state.pulls["7"].update(state="closed"), 35, "pull request 7 is closed: nothing is posted"),
        (lambda state: setattr(state, "rights", "read"), 31, "needs 'pull-requests: write'"),
        (lambda state: setattr(state, "token", "other"), 31, "GITHUB_TOKEN is not valid"),
    ],
    ids=["unknown", "closed", "no rights", "bad token"],
)
def test_what_cannot_be_posted_is_kept(
    call: Call, state: State, files: dict[str, Path], change: Callable[[State], None], code: int, words: str
) -> None:
    """One line, an exit code of its own, and the comment in a file beside the measurements."""
    change(state)
    said = comment(call, files["xeon-1"])
    kept = files["xeon-1"].parent / "comment.md"
    assert said.code == code
    assert words in said.err
    assert said.err.count("\n") == 1
    assert said.out == f"the comment is kept in {kept}\n"
    assert kept.read_text().startswith(f"{MARKER}\n### Machmeter on `xeon-1`")
    assert files["xeon-1"].exists()
    assert state.comments == []


def test_errors_of_the_server_are_waited_out(
    call: Call, github: GitHub, state: State, files: dict[str, Path], pauses: list[float]
) -> None:
    """What only reads, and what may be done twice, is asked again; each wait is longer."""
    state.comment(7, ACTIONS, f"{MARKER}\nold")
    github.faults += [
        Fault(method="GET", path="/comments", status=502),
        Fault(method="GET", path="/comments", status=503),
    ]
    github.faults += [Fault(method="PATCH", path="/comments", status=500, after=True)]
    assert comment(call, files["gpu-1"]).code == 0
    assert len(state.comments) == 1
    assert state.comments[0]["body"].startswith(f"{MARKER}\n### Machmeter on `gpu-1`")
    assert pauses == sorted(pauses)
    assert 0 < len(pauses) <= 3


@pytest.mark.parametrize("drop", [False, True], ids=["502", "connection lost"])
def test_a_comment_whose_answer_was_lost_is_not_made_twice(
    call: Call, github: GitHub, state: State, files: dict[str, Path], drop: bool
) -> None:
    """GitHub had made the comment and the answer went wrong: it is looked for before anybody makes another."""
    github.faults.append(Fault(method="POST", path="/comments", status=502, after=True, drop=drop))
    said = comment(call, files["gpu-1"])
    assert (said.code, len(state.comments)) == (0, 1)
    assert github.asked("POST") == [("POST", "/repos/o/r/issues/7/comments")]


def test_a_comment_that_was_not_made_is_made_again(
    call: Call, github: GitHub, state: State, files: dict[str, Path]
) -> None:
    """The server failed before it did anything."""
    github.faults.append(Fault(method="POST", path="/comments", status=503))
    assert (comment(call, files["gpu-1"]).code, len(state.comments)) == (0, 1)


@pytest.mark.parametrize(("drop", "words"), [(False, "502"), (True, "does not answer")])
def test_attempts_are_bounded(
    call: Call, github: GitHub, state: State, files: dict[str, Path], drop: bool, words: str
) -> None:
    """A server that stays broken is asked five times; then the comment is in a file."""
    github.faults += [Fault(method="GET", path="/comments", status=502, drop=drop) for _ in range(50)]
    said = comment(call, files["gpu-1"])
    assert said.code == 34
    assert words in said.err
    assert len([path for _, path in github.asked("GET") if "/comments" in path]) == 5
    assert (files["gpu-1"].parent / "comment.md").exists()


def told(headers: dict[str, str] | float) -> dict[str, str]:
    """Return `headers`, or those of a limit that is lifted so many seconds from now, not from when tests were found."""
    if isinstance(headers, dict):
        return headers
    return {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time() + headers))}


SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
PRIMARY = "API rate limit exceeded for installation ID 1."


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("status", "message", "headers", "least", "most"),
    [
        (403, SECONDARY, {"Retry-After": "7"}, 7, 7),
        (429, SECONDARY, {"Retry-After": "7"}, 7, 7),
        (403, SECONDARY, {}, 60, 60),
        (403, PRIMARY, 90.0, 60, 92),
        (429, PRIMARY, 90.0, 60, 92),
    ],
    ids=["403 retry-after", "429 retry-after", "403 secondary", "403 primary", "429 primary"],
)
def test_a_rate_limit_is_waited_for_as_github_asks(
    call: Call, github: GitHub, state: State, files: dict[str, Path], pauses: list[float], method: str, status: int,
    message: str, headers: dict[str, str] | float, least: float, most: float,
) -> None:  # fmt: skip
    """What was refused for its rate was not done: even a new comment is asked for again."""
    github.faults.append(Fault(method=method, path="/comments", status=status, message=message, headers=told(headers)))
    assert (comment(call, files["gpu-1"]).code, len(state.comments)) == (0, 1)
    assert len(pauses) == 1
    assert least <= pauses[0] <= most


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("headers", [{"Retry-After": "3600"}, 3000.0], ids=["retry-after", "reset"])
def test_a_rate_limit_that_lasts_too_long_is_said_at_once(
    call: Call,
    github: GitHub,
    files: dict[str, Path],
    pauses: list[float],
    status: int,
    headers: dict[str, str] | float,
) -> None:
    """Nobody waits for an hour on a rented machine."""
    github.faults.append(Fault(method="GET", path="/comments", status=status, message=PRIMARY, headers=told(headers)))
    said = comment(call, files["gpu-1"])
    assert (said.code, pauses) == (33, [])
    assert "rate limit is used up" in said.err


def test_a_network_that_is_not_there_is_one_line(
    call: Call, monkeypatch: pytest.MonkeyPatch, files: dict[str, Path]
) -> None:
    """Nobody listens at the address."""
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:9")
    said = comment(call, files["gpu-1"])
    assert said.code == 34
    assert said.err == (
        "machmeter: pull request 7 of o/r: GitHub does not answer (Connection refused): run this step again\n"
    )


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("GITHUB_TOKEN", "", "GITHUB_TOKEN is not set"),
        ("GITHUB_API_URL", "http://example.org", "is not an https address"),
    ],
)
def test_the_environment_is_checked(
    call: Call, monkeypatch: pytest.MonkeyPatch, files: dict[str, Path], variable: str, value: str, words: str
) -> None:
    """A token never travels in the open."""
    monkeypatch.setenv(variable, value)
    said = comment(call, files["gpu-1"])
    assert said.code == 9
    assert words in said.err


def test_a_dry_run_without_a_token_asks_nobody(
    call: Call, monkeypatch: pytest.MonkeyPatch, github: GitHub, files: dict[str, Path], tmp_path: Path
) -> None:
    """The comment is printed and kept where it was asked for."""
    monkeypatch.delenv("GITHUB_TOKEN")
    kept = tmp_path / "there" / "text.md"
    said = comment(call, files["gpu-1"], more=("--dry-run", "--keep", kept, "--link", "https://example.org/c"))
    assert said.out == kept.read_text()
    assert "[All numbers](https://example.org/c)" in said.out
    assert github.requests == []


def test_a_dry_run_with_a_token_asks_what_the_head_is_now_and_writes_nothing(
    call: Call, github: GitHub, state: State, files: dict[str, Path]
) -> None:
    """It shows what would be written; where GitHub does not tell the head, that is said beside."""
    state.pulls["7"]["head"] = "d" * 40
    said = comment(call, files["gpu-1"], more=("--dry-run",))
    assert "**The head has moved.**" in said.out
    assert [method for method, _, _ in github.requests] == ["GET"]
    state.pulls.clear()
    said = comment(call, files["gpu-1"], more=("--dry-run",))
    assert (said.code, said.out[: len(MARKER)]) == (0, MARKER)
    assert said.err.startswith("machmeter: whether the head has moved is not known: pull request 7 of o/r")


# ------------------------------------------------------------------ which machines there should be


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


# ------------------------------------------------------------------ who may start what


def event(path: Path, body: str, *, action: str = "created", pull: bool = True, login: str = "ann") -> Path:
    issue = {"number": 7, "title": "x", **({"pull_request": {"url": "..."}} if pull else {})}
    content = {"action": action, "issue": issue, "comment": {"id": 1, "body": body, "user": {"login": login, "id": 3}},
               "repository": {"full_name": "o/r", "id": 1}}  # fmt: skip
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def outputs(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "outputs"
    monkeypatch.setenv("GITHUB_OUTPUT", str(path))
    return path


def test_a_maintainer_starts_a_measurement_of_a_full_hash(
    call: Call, state: State, tmp_path: Path, outputs: Path
) -> None:
    """The head of the pull request, or another of its commits; a hash may be written in capitals."""
    state.permissions["ann"] = "write"
    state.pulls["7"]["commits"] = ["c" * 40, SHA]
    for sha, written in ((SHA, SHA), ("c" * 40, "c" * 40), (SHA, SHA.upper())):
        outputs.unlink(missing_ok=True)
        said = call("command", "--event", event(tmp_path / "event.json", f"/benchmark {written}\r\n"))
        assert (said.code, outputs.read_text()) == (0, f"run=true\npull_request=7\nsha={sha}\n")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"body": "nice work"}, "asks for nothing"),
        ({"body": f"> /benchmark {SHA}"}, "asks for nothing"),
        ({"body": f"/benchmark {SHA}", "pull": False}, "asks for nothing"),
        ({"body": f"/benchmark {SHA}", "action": "edited"}, "asks for nothing"),
        ({"body": "/benchmark a1b2c3d4"}, "the full hash"),
        ({"body": f"/benchmark {SHA} --token"}, "the full hash"),
        ({"body": f"/benchmark {SHA}\nrun=true"}, "the full hash"),
        ({"body": f"/benchmark {'e' * 40}"}, "eeeeeeee is no commit of pull request 7"),
        ({"body": f"/benchmark {SHA}", "login": "reader"}, "reader may not write"),
        ({"body": f"/benchmark {SHA}", "login": "stranger"}, "stranger may not write"),
        ({"body": f"/benchmark {SHA}", "login": "../../x"}, "may not write"),
    ],
)
def test_any_other_comment_starts_nothing(
    call: Call, state: State, tmp_path: Path, outputs: Path, facts: dict[str, Any], words: str
) -> None:
    """The step succeeds, so that strangers cannot make the workflow fail, and says why it does nothing."""
    state.permissions |= {"ann": "write", "reader": "read"}
    said = call("command", "--event", event(tmp_path / "event.json", **facts))
    assert said.code == 0
    assert outputs.read_text() == "run=false\npull_request=\nsha=\n"
    assert words in said.out


@pytest.mark.parametrize(
    ("sha", "code", "words"),
    [
        (SHA, 0, "run=true"),
        (SHA.upper(), 0, f"sha={SHA}"),
        ("main", 9, "is not the full hash"),
        ("e" * 40, 35, f"its head is {SHA}"),
        (f"{SHA}\n", 9, "is not the full hash"),
    ],
)
def test_a_dispatch_is_checked_alike(call: Call, outputs: Path, sha: str, code: int, words: str) -> None:
    """Whoever dispatches may write; what they typed may be wrong."""
    said = call("command", "--repository", "o/r", "--pull-request", 7, "--sha", sha)
    assert said.code == code
    assert words in said.out + said.err


@pytest.mark.parametrize("sha", ["abc", "x;y", f"{SHA}\n"])
def test_a_hash_that_is_none_has_one_exit_code(call: Call, files: dict[str, Path], sha: str) -> None:
    """Whichever command it was given."""
    asked = call("command", "--repository", "o/r", "--pull-request", 7, "--sha", sha)
    said = comment(call, files["gpu-1"], sha=sha)
    assert (asked.code, said.code) == (9, 9)
    assert asked.err == said.err


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("nice work", None),
        ("/benchmark abcdef12", "**Nothing is measured:** `write '/benchmark' and the full hash of the commit"),
        (f"/benchmark {'e' * 40}", "**Nothing is measured:** `eeeeeeee is no commit of pull request 7"),
        (f"/benchmark {SHA}", f"Measuring `{SHA}` of pull request 7.\n"),
    ],
)
def test_the_summary_of_the_run_says_what_became_of_a_comment(
    call: Call, monkeypatch: pytest.MonkeyPatch, state: State, tmp_path: Path, body: str, words: str | None
) -> None:
    """Where nobody has asked for anything it says nothing."""
    written = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(written))
    state.permissions["ann"] = "write"
    assert call("command", "--event", event(tmp_path / "event.json", body)).code == 0
    assert written.exists() == (words is not None)
    assert words is None or written.read_text().startswith(words)


def test_the_summary_of_the_run_says_why_a_dispatch_failed(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same words as on the terminal."""
    written = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(written))
    call("command", "--repository", "o/r", "--pull-request", 7, "--sha", "main")
    assert written.read_text().startswith("**Nothing is measured:** `'main' is not the full hash of a commit")


@pytest.mark.parametrize(("permission", "code"), [("admin", 0), ("write", 0), ("read", 35), ("none", 35)])
def test_the_permission_of_a_user_is_told_by_the_exit_code(
    call: Call, state: State, permission: str, code: int
) -> None:
    """Nothing but the permission counts."""
    state.permissions["ann"] = permission
    assert call("permission", "--repository", "o/r", "--login", "ann").code == code


def test_the_stand_in_notices_what_does_not_fit_the_description(github: GitHub) -> None:
    """A request without a body is refused, and so is an answer without its fields."""
    check = github.described.check
    path = "/repos/o/r/issues/7/comments"
    assert check("POST", path, b'{"body": "x"}') is None
    assert "'body' is a required property" in str(check("POST", path, b"{}"))
    assert "'id' is a required property" in str(check("POST", path, b'{"body": "x"}', 201, b"{}"))
