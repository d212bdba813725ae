"""The list of machines: what is refused, which jobs come out of it, and which commits a machine measures."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from helpers.project import ROOT, Project, make_project
from machmeter import errors
from machmeter.runners import jobs, machine_list

XEON = """
[[runner]]
name = "xeon"
labels = ["self-hosted", "linux", "machmeter-xeon"]
stacks = ["minimal"]
threads = 2
benchmarks = '^control\\.'
workflows = ["benchmark", "versions"]
sweeps = ["openvino", "torch"]
"""
GPU = """
[[runner]]
name = "gpu"
labels = ["self-hosted", "linux", "machmeter-gpu"]
stacks = ["minimal"]
threads = 2
benchmarks = '^control\\.'
workflows = ["benchmark", "benchmark-pr"]
"""


def _project(folder: Path, text: str) -> Path:
    (folder / ".github").mkdir(parents=True)
    (folder / machine_list.FILE).write_text(text)
    (folder / "requirements").mkdir()
    (folder / "requirements/minimal.txt").write_text("numpy==2.4.6\n")
    return folder


def test_one_job_for_each_machine_of_a_workflow(tmp_path: Path) -> None:
    found = machine_list.check(_project(tmp_path, XEON + GPU))
    assert machine_list.matrix(found, "benchmark") == {
        "include": [
            {"name": "xeon", "labels": ["self-hosted", "linux", "machmeter-xeon"]},
            {"name": "gpu", "labels": ["self-hosted", "linux", "machmeter-gpu"]},
        ]
    }
    assert [job["name"] for job in machine_list.matrix(found, "benchmark-pr")["include"]] == ["gpu"]


def test_versions_has_one_job_for_each_library_of_a_machine(tmp_path: Path) -> None:
    found = machine_list.check(_project(tmp_path, XEON + GPU))
    jobs = machine_list.matrix(found, "versions")["include"]
    assert [(job["name"], job["library"]) for job in jobs] == [("xeon", "openvino"), ("xeon", "torch")]


def test_the_matrix_is_handed_to_the_job_that_starts_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from machmeter.cli import app

    project, output = _project(tmp_path / "project", GPU), tmp_path / "output"
    monkeypatch.setenv("GITHUB_OUTPUT", str(output))
    for workflow in ("benchmark", "versions"):
        done = CliRunner().invoke(app, ["runners", "matrix", "--for", workflow, "--project", str(project)])
        assert done.exit_code == 0
        assert json.loads(done.output) == machine_list.matrix(machine_list.load(project), workflow)  # type: ignore[arg-type]
    assert output.read_text().splitlines() == [
        'matrix={"include": [{"name": "gpu", "labels": ["self-hosted", "linux", "machmeter-gpu"]}]}',
        "any=true",
        'matrix={"include": []}',
        "any=false",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = [", "cannot read"),
        ("[runner]\nname = 'a'", "write one [[runner]] for each machine"),
        ("[[machine]]\nname = 'a'", "write one [[runner]] for each machine"),
        ("[[runner]]\nname = 'a'", "'a' lacks labels"),
        (XEON + 'token = "x"', "'xeon': unknown key 'token'"),
        (XEON.replace('"xeon"', '"Xeon 1"'), "'Xeon 1': a name has lower-case letters, digits and hyphens only"),
        (XEON.replace('"xeon"', '"xeon\\n"'), "a name has lower-case letters, digits and hyphens only"),
        (XEON.replace('"machmeter-xeon"', '"machmeter-xeon\\n"'), "is no label"),
        (XEON.replace('["minimal"]', '"minimal"'), "'xeon': stacks must be a list of texts"),
        (XEON.replace('["minimal"]', "[]"), "'xeon': name at least one stack"),
        (XEON.replace('["minimal"]', '["imaginary"]'), "'xeon': unknown stack 'imaginary'"),
        (XEON.replace("threads = 2", "threads = 0"), "'xeon': threads must be a whole number from 1 on"),
        (XEON.replace("threads = 2", "threads = true"), "'xeon': threads must be a whole number from 1 on"),
        (XEON.replace("^control", "(control"), "'xeon': benchmarks is not a regular expression"),
        (XEON.replace('"versions"', '"version"'), "'xeon': unknown workflow 'version'"),
        (XEON.replace('"torch"', '"tensorflow"'), "'xeon': cannot sweep 'tensorflow'"),
        (XEON.replace('["openvino", "torch"]', "[]"), "'xeon': versions needs sweeps"),
        (XEON.replace('"self-hosted", ', ""), "'xeon': labels need 'self-hosted' and one of its own"),
        (XEON.replace(', "machmeter-xeon"', ""), "'xeon': labels need 'self-hosted' and one of its own"),
        (XEON.replace("machmeter-xeon", "a, b"), "'xeon': 'a, b' is no label"),
        (XEON + 'budget = "soon"', "'xeon': "),
        (XEON + 'accept = ["everything"]', "'xeon' accepts 'everything', which is no check of the doctor"),
        (XEON + XEON, "'xeon' is there 2 times"),
        (XEON + XEON.replace('"xeon"', '"other"'), "a job for 'xeon' could land on 'other'"),
        (XEON.replace('"linux", ', "") + GPU.replace('"linux"', '"machmeter-xeon"'), "could land on 'gpu'"),
    ],
)
def test_a_list_that_cannot_be_used_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(errors.RunnersInvalid) as caught:
        machine_list.check(_project(tmp_path, text))
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_missing_list_is_told(tmp_path: Path) -> None:
    with pytest.raises(errors.RunnersInvalid, match="it lists the machines that measure"):
        machine_list.load(tmp_path)


def test_an_unknown_machine_is_told(tmp_path: Path) -> None:
    with pytest.raises(errors.UnknownName, match=r"unknown runner 'epyc': \.github/runners\.toml has xeon"):
        machine_list.get(_project(tmp_path, XEON), "epyc")


@pytest.fixture
def history(tmp_path: Path) -> Project:
    """A project with four commits."""
    project = make_project(tmp_path / "project", tmp_path / "home", {})
    for number in range(3):
        commit = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "--quiet"]
        assert project.command(*commit, "--allow-empty", "-m", str(number)).returncode == 0
    return project


def _commits(project: Project) -> list[str]:
    return project.command("git", "rev-list", "HEAD").stdout.split()


def _measured(project: Project, machine: str, commit: str, stack: str, run: str = "") -> None:
    folder = project.results / machine
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{commit[:8]}-virtualenv-py3.11-STACK{stack}{run}.json").write_text("{}")


def _pending(project: Project, most: int = 20) -> list[str]:
    (project.folder / ".github").mkdir(exist_ok=True)
    (project.folder / machine_list.FILE).write_text(XEON)
    return jobs.pending(project.folder, project.results, machine_list.get(project.folder, "xeon"), "minimal", most)


def test_a_machine_measures_what_is_new_since_its_own_last_results(history: Project) -> None:
    """Results of another machine, or of another stack on this one, say nothing about what this one has to do."""
    commits = _commits(history)
    _measured(history, "xeon", commits[2], "minimal")
    _measured(history, "xeon", commits[1], "cpu")
    _measured(history, "gpu", commits[0], "minimal")
    assert _pending(history) == commits[:2]


def test_files_of_the_results_branch_count_too(history: Project) -> None:
    """There, each run has a file of its own."""
    commits = _commits(history)
    _measured(history, "xeon", commits[2], "minimal", ".59a340ad7c39850e")
    _measured(history, "xeon", commits[1], "minimal-and-more", ".59a340ad7c39850e")
    assert _pending(history) == commits[:2]


def test_a_new_machine_measures_the_newest_commit_alone(history: Project) -> None:
    assert _pending(history) == _commits(history)[:1]


def test_the_newest_commit_is_measured_once_more_where_nothing_is_new(history: Project) -> None:
    """A second run confirms a suspicion, or clears it."""
    commits = _commits(history)
    _measured(history, "xeon", commits[0], "minimal")
    assert _pending(history) == commits[:1]


def test_no_more_commits_than_were_asked_for(history: Project) -> None:
    commits = _commits(history)
    _measured(history, "xeon", commits[3], "minimal")
    assert _pending(history, most=2) == commits[:2]


def test_a_host_of_any_name_is_filed_under_the_machine_s(
    history: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """R6: a single-use runner has a new host name each time, and its results still join those of the machine."""
    home = tmp_path / "fresh"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(errors.BadSetting, match="run 'machmeter runners name xeon'"):
        machine_list.check_name("xeon")
    machine_list.name_machine(history.folder, "xeon")
    machine_list.check_name("xeon")
    with pytest.raises(errors.BadSetting, match=r"under 'xeon', not 'gpu': remove ~/\.asv-machine\.json"):
        machine_list.check_name("gpu")


TWO = XEON.replace('["minimal"]', '["minimal", "other"]')


@pytest.fixture
def two_stacks(history: Project, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, machine_list.Runner]:
    """A machine with two stacks, which asv knows by its name."""
    (history.folder / ".github").mkdir()
    (history.folder / machine_list.FILE).write_text(TWO)
    monkeypatch.setattr(jobs, "check_name", lambda name: None)
    return history.folder, machine_list.get(history.folder, "xeon")


def test_a_stack_that_cannot_run_does_not_keep_the_next_from_being_measured(
    two_stacks: tuple[Path, machine_list.Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, runner = two_stacks
    head, asked = jobs.pending(project, project / "results", runner, "minimal", 1)[0], []

    def run(project: Path, stack: str, arguments: list[str]) -> bool:
        asked.append((stack, Path(arguments[0].removeprefix("HASHFILE:")).read_text(), arguments[1:]))
        if stack == "minimal":
            raise errors.RunFailed("asv stopped with exit code 1")
        return True

    monkeypatch.setattr(machine_list.stacks, "run", run)
    with pytest.raises(errors.RunFailed, match="asv stopped with exit code 1"):
        jobs.measure(project, project / "results", runner, ["HEAD"], "", 20, print)
    patterns = ["-b", r"^control\."]
    assert asked == [("minimal", f"{head}\n", patterns), ("other", f"{head}\n", patterns)]


def test_an_unknown_commit_is_told(two_stacks: tuple[Path, machine_list.Runner]) -> None:
    project, runner = two_stacks
    with pytest.raises(errors.BadSetting, match="no commit 'v99'"):
        jobs.measure(project, project / "results", runner, ["v99"], "", 20, print)


def test_a_comparison_goes_on_with_the_next_stack_and_ends_with_what_failed(
    two_stacks: tuple[Path, machine_list.Runner], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from machmeter.pull_request import command

    project, runner = two_stacks
    asked = []

    def run(code: Path, base: str, head: str, **settings: object) -> None:
        asked.append((code, base, head, settings["stack"], settings["output"], settings["seconds"]))
        if settings["stack"] == "minimal":
            raise errors.RunFailed("asv stopped")

    monkeypatch.setattr(command, "run", run)
    with pytest.raises(errors.RunFailed, match="minimal: asv stopped"):
        jobs.compare(project, tmp_path / "head", runner, "main", "abc", "", tmp_path, print)
    assert asked == [
        (tmp_path / "head", "main", "abc", stack, tmp_path / stack, 1800.0) for stack in ("minimal", "other")
    ]


def test_an_interruption_ends_a_comparison_at_once(
    two_stacks: tuple[Path, machine_list.Runner], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from machmeter.pull_request import command

    def run(*arguments: object, **settings: object) -> None:
        raise errors.Interrupted("ended")

    project, runner = two_stacks
    monkeypatch.setattr(command, "run", run)
    with pytest.raises(errors.Interrupted):
        jobs.compare(project, project, runner, "main", "abc", "", tmp_path, print)


def test_the_project_s_own_list_is_right() -> None:
    done = subprocess.run(["git", "-C", str(ROOT), "ls-files", ".github"], capture_output=True, text=True, check=True)
    assert ".github/runners.toml" in done.stdout
    assert {runner.name for runner in machine_list.check(ROOT)} == {"xeon", "gpu"}
