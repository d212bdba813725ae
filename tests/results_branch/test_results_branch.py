"""The results branch: nothing that was pushed is lost or changed, whoever pushes, dies or cheats meanwhile."""

from __future__ import annotations

import http.server
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import ClassVar

import pytest

from helpers import asv_files as asvstore
from helpers import git_remotes as branches
from helpers import stores
from helpers.git_remotes import Project, bare, git
from machmeter.history.read import read
from machmeter.machine import process
from machmeter.results_branch import paths as paths_module
from machmeter.results_branch import scratch
from machmeter.site import build
from machmeter.store import evidence
from machmeter.store import values as cell_values
from machmeter.store.columns import OK

STEM = f"{asvstore.commit_hash(1)[:8]}-env"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return bare(tmp_path / "remote.git")


@pytest.fixture
def project(tmp_path: Path, remote: Path) -> Project:
    return branches.project(tmp_path / "project", remote)


@pytest.fixture
def other(tmp_path: Path, remote: Path) -> Project:
    return branches.project(tmp_path / "other", remote)


@pytest.fixture
def path_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git that counts its calls is the one that is found; returns where it counts."""
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.setenv("COUNT", "")
    return branches.dying_git(tmp_path / "bin")


def pushed(project: Project, *arguments: str) -> str:
    code, output = project.command("push", *arguments)
    assert code == 0, output
    return output


def put(project: Project, remote: Path, path: str, content: str | None, branch: str = "results") -> None:
    """Commit another content (None: its removal) of a file of the branch, as somebody with git would."""
    folder = project.folder.parent / "by-hand"
    if not folder.exists():
        subprocess.run(["git", "clone", "--quiet", "--branch", branch, str(remote), str(folder)], check=True)
    git(folder, "pull", "--quiet", "--ff-only")
    if content is None:
        (folder / path).unlink()
    else:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "--quiet", "-m", "by hand")
    git(folder, "push", "--quiet", "origin", f"HEAD:{branch}")


# Pushing


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


def test_an_answer_that_is_lost_on_the_way_is_no_loss(
    project: Project, remote: Path, path_of_git: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remote took the push and the line broke before it could say so."""
    project.measure(1)
    monkeypatch.setenv("BREAK", "push")
    monkeypatch.setenv("LATE", "1")
    code, output = project.command("push")
    assert (code, len(branches.runs(remote))) == (38, 2)
    assert "cannot reach 'origin': fatal: the remote end hung up unexpectedly" in output
    monkeypatch.delenv("BREAK")
    assert pushed(project).startswith("nothing to push")


@pytest.mark.parametrize("step", ["ls-remote", "fetch", "push"])
def test_a_remote_that_fails_half_way_is_one_clear_line(
    project: Project, remote: Path, path_of_git: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    project.measure(1)
    pushed(project)
    before = branches.files(remote)
    project.measure(2)
    monkeypatch.setenv("BREAK", step)
    code, output = project.command("push")
    assert code == 38
    assert output == (
        "cannot reach 'origin': fatal: the remote end hung up unexpectedly; nothing is lost here, so try again"
    )
    assert branches.files(remote) == before
    monkeypatch.delenv("BREAK")
    assert pushed(project) == "pushed 2 files to the branch results of origin; 2 were there\n"


def test_a_remote_that_does_not_exist_is_named(project: Project, tmp_path: Path) -> None:
    project.measure(1)
    code, output = project.command("push", "--remote", "upstream")
    assert (code, "there is no remote 'upstream'" in output) == (38, True)
    git(project.folder, "remote", "set-url", "origin", str(tmp_path / "gone.git"))
    code, output = project.command("push")
    assert (code, "cannot reach 'origin'" in output) == (38, True)


def test_a_remote_that_declines_is_quoted(project: Project, remote: Path) -> None:
    """A hook, a protected branch or missing rights: not a race, so it is not tried again."""
    project.measure(1)
    branches.hook(remote, "pre-receive", "#!/bin/sh\necho 'you may not write here' >&2\nexit 1\n")
    code, output = project.command("push")
    assert code == 39
    assert "'origin' does not take the push to 'results'" in output
    assert "you may not write here" in output
    assert git(remote, "branch", "--list", "results") == ""


def test_a_login_in_an_address_is_not_repeated() -> None:
    from machmeter.results_branch.remote import plain

    said = "fatal: unable to access 'https://me:secret@example.invalid/x.git/': The requested URL returned error: 403\n"
    assert (
        plain(said) == "fatal: unable to access 'https://example.invalid/x.git/': The requested URL returned error: 403"
    )


def test_a_login_in_the_address_of_a_remote_is_not_repeated(project: Project) -> None:
    project.measure(1)
    code, output = project.command("push", "--remote", "http://me:secret@127.0.0.1:9/x.git")
    assert (code, "http://127.0.0.1:9/x.git" in output, "secret" in output) == (38, True, False)


def test_a_branch_that_is_not_ours_is_left_alone(project: Project, remote: Path) -> None:
    git(project.folder, "push", "--quiet", "origin", "main:results")
    before = git(remote, "rev-parse", "results")
    project.measure(1)
    for command in ("push", "pull", "verify"):
        code, output = project.command(command)
        assert (code, "is not a results branch: it has no results-branch.json" in output) == (40, True)
    assert git(remote, "rev-parse", "results") == before


def test_a_branch_of_a_newer_format_is_left_alone(project: Project, remote: Path) -> None:
    project.measure(1)
    pushed(project)
    put(project, remote, paths_module.MARKER, '{"schema": 2}')
    project.measure(2)
    code, output = project.command("push")
    assert (code, "is of format 2, and this machmeter knows 1: update machmeter" in output) == (40, True)


@pytest.mark.parametrize("depth", [None, "1"])
def test_the_users_clone_stays_as_it_is(tmp_path: Path, project: Project, remote: Path, depth: str | None) -> None:
    """Whole or shallow: fetching the branch into it would make it shallow, or partial."""
    git(project.folder, "push", "--quiet", "origin", "main")
    git(project.folder, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--allow-empty", "-m", "two")
    git(project.folder, "push", "--quiet", "origin", "main")
    shallow = ["--depth", depth] if depth else []
    folder = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", *shallow, f"file://{remote}", str(folder)], check=True)
    clone = Project(folder)
    clone.measure(1)
    before = (git(folder, "config", "--list", "--local"), git(folder, "for-each-ref"), sorted_files(folder / ".git"))
    pushed(clone)
    assert clone.command("pull")[0] == 0
    assert clone.command("verify")[0] == 0
    after = (git(folder, "config", "--list", "--local"), git(folder, "for-each-ref"), sorted_files(folder / ".git"))
    assert before == after
    assert git(folder, "rev-list", "--count", "HEAD").strip() == (depth or "2")


def sorted_files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_only_the_tree_of_the_branch_is_fetched(project: Project, other: Project, path_of_git: Path) -> None:
    project.measure(1)
    pushed(project)
    other.measure(2)
    pushed(other)
    calls = Path(f"{path_of_git}.calls").read_text().splitlines()
    fetches = [call for call in calls if " fetch " in call and "refs/heads/results" in call]
    assert fetches
    assert all("--depth=1 --filter=blob:none" in call for call in fetches)
    assert not any(" checkout " in call for call in calls)


class Forge(http.server.BaseHTTPRequestHandler):
    """A remote that answers every request with a refusal, and remembers who asked."""

    asked: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.asked.append(self.headers.get("Authorization"))
        self.send_response(403)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


def test_a_login_in_the_clones_configuration_is_used_and_not_shown(
    project: Project, remote: Path, path_of_git: Path
) -> None:
    """CI keeps its token there. It goes to the remote, and into no command line and no message."""
    project.measure(1)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forge)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    configuration = project.folder / ".git/config"
    with configuration.open("a") as stream:
        stream.write(f'[http "{address}"]\n\textraheader = AUTHORIZATION: basic c2VjcmV0\n')
        stream.write(f'[remote "forge"]\n\turl = {address}x.git\n')
    try:
        code, output = project.command("push", "--remote", "forge")
    finally:
        server.shutdown()
        server.server_close()
    assert set(Forge.asked) == {"basic c2VjcmV0"}
    assert (code, "403" in output, "c2VjcmV0" in output) == (39, True, False)
    assert "c2VjcmV0" not in Path(f"{path_of_git}.calls").read_text()


@pytest.mark.parametrize("name", ["../x", "-x", "a b", "a..b"])
def test_a_name_that_no_branch_can_have_is_refused(project: Project, name: str) -> None:
    project.measure(1)
    assert project.command("push", f"--branch={name}") == (9, f"{name!r} cannot be the name of a branch")


# What may be pushed


def test_a_damaged_file_is_named_and_nothing_is_pushed(project: Project, remote: Path) -> None:
    """R8, R10: half of a file, as a killed asv leaves it."""
    project.measure(1)
    project.measure(2)
    path = project.results / f"here/{STEM}.json"
    path.write_text(path.read_text()[:100])
    code, output = project.command("push")
    assert code == 36
    assert f"{path} is not valid JSON, perhaps half-written" in output
    assert git(remote, "branch", "--list", "results") == ""
    assert len(path.read_text()) == 100


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ('{"schema": 1, "runs"', "is not strict JSON, perhaps half-written"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"schema": 9}', "is not evidence of schema 1"),
        ({"machine": "there"}, "is of machine 'there', not of 'here'"),
        ({"commit": "../../x"}, "is of '../../x', which is no commit"),
        ({"commit": "9" * 40}, "is of commit 99999999, which is not in its name"),
        ({"environment": "other"}, "is of environment 'other', which is not in its name"),
        ({"runs": {}}, "holds no run"),
        ({"runs": {"r": {"started": "", "cells": {"c": {"p": {}}}}}}, "has a record without a status, of 'c'"),
        ({"stack": float("nan")}, "is not strict JSON"),
        ({"stack": "S"}, None),
    ],
)
def test_evidence_is_strict_and_is_what_its_name_says(
    project: Project, text: str | dict[str, object], reason: str | None
) -> None:
    """R2: what we write is strict JSON."""
    project.measure(1)
    path = project.evidence / f"here/{STEM}.json"
    path.write_text(text if isinstance(text, str) else json.dumps(json.loads(path.read_text()) | text))
    code, output = project.command("push")
    assert (code, reason is None or f"{path} {reason}" in output) == (36 if reason else 0, True), output


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"version": 1}, "is in asv's old format (version 1): 'asv update' converts it"),
        ({"commit_hash": "f" * 40}, "is of commit ffffffff, which is not in its name"),
        ({"params": {"machine": "there"}}, "is of machine 'there', not of 'here'"),
        ({"results": {"time_a": [[float("nan")], [], "1", 1, 1.0]}}, None),  # asv's own way to say "skipped"
    ],
)
def test_a_result_is_what_its_name_says(project: Project, changed: dict[str, object], reason: str | None) -> None:
    project.measure(1)
    path = project.results / f"here/{STEM}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    code, output = project.command("push")
    assert (code, reason is None or f"{path} {reason}" in output) == (36 if reason else 0, True), output


def test_a_file_that_is_too_large_is_refused(project: Project) -> None:
    """R11: the remote would refuse it too, and with it everything else."""
    project.measure(1)
    with (project.results / f"here/{STEM}.json").open("a") as stream:
        stream.truncate(paths_module.LARGEST_FILE + 1)
    code, output = project.command("push")
    assert (code, "has more than 50 MiB" in output) == (36, True)


def test_links_are_not_followed(project: Project, tmp_path: Path) -> None:
    project.measure(1)
    secret = tmp_path / "secret.json"
    secret.write_text((project.results / f"here/{STEM}.json").read_text())
    link = project.results / f"here/{asvstore.commit_hash(2)[:8]}-env.json"
    link.symlink_to(secret)
    code, output = project.command("push")
    assert (code, f"{link} is a link" in output) == (36, True)
    link.unlink()
    (project.evidence / "there").symlink_to(tmp_path, target_is_directory=True)
    code, output = project.command("push")
    assert (code, f"{project.evidence / 'there'} is a link" in output) == (36, True)


@pytest.mark.parametrize("name", ["a:b", "a\nb", "-".join("m" * 101), " a", "a."])
def test_a_machine_whose_name_no_folder_can_have_is_refused(project: Project, name: str) -> None:
    project.measure(1)
    (project.results / name).mkdir()
    code, output = project.command("push")
    assert (code, "cannot be the name of a machine" in output) == (36, True)
    assert "\n" not in output


def test_a_run_that_is_not_over_waits_for_the_next_push(project: Project, remote: Path) -> None:
    alive = {"status": "running", "pid": os.getpid(), "process": process.process_identity(os.getpid())}
    project.measure(1, run="r1")
    project.measure(1, run="r2", record=alive)
    output = pushed(project)
    assert "left for the next push: a run in" in output
    assert len([path for path in branches.runs(remote) if path.startswith("evidence/")]) == 1


def test_a_process_that_died_is_pushed_as_failed(project: Project, remote: Path) -> None:
    """Its traces are on the machine that measured, and nowhere else."""
    project.measure(1, record={"status": "running", "pid": 1, "process": "gone"})
    pushed(project)
    (path,) = (path for path in branches.runs(remote) if path.startswith("evidence/"))
    told = json.loads(git(remote, "cat-file", "blob", f"results:{path}"))
    assert told["runs"]["r1"]["cells"]["a"]["p"]["status"] == "failed"


@pytest.mark.parametrize(
    "told", [{}, {"pid": "x", "process": "gone"}, {"pid": 1, "timeout": "x", "peak_resident_bytes": "x"}]
)
def test_a_dead_process_that_is_not_described_is_refused(project: Project, told: dict[str, object]) -> None:
    project.measure(1, record={"status": "running", **told})
    code, output = project.command("push")
    assert (code, "has a running process that is not described" in output) == (36, True)


def test_no_file_that_evidence_names_is_read_but_a_trace_of_its_own(
    project: Project, remote: Path, tmp_path: Path
) -> None:
    """Evidence of another machine may name any path: one that would wait for a writer for ever, here."""
    os.mkfifo(tmp_path / "never")
    project.measure(1, record={"status": "running", "pid": 1, "process": "gone", "trace": str(tmp_path / "never")})
    own = project.evidence / "there/.traces/p.txt"
    own.parent.mkdir(parents=True)
    own.write_text("Segmentation fault\n")
    project.measure(2, "there", record={"status": "running", "pid": 1, "process": "gone", "trace": str(own)})
    pushed(project)
    reasons = {}
    for path in branches.runs(remote):
        if path.startswith("evidence/"):
            told = json.loads(git(remote, "cat-file", "blob", f"results:{path}"))
            reasons[told["machine"]] = told["runs"]["r1"]["cells"]["a"]["p"]["reason"]
    assert reasons["there"] == "crashed (signal 11, segmentation fault)"
    assert reasons["here"].startswith("killed (signal 9)")


def test_artifacts_of_several_machines_are_pushed_at_once(project: Project, remote: Path, tmp_path: Path) -> None:
    branches.measure(tmp_path / "artifacts/xeon", 1, "xeon")
    branches.measure(tmp_path / "artifacts/gpu", 1, "gpu")
    (tmp_path / "empty").mkdir()
    shutil.rmtree(tmp_path / "artifacts/gpu/results")  # asv was killed: what was finished is in the evidence
    output = pushed(project, str(tmp_path / "artifacts"), str(tmp_path / "empty"))
    assert f"left out: {tmp_path / 'empty'} has no folder 'results' or 'evidence'" in output
    assert sorted(path.rpartition("/")[0] for path in branches.runs(remote)) == [
        "evidence/gpu",
        "evidence/xeon",
        "results/xeon",
    ]


@pytest.mark.parametrize(("sign", "content"), [("measurements.json", ""), ("run.json", '{"base": "a", "head": "b"}')])
@pytest.mark.parametrize("named", ["artifacts", "artifacts/pull", "artifacts/pull/head", "artifacts/link"])
def test_what_was_measured_for_a_pull_request_is_no_history(
    project: Project, remote: Path, tmp_path: Path, sign: str, content: str, named: str
) -> None:
    """The branch only grows: what `machmeter pr` left, or a part of it, is named before anything is pushed."""
    branches.measure(tmp_path / "artifacts/a", 1, "xeon")
    branches.measure(tmp_path / "artifacts/pull/head", 1, "pull")
    (tmp_path / "artifacts/pull" / sign).write_text(content)
    (tmp_path / "artifacts/link").symlink_to("pull/head")
    project.measure(1)
    code, output = project.command("push", str(project.folder), str(tmp_path / named))
    assert code == 36
    assert f"artifacts/pull/{sign}): it compares two commits and is no history" in output
    assert branches.updates(remote) == []


def test_a_file_called_run_json_of_another_program_is_no_comparison(
    project: Project, remote: Path, tmp_path: Path
) -> None:
    branches.measure(tmp_path / "artifacts/a", 1, "xeon")
    (tmp_path / "artifacts/a/run.json").write_text('{"base": 1}')
    (tmp_path / "artifacts/run.json").write_text("no JSON")
    assert "pushed 2 files" in pushed(project, str(tmp_path / "artifacts"))


def test_nothing_to_push_says_so(project: Project, tmp_path: Path) -> None:
    assert project.command("push") == (8, "there are no results to push yet: run 'make bench' or 'asv run'")
    code, output = project.command("push", str(tmp_path / "nowhere"))
    assert (code, output) == (8, f"there is no folder {tmp_path / 'nowhere'}")


# Verifying


def test_a_file_that_was_changed_on_the_branch_is_named(project: Project, other: Project, remote: Path) -> None:
    """R10: verify stops with its name, and no push overwrites it."""
    project.measure(1)
    pushed(project)
    (path,) = (path for path in branches.runs(remote) if path.startswith("results/"))
    whole = git(remote, "cat-file", "blob", f"results:{path}")
    put(project, remote, path, whole[:50])
    damaged = branches.files(remote)[path]
    code, output = project.command("verify")
    assert code == 37
    assert f"{path} was changed: its bytes are not those that its name was made of" in output
    assert f"{path} was changed by commit" in output
    assert output.count("its bytes are not those") == 1  # told once
    assert output.endswith("the branch results of origin is not sound: 1 problem, named above")
    code, output = project.command("push")
    assert (code, f"{path} on the branch was changed: it is not" in output) == (37, True)
    other.measure(2)
    pushed(other)  # what others measured does not depend on it
    assert branches.files(remote)[path] == damaged
    put(project, remote, path, whole)
    code, output = project.command("verify")
    assert (code, "and is whole again" in output) == (0, True)
    assert output.splitlines()[-1].endswith(", 4 commits, by which 1 file was changed or removed, and put back")


def test_a_file_that_was_removed_from_the_branch_is_named(project: Project, remote: Path) -> None:
    project.measure(1)
    pushed(project)
    (path,) = (path for path in branches.runs(remote) if path.startswith("evidence/"))
    put(project, remote, path, None)
    code, output = project.command("verify")
    assert (code, f"{path} was removed by commit" in output) == (37, True)
    assert output.count("was removed by commit") == 1


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("results/here/notes.txt", "'results/here/notes.txt' is no file of a results branch"),
        (f"results/here/{STEM}.json", f"'results/here/{STEM}.json' is no file of a results branch"),
        ("results/a:b/machine.json", "'results/a:b/machine.json' is no file of a results branch"),
        ("results/benchmarks.json", "results/benchmarks.json is not strict JSON"),
        ("results/here/machine.json", "results/here/machine.json is not strict JSON"),
    ],
)
def test_whatever_does_not_belong_on_the_branch_is_named(
    project: Project, remote: Path, path: str, reason: str
) -> None:
    project.measure(1)
    pushed(project)
    put(project, remote, path, "x")
    code, output = project.command("verify")
    assert (code, reason in output) == (37, True), output


def test_a_readme_beside_the_results_is_allowed(project: Project, remote: Path) -> None:
    project.measure(1)
    pushed(project)
    put(project, remote, "README.md", "what this is")
    code, output = project.command("verify")
    assert (code, "not ours, and left alone: 'README.md'" in output) == (0, True)
    project.measure(2)
    pushed(project)
    assert "README.md" in branches.files(remote)


def test_a_list_of_benchmarks_that_cannot_be_read_is_not_overwritten(project: Project, remote: Path) -> None:
    """R10: it is never read as empty."""
    project.measure(1)
    pushed(project)
    put(project, remote, paths_module.BENCHMARKS, '{"time_old": ')
    before = branches.files(remote)
    project.measure(2)
    code, output = project.command("push")
    assert (code, "results/benchmarks.json on the branch 'results' is not strict JSON" in output) == (37, True)
    assert branches.files(remote) == before


def test_a_folder_can_be_verified(project: Project) -> None:
    project.measure(1)
    assert project.command("verify", "--folder", str(project.folder))[0] == 0
    path = project.evidence / f"here/{STEM}.json"
    path.write_text("{")
    code, output = project.command("verify", "--folder", str(project.folder))
    assert (code, str(path) in output) == (37, True)


def test_no_branch_yet_says_so(project: Project) -> None:
    for command in ("pull", "verify"):
        code, output = project.command(command)
        assert (code, output) == (
            8,
            "'origin' has no branch 'results' yet: 'machmeter results push' makes it",
        )


def test_the_first_run_has_nothing_to_pull(project: Project) -> None:
    assert project.command("pull", "--if-any") == (
        0,
        "'origin' has no branch 'results' yet: 'machmeter results push' makes it\n",
    )


# Pulling


def test_a_pull_brings_what_others_measured_and_keeps_what_is_here(project: Project, other: Project) -> None:
    other.measure(1, value=1.0)
    other.measure(2, "there", benchmarks=("time_there",))
    pushed(other)
    project.measure(1, value=2.0, started=1_700_000_100_000)
    mine = (project.results / f"here/{STEM}.json").read_bytes()
    code, output = project.command("pull")
    assert code == 0, output
    assert (project.results / f"here/{STEM}.json").read_bytes() == mine
    assert len(list(project.results.glob(f"here/{STEM}*.json"))) == 2
    assert (project.results / "there/machine.json").is_file()
    assert "gained 1 benchmark\n" in output
    assert sorted(json.loads((project.results / "benchmarks.json").read_text())) == ["time_a", "time_there", "version"]
    assert project.command("pull")[1].startswith("pulled 0 files")
    assert project.command("verify", "--folder", str(project.folder))[0] == 0


def test_what_was_pushed_from_here_is_not_pulled_again(project: Project) -> None:
    project.measure(1, run="r1")
    project.measure(1, run="r2")
    pushed(project)
    before = sorted_files(project.folder)
    assert project.command("pull")[1] == "pulled 0 files from the branch results of origin; 3 were here\n"
    assert sorted_files(project.folder) == before


def test_a_pulled_store_can_be_pushed_again(project: Project, other: Project) -> None:
    other.measure(1)
    pushed(other)
    assert project.command("pull")[0] == 0
    assert pushed(project).startswith("nothing to push")


def test_a_machine_whose_note_differs_keeps_the_local_one(project: Project, other: Project) -> None:
    other.measure(1)
    pushed(other)
    project.measure(1)
    note = project.results / "here/machine.json"
    note.write_text(note.read_text().replace("Some CPU", "Other CPU"))
    code, output = project.command("pull")
    assert (code, f"kept: {note} differs from that of the branch" in output) == (0, True)
    assert "Other CPU" in note.read_text()


def test_a_pull_leaves_out_what_is_damaged_and_brings_the_rest(project: Project, other: Project, remote: Path) -> None:
    other.measure(1)
    other.measure(2)
    pushed(other)
    damaged = next(path for path in branches.runs(remote) if path.startswith(f"results/here/{STEM}"))
    put(other, remote, damaged, "{")
    code, output = project.command("pull")
    assert (code, f"{damaged} on the branch was changed" in output) == (37, True)
    assert not (project.folder / damaged).exists()
    assert len(list(project.results.glob("here/*-env.*.json"))) == 1


def test_a_pull_into_another_folder(project: Project, tmp_path: Path) -> None:
    project.measure(1)
    pushed(project)
    code, output = project.command("pull", "--output", str(tmp_path / "out"))
    assert (code, output) == (0, "pulled 4 files from the branch results of origin\n")
    assert len(list((tmp_path / "out").rglob("*.json"))) == 4


# What readers make of it


def test_the_newest_value_of_each_benchmark_counts(tmp_path: Path) -> None:
    """Two files of one commit: which of them is newer differs from benchmark to benchmark."""
    early, late = 1_700_000_000_000, 1_700_000_900_000
    one = {"b.time_a": asvstore.result([1.0], started=late), "b.time_b": asvstore.result([1.0], started=early)}
    two = {"b.time_a": asvstore.result([2.0], started=early), "b.time_b": asvstore.result([2.0], started=late + 1)}
    asvstore.write(tmp_path, 1, one, file=f"{STEM}.0000000000000001.json")
    asvstore.write(tmp_path, 1, two, file=f"{STEM}.0000000000000002.json")
    history = read(tmp_path)
    values = {series.benchmark.name: series.value.tolist() for series in history.series}
    assert values == {"b.time_a": [1.0], "b.time_b": [2.0]}
    assert len(history.runs) == 1
    (file,), _ = cell_values.read_all(tmp_path)
    assert {name: value.number for (name, _), value in file.values.items()} == {"b.time_a": 1.0, "b.time_b": 2.0}


def test_states_of_one_growing_file_are_no_competing_measurements(tmp_path: Path) -> None:
    """asv's second file repeats the first: only what was measured again gave way to something newer."""
    same = asvstore.result([1.0], started=1_700_000_000_000)
    again = asvstore.result([3.0], started=1_700_000_900_000)
    asvstore.write(tmp_path, 1, {"time_a": same, "time_b": same}, file=f"{STEM}.0000000000000001.json")
    asvstore.write(tmp_path, 1, {"time_a": same, "time_b": again}, file=f"{STEM}.0000000000000002.json")
    history = read(tmp_path)
    assert [(item.path, item.reason) for item in history.left_out] == [
        (f"here/{STEM}.0000000000000001.json", "1 results: another file has newer ones of this commit")
    ]


def test_a_newer_failure_counts_and_what_was_skipped_does_not(tmp_path: Path) -> None:
    early, late = 1_700_000_000_000, 1_700_000_900_000
    first = {"time_a": asvstore.result([1.0], started=early), "time_b": asvstore.result([1.0], started=early)}
    second = {"time_a": asvstore.result([None], started=late), "time_b": asvstore.result([float("nan")], started=late)}
    asvstore.write(tmp_path, 1, first, file=f"{STEM}.0000000000000002.json")
    asvstore.write(tmp_path, 1, second, file=f"{STEM}.0000000000000001.json")
    series = {item.benchmark.name: item for item in read(tmp_path).series}
    assert series["time_a"].state.tolist() != [OK]
    assert (series["time_b"].state.tolist(), series["time_b"].value.tolist()) == ([OK], [1.0])
    (file,), _ = cell_values.read_all(tmp_path)
    assert {name: value.number for (name, _), value in file.values.items()} == {"time_a": None, "time_b": 1.0}


def test_evidence_in_several_files_is_read_as_one(project: Project) -> None:
    """A growing file with two runs, and beside it a pulled file with one of them and one with a third."""
    for run in ("r1", "r2"):
        project.measure(1, run=run)
    folder = project.evidence / "here"
    whole = json.loads((folder / f"{STEM}.json").read_text())
    one = {**whole, "runs": {"r1": whole["runs"]["r1"]}}
    third = {**whole, "runs": {"r3": whole["runs"]["r1"]}}
    for number, content in enumerate((one, third)):
        (folder / f"{STEM}.{number:016x}.json").write_text(json.dumps(content))
    (content,), notes = evidence.read_all(folder)
    assert (sorted(content["runs"]), notes) == (["r1", "r2", "r3"], [])


def test_what_was_pulled_counts_as_measured(project: Project) -> None:
    """A sweep asks for the runs at one commit in one environment; another's name may begin like it."""
    folder = project.evidence / "here"
    project.measure(1, run="r1")
    project.measure(2, run="r9")
    whole = json.loads((folder / f"{STEM}.json").read_text())
    similar = {**whole, "environment": "env.1", "runs": {"r3": whole["runs"]["r1"]}}
    pulled = {**whole, "runs": {"r2": whole["runs"]["r1"]}}
    (folder / f"{STEM}.0123456789abcdef.json").write_text(json.dumps(pulled))
    (folder / f"{STEM}.1.json").write_text(json.dumps(similar))
    assert sorted(evidence.runs_at(folder / f"{STEM}.json")) == ["r1", "r2"]
    (folder / f"{STEM}.json").unlink()
    assert sorted(evidence.runs_at(folder / f"{STEM}.json")) == ["r2"]


def test_of_two_states_of_one_run_the_later_is_read(project: Project) -> None:
    project.measure(1, run="r1")
    folder = project.evidence / "here"
    whole = json.loads((folder / f"{STEM}.json").read_text())
    early = json.loads(json.dumps(whole))
    early["runs"]["r1"]["cells"] = {}
    (folder / f"{STEM}.ffffffffffffffff.json").write_text(json.dumps(early))
    (content,), _ = evidence.read_all(folder)
    assert list(content["runs"]["r1"]["cells"]) == ["a"]


@pytest.fixture
def pulled(tmp_path: Path, remote: Path) -> Path:
    """A checkout of a branch with what machmeter's own store has."""
    source = branches.project(tmp_path / "source", remote)
    stores.own(source.results)
    pushed(source)
    folder = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", "--branch", "results", str(remote), str(folder)], check=True)
    return folder


def test_the_site_is_built_of_a_checkout(pulled: Path, tmp_path: Path) -> None:
    output = tmp_path / "html"
    build.run(build.Request(results=pulled / "results", output=output, title="suite"), lambda step, done, of: None)
    assert (output / "index.html").is_file()
    history = read(pulled / "results")
    assert (len(history.commits), history.left_out) == (3, ())
    assert "openvino" in (output / "index.html").read_text()


ASV_MODULE = "def time_nothing():\n    pass\n\n\ndef track_number():\n    return 7\n"


def test_asv_publishes_and_compares_a_pulled_store(tmp_path: Path, remote: Path) -> None:
    """Real asv measures a commit twice; both runs are pushed, and pulled elsewhere asv's own commands work."""
    configuration = {"version": 1, "project": "p", "repo": ".", "branches": ["main"], "environment_type": "virtualenv"}
    source = branches.project(tmp_path / "source", remote)
    (source.folder / "asv.conf.json").write_text(json.dumps(configuration))
    (source.folder / "benchmarks").mkdir()
    (source.folder / "benchmarks/__init__.py").write_text("")
    (source.folder / "benchmarks/small.py").write_text(ASV_MODULE)
    git(source.folder, "add", "--all")
    git(source.folder, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "-m", "suite")
    git(source.folder, "push", "--quiet", "origin", "main")

    def asv(folder: Path, *arguments: str) -> str:
        variables = {**os.environ, "HOME": str(tmp_path)}
        command = [sys.executable, "-m", "asv", *arguments]
        answer = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout + answer.stderr

    asv(source.folder, "machine", "--yes", "--machine", "here")
    for commit in ("HEAD~1", "HEAD", "HEAD"):
        name = git(source.folder, "rev-parse", commit).strip()
        options = ["--python=same", "--quick", "--machine", "here", "--set-commit-hash", name]
        asv(source.folder, "run", *options)
        pushed(source)
    assert len([path for path in branches.runs(remote) if path.startswith("results/")]) == 3
    folder = tmp_path / "elsewhere"
    subprocess.run(["git", "clone", "--quiet", str(remote), str(folder)], check=True)
    assert Project(folder).command("pull")[0] == 0
    assert "Skipping" not in asv(folder, "publish")
    index = json.loads((folder / "html/index.json").read_text())
    assert sorted(index["benchmarks"]) == ["small.time_nothing", "small.track_number"]
    (graph,) = (
        path for path in (folder / "html/graphs").rglob("small.track_number.json") if "summary" not in str(path)
    )
    assert [point[1] for point in json.loads(graph.read_text())] == [7, 7]
    compared = asv(folder, "compare", "--machine", "here", "HEAD~1", "HEAD")
    assert "small.track_number" in compared


# The budget


def test_the_size_budget_is_computed_from_the_runs_that_are_here(project: Project) -> None:
    project.measure(1)
    project.measure(2)
    code, output = project.command("size", "--years", "3", "--machines", "4")
    assert code == 0
    here, forecast, packed, plain = output.splitlines()
    assert here.startswith("here: 2 runs on 1 machine; a run is 1 cell in 2.0 files, ")
    assert (
        forecast
        == "3 years of 1 run a day on each of 4 machines: 4\N{NO-BREAK SPACE}380 runs, 8\N{NO-BREAK SPACE}760 files"
    )
    assert packed.startswith("  in git       ")
    assert plain.startswith("  checked out  ")


def test_the_size_budget_is_what_git_really_takes(project: Project, remote: Path) -> None:
    """Pushed one by one and packed as a server packs, ten small runs take no more than was said, and not much less."""
    from machmeter.results_branch import collect, size

    for number in range(1, 11):
        project.measure(number, value=number / 7, started=1_700_000_000_000 + number)
        pushed(project)
    git(remote, "gc", "--quiet")
    packs = sum(path.stat().st_size for path in (remote / "objects/pack").iterdir() if path.suffix in (".pack", ".idx"))
    said = size.budget(collect.collect([collect.of_project(project.folder)]))
    computed = said.packed * said.runs + said.fixed
    assert 0.5 * computed < packs < computed
