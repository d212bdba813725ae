"""Git answers for the folder that was named, whatever a hook told its children, and asks nobody."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from machmeter import asv_names, errors, git
from machmeter.pull_request import commits
from machmeter.results_branch import remote
from machmeter.runners import jobs
from machmeter.runners.machine_list import Runner
from machmeter.running import asv, stacks
from machmeter.store import commit_order

RUNNER = Runner(name="box", labels=("x",), stacks=("cpu",), threads=2, benchmarks=".", workflows=("x",))


def run(folder: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=n", "-c", "user.email=n@example.invalid"]
    command = ["git", "-C", str(folder), *settings, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def repository(folder: Path, name: str) -> str:
    """Make a repository whose only commit, remote and tag are called after `name`; return the commit."""
    (folder / "requirements").mkdir(parents=True)
    (folder / "requirements" / f"{name}.txt").write_text(f"{name}==1\n")
    run(folder, "init", "--quiet", "--initial-branch=main")
    run(folder, "add", "--all")
    run(folder, "commit", "--quiet", "-m", name)
    run(folder, "tag", name)
    run(folder, "remote", "add", "origin", f"https://example.invalid/{name}")
    return run(folder, "rev-parse", "HEAD")


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """Return our repository and its commit, in a hook of another one, which has a changed file."""
    commit = repository(tmp_path / "ours", "ours")
    repository(tmp_path / "other", "other")
    (tmp_path / "other" / "requirements" / "other.txt").write_text("changed")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other" / ".git" / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "other" / ".git" / "objects"))
    return tmp_path / "ours", commit


def cloned(folder: Path, commit: str) -> str:
    found = commits.find(folder, "HEAD", "HEAD")
    return sorted(path.name for path in commits.clone(found, commit, folder.parent / "clone").iterdir())[-1]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (lambda folder, commit: asv_names.commit_hash(folder) == commit, True),
        (lambda folder, commit: asv_names.has_uncommitted_changes(folder), False),
        (lambda folder, commit: commits.find(folder, "main", "HEAD").top.name, "ours"),
        (cloned, "requirements"),
        (lambda folder, commit: jobs.pending(folder, folder / "results", RUNNER, "cpu", 9) == [commit], True),
        (lambda folder, commit: [place.tags for place in (commit_order.order(folder) or {}).values()], [("ours",)]),
        (lambda folder, commit: commit_order.text_at(folder, commit, "requirements/ours.txt"), "ours==1\n"),
        (lambda folder, commit: stacks._check_committed(folder, "ours"), None),
        (lambda folder, commit: remote.find_remote(folder, "origin").push_to, "https://example.invalid/ours"),
        (lambda folder, commit: git.ask(folder, "tag"), "ours\n"),
        (lambda folder, commit: git.tell(folder, "cat-file", "-e", commit), None),
    ],
)
def test_in_a_hook_git_answers_for_the_folder_that_was_named(
    ours: tuple[Path, str], question: Callable[[Path, str], Any], answer: Any
) -> None:
    """A hook's GIT_DIR, work tree, index and objects are those of the repository that called it."""
    assert question(*ours) == answer


def test_a_branch_that_is_pushed_from_a_hook_is_that_of_the_remote(ours: tuple[Path, str], tmp_path: Path) -> None:
    """The bare repository for it is one of its own, and the hook's repository stays as it is."""
    before = sorted(path for path in (tmp_path / "other").rglob("*"))
    found = remote.find_remote(ours[0], str(ours[0]))
    (tmp_path / "bare").mkdir()
    assert remote.Branch(found, "main", tmp_path / "bare").fetch() == ours[1]
    assert sorted(path for path in (tmp_path / "other").rglob("*")) == before


def test_asv_is_not_told_of_the_hook_s_repository(ours: tuple[Path, str], tmp_path: Path) -> None:
    """It asks git for commits itself."""
    (tmp_path / "asv").mkdir()
    (tmp_path / "asv" / "__init__.py").write_text("")
    (tmp_path / "asv" / "__main__.py").write_text("import os, sys\nsys.exit('GIT_DIR' in os.environ)")
    assert asv.run([], ours[0], {**os.environ, "PYTHONPATH": str(tmp_path)}) == 0


def test_no_module_calls_git_past_the_one_that_knows_how() -> None:
    """Whatever a new module asks git is asked there."""
    package = Path(git.__file__).parent
    callers = {path.name for path in package.rglob("*.py") if '["git"' in path.read_text(encoding="utf-8")}
    assert callers == {"git.py"}


def test_where_git_fails_ask_has_no_answer_and_tell_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert git.ask(tmp_path / "nowhere", "status") is None
    assert git.ask(tmp_path, "rev-parse", "HEAD") is None
    with pytest.raises(errors.RunFailed, match="git nonsense failed: git: 'nonsense' is not a git command"):
        git.tell(tmp_path, "nonsense")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git.ask(tmp_path, "status") is None
    with pytest.raises(errors.RunFailed, match="git is not installed"):
        git.tell(tmp_path, "status")
