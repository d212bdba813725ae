"""The two commits of a comparison: what was asked for, where they part, and a clone of each."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from machmeter import asv_names, git
from machmeter.errors import CommitUnknown, NoMergeBase, Uncommitted


@dataclass(frozen=True, kw_only=True)
class Commits:
    """What is compared: `head` with the commit from which it parted from what was asked for as base."""

    top: Path  # of the repository
    prefix: str  # where in it the project lies, "" at the top
    base: str
    head: str
    base_label: str  # as it was asked for
    head_label: str
    base_tip: str  # what was asked for as base, which may have moved on since

    def lines(self) -> list[str]:
        """Return what to say of it before anything is measured."""
        parted = f"where {self.head_label} parted from {self.base_label}"
        if self.base == self.base_tip:
            parted = self.base_label
        found = [f"base {self.base[:8]} ({parted}), head {self.head[:8]} ({self.head_label})"]
        if self.base_tip != self.base:
            found.append(f"{self.base_label} itself has moved on to {self.base_tip[:8]}: that is not compared")
        if self.base == self.head:
            found.append("both are the same commit: every difference is the noise of this machine (A/A)")
        return found


def find(project: Path, base: str, head: str) -> Commits:
    """Return the commits to compare. Raises CommitUnknown, NoMergeBase or Uncommitted before anything runs."""
    top, prefix = _ask(project, "rev-parse", "--show-toplevel"), _ask(project, "rev-parse", "--show-prefix")
    if top is None or prefix is None:
        raise CommitUnknown(f"{project} is not in a git repository: run this in a clone of the project")
    asked, wanted = _commit(project, base), _commit(project, head)
    shallow = _ask(project, "rev-parse", "--is-shallow-repository") == "true"
    parted = _ask(project, "merge-base", asked, wanted)
    if not parted:
        why = (
            "this clone is shallow: fetch the rest of its history with 'git fetch --unshallow'"
            if shallow
            else "their histories are not related: name another base"
        )
        raise NoMergeBase(f"{base} and {head} have no commit in common; {why}")
    if wanted == _commit(project, "HEAD") and asv_names.has_uncommitted_changes(project):
        raise Uncommitted(
            f"there are uncommitted changes, and what is measured is the commit {wanted[:8]}: commit them"
        )
    return Commits(
        top=Path(top),
        prefix=prefix.rstrip("/"),
        base=parted.split()[0],
        head=wanted,
        base_label=base,
        head_label=head,
        base_tip=asked,
    )


def clone(commits: Commits, commit: str, folder: Path) -> Path:
    """Make `folder` a clone of the repository with `commit` checked out; return the project's folder in it.

    It borrows the repository's objects and changes nothing there: no branch, no worktree, no lock. asv takes the
    benchmarks from a working tree, never from a commit: each side has its own, so that a benchmark may be removed.
    Raises RunFailed with what git said.
    """
    kept = _ask(folder, "rev-parse", "--show-toplevel") == str(folder)
    if not kept or _ask(folder, "checkout", "--quiet", "--force", "--detach", commit) is None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        git.tell(None, "clone", "--quiet", "--shared", "--no-checkout", str(commits.top), str(folder))
        git.tell(folder, "checkout", "--quiet", "--force", "--detach", commit)
    git.tell(folder, "clean", "-ffdxq")
    return folder / commits.prefix


def _commit(project: Path, name: str) -> str:
    found = _ask(project, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if not found:
        raise CommitUnknown(f"{name!r} is no commit of this repository: fetch it, or name a branch, a tag or a hash")
    return found


def _ask(folder: Path, *arguments: str) -> str | None:
    """Return what git answers in `folder`, or None where it refuses."""
    answer = git.ask(folder, *arguments)
    return None if answer is None else answer.strip()
