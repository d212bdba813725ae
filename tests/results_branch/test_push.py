"""Pushing: append-only, one file for each run, atomic whatever dies, never by force."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from helpers import git_remotes as branches
from helpers.git_remotes import Project, git
from helpers.results_branch import STEM, pushed
from machmeter.results_branch import paths as paths_module
from machmeter.results_branch import scratch


def test_a_push_puts_every_file_under_a_name_made_of_its_bytes(project: Project, remote: Path) -> None:
    project.measure(1)
    assert pushed(project) == "pushed 2 files to the branch results of origin\n"
    paths = branches.files(remote)
    hashed = {path for path in paths if STEM in path}
    assert sorted(set(paths) - hashed) == [
        "results-branch.json",
        "results/benchmarks.json",
        "results/here/machine.json",
    ]
    assert sorted(path.rpartition("/")[0] for path in hashed) == ["evidence/here", "results/here"]
    for path in hashed:
        content = git(remote, "cat-file", "blob", f"results:{path}").encode()
        assert path.endswith(f"{STEM}.{paths_module.content_hash(content)}.json")
    (result,) = (path for path in hashed if path.startswith("results/"))
    assert git(remote, "cat-file", "blob", f"results:{result}") == (project.results / f"here/{STEM}.json").read_text()


def test_the_commit_says_which_machines_and_commits(project: Project, remote: Path) -> None:
    project.measure(1)
    project.measure(2, "there")
    pushed(project)
    subject = git(remote, "log", "--format=%s", "results").strip()
    assert subject == "Add results of here at 01010101; there at 02020202"


def test_pushing_twice_changes_nothing(project: Project, remote: Path) -> None:
    project.measure(1)
    pushed(project)
    before = git(remote, "rev-parse", "results")
    assert pushed(project) == "nothing to push: 2 files are on the branch results of origin\n"
    assert git(remote, "rev-parse", "results") == before


def test_a_second_run_of_a_commit_is_a_further_file(project: Project, remote: Path) -> None:
    """R11: asv rewrites its file and the evidence grows; on the branch no file of a run ever changes."""
    project.measure(1, value=1.0)
    pushed(project)
    first = branches.files(remote)
    project.measure(1, value=2.0, started=1_700_000_100_000, run="r2")
    assert pushed(project) == "pushed 2 files to the branch results of origin; 1 was there\n"
    second = branches.files(remote)
    assert first.items() <= second.items()
    assert len(second) == len(first) + 2
    assert project.command("verify")[0] == 0


def test_the_list_of_benchmarks_gains_and_never_loses(project: Project, other: Project, remote: Path) -> None:
    project.measure(1, benchmarks=("time_a", "time_old"))
    pushed(project)
    other.measure(2, benchmarks=("time_a", "time_new"))
    pushed(other)
    names = json.loads(git(remote, "cat-file", "blob", "results:results/benchmarks.json"))
    assert sorted(names) == ["time_a", "time_new", "time_old", "version"]


def test_a_machine_without_asvs_note_gets_one(project: Project, remote: Path) -> None:
    """asv reads no folder that has none."""
    project.measure(1)
    (project.results / "here/machine.json").unlink()
    pushed(project)
    note = json.loads(git(remote, "cat-file", "blob", "results:results/here/machine.json"))
    assert (note["machine"], note["cpu"], note["version"]) == ("here", "Some CPU", 1)


def test_eight_publishers_at_once_lose_nothing(tmp_path: Path, remote: Path) -> None:
    """R9."""
    context = multiprocessing.get_context("fork")
    barrier, projects = context.Barrier(8), []
    for number in range(8):
        made = branches.project(tmp_path / f"p{number}", remote)
        made.measure(number + 1, f"machine{number}", benchmarks=(f"time_{number}",))
        projects.append(made)

    def publish(made: Project) -> None:
        barrier.wait()
        sys.exit(made.command("push")[0])

    processes = [context.Process(target=publish, args=(made,)) for made in projects]
    for publisher in processes:
        publisher.start()
    for publisher in processes:
        publisher.join()
    assert [publisher.exitcode for publisher in processes] == [0] * 8
    assert len(branches.runs(remote)) == 16
    names = json.loads(git(remote, "cat-file", "blob", "results:results/benchmarks.json"))
    assert sorted(names) == [*(f"time_{number}" for number in range(8)), "version"]
    assert projects[0].command("verify")[0] == 0
    assert len(git(remote, "rev-list", "results").split()) == 8


def test_no_push_is_ever_forced(project: Project, other: Project, remote: Path, path_of_git: Path) -> None:
    project.measure(1)
    pushed(project)
    other.measure(2)
    pushed(other)
    history = git(remote, "rev-list", "--reverse", "results").split()
    assert branches.updates(remote) == [("0" * 40, history[0]), (history[0], history[1])]
    calls = [line.split() for line in Path(f"{path_of_git}.calls").read_text().splitlines()]
    pushes = [call for call in calls if "push" in call]
    assert len(pushes) == 2
    assert not any(part.startswith(("--force", "-f", "+", "--mirror")) for call in pushes for part in call)


def test_dying_between_any_two_steps_leaves_a_sound_branch(
    tmp_path: Path, remote: Path, path_of_git: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R8: kill -9 before each call of git, and after the last; then the same push again completes."""
    first = branches.project(tmp_path / "first", remote)
    first.measure(1, "first")
    path_of_git.write_text("0")
    pushed(first)
    steps = int(path_of_git.read_text())
    assert steps > 10
    context = multiprocessing.get_context("fork")
    for step in range(1, steps + 2):
        made = branches.project(tmp_path / f"p{step}", remote)
        made.measure(step + 1, f"m{step}")
        monkeypatch.setenv("DIE_BEFORE" if step <= steps else "DIE_AFTER", str(min(step, steps)))
        path_of_git.write_text("0")
        process = context.Process(target=lambda made=made: sys.exit(made.command("push")[0]))
        process.start()
        process.join()
        monkeypatch.delenv("DIE_BEFORE", raising=False)
        monkeypatch.delenv("DIE_AFTER", raising=False)
        assert process.exitcode == -signal.SIGKILL
        assert first.command("verify")[0] == 0
        pushed(made)
        assert sum(f"/m{step}/" in path for path in branches.runs(remote)) == 2
    assert first.command("verify")[0] == 0
    assert len(branches.runs(remote)) == 2 * (steps + 2)


def test_the_next_push_removes_what_a_killed_one_left(
    tmp_path: Path, project: Project, path_of_git: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And neither the folder of a push that is at work, nor a young one, nor anything that a link leads to."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    project.measure(1)
    monkeypatch.setenv("DIE_BEFORE", "9")
    path_of_git.write_text("0")
    killed = multiprocessing.get_context("fork").Process(target=project.command, args=("push",))
    killed.start()
    killed.join()
    monkeypatch.delenv("DIE_BEFORE")
    (left,) = temporary.iterdir()
    assert (left / "objects").is_dir()
    pushed(project)
    assert left.is_dir()  # it may be that of a push that has just begun
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "kept").mkdir(parents=True)
    (temporary / "machmeter-results-link").symlink_to(elsewhere)
    with scratch.folder() as at_work:
        for path in (left, at_work, elsewhere, temporary / "machmeter-results-link"):
            os.utime(path, (0, 0), follow_symlinks=False)
        pushed(project)
        assert set(temporary.iterdir()) == {at_work, temporary / "machmeter-results-link"}
    assert (elsewhere / "kept").is_dir()
