"""What a remote or a clone can be like: errors in one line, no login repeated, nothing of the user's changed."""

from __future__ import annotations

import http.server
import subprocess
import threading
from pathlib import Path
from typing import ClassVar

import pytest

from helpers import git_remotes as branches
from helpers.git_remotes import Project, git
from helpers.results_branch import pushed, put, sorted_files
from machmeter.results_branch import paths as paths_module


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
