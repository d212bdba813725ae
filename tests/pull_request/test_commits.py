"""Which two commits are compared, and what is said where they cannot be."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from machmeter import errors
from machmeter.pull_request import commits


def git(folder: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=test", "-c", "user.email=test@example.invalid"]
    done = subprocess.run(["git", *settings, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path, name: str) -> str:
    (folder / name).write_text(name)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", name)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with `main` (two commits) and `topic` (two more on the first of them)."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "one")
    git(folder, "checkout", "--quiet", "-b", "topic")
    commit(folder, "first-push")
    commit(folder, "second-push")
    git(folder, "checkout", "--quiet", "main")
    commit(folder, "two")
    return folder


def test_base_is_where_head_parted_from_it(repository: Path) -> None:
    found = commits.find(repository, "main", "topic")
    parted, head, tip = (git(repository, "rev-parse", name) for name in ("main~1", "topic", "main"))
    assert (found.base, found.head, found.base_tip) == (parted, head, tip)
    assert found.lines() == [
        f"base {parted[:8]} (where topic parted from main), head {head[:8]} (topic)",
        f"main itself has moved on to {tip[:8]}: that is not compared",
    ]


def test_a_tag_a_hash_and_the_current_commit(repository: Path) -> None:
    git(repository, "tag", "-a", "-m", "v1", "v1", "main~1")
    found = commits.find(repository, "v1", "HEAD")
    assert (found.base, found.head) == (git(repository, "rev-parse", "main~1"), git(repository, "rev-parse", "main"))
    assert commits.find(repository, found.base[:9], found.head).base == found.base


def test_the_same_commit_twice_is_said(repository: Path) -> None:
    assert (
        "every difference is the noise of this machine (A/A)" in commits.find(repository, "topic", "topic").lines()[-1]
    )


@pytest.mark.parametrize("name", ["nosuch", "", "--all", "main:one", "0000000000000000000000000000000000000000"])
def test_a_name_that_is_no_commit(repository: Path, name: str) -> None:
    for pair in ((name, "main"), ("main", name)):
        with pytest.raises(errors.CommitUnknown, match="is no commit of this repository") as caught:
            commits.find(repository, *pair)
        assert caught.value.exit_code == 24


def test_outside_a_repository(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(errors.CommitUnknown, match="is not in a git repository"):
            commits.find(folder, "main", "HEAD")


def test_histories_that_are_not_related(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "--orphan", "other")
    commit(repository, "alone")
    with pytest.raises(errors.NoMergeBase, match="their histories are not related: name another base") as caught:
        commits.find(repository, "main", "other")
    assert caught.value.exit_code == 25


def test_a_shallow_clone_without_the_commit_in_common(repository: Path, tmp_path: Path) -> None:
    address = repository.as_uri()
    git(tmp_path, "clone", "--quiet", "--depth=1", "--no-single-branch", address, "shallow")
    with pytest.raises(errors.NoMergeBase, match="'git fetch --unshallow'"):
        commits.find(tmp_path / "shallow", "origin/main", "origin/topic")


def test_uncommitted_changes_are_refused_where_they_would_be_missed(repository: Path) -> None:
    """They are no part of the commit that is measured; a comparison of other commits does not concern them."""
    (repository / "one").write_text("changed")
    for head in ("HEAD", "main"):
        with pytest.raises(errors.Uncommitted, match="there are uncommitted changes") as caught:
            commits.find(repository, "main~1", head)
        assert caught.value.exit_code == 26
    assert commits.find(repository, "main", "topic").head == git(repository, "rev-parse", "topic")
    git(repository, "checkout", "--quiet", "one")
    (repository / "untracked").write_text("is not refused")
    commits.find(repository, "main~1", "HEAD")


def test_a_clone_has_one_commit_and_leaves_the_repository_alone(repository: Path, tmp_path: Path) -> None:
    found = commits.find(repository, "main", "topic")
    before = git(repository, "for-each-ref"), git(repository, "worktree", "list")
    folder = tmp_path / "clone"
    assert commits.clone(found, found.head, folder) == folder
    (folder / "left").write_text("by an earlier comparison")
    assert commits.clone(found, found.base, folder) == folder
    assert sorted(path.name for path in folder.iterdir()) == [".git", "one"]
    assert git(folder, "rev-parse", "HEAD") == found.base
    assert (git(repository, "for-each-ref"), git(repository, "worktree", "list")) == before
    # One that was damaged is made again.
    (folder / ".git" / "HEAD").unlink()
    commits.clone(found, found.head, folder)
    assert git(folder, "rev-parse", "HEAD") == found.head


def test_a_project_below_the_top_of_its_repository(repository: Path, tmp_path: Path) -> None:
    git(repository, "checkout", "--quiet", "topic")
    (repository / "inner").mkdir()
    git(repository, "mv", "one", "inner/one")
    commit(repository, "third-push")
    found = commits.find(repository / "inner", "HEAD", "HEAD")
    assert found.prefix == "inner"
    assert commits.clone(found, found.head, tmp_path / "clone") == tmp_path / "clone" / "inner"
