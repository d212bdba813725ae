"""Which measurements there should be: said by the list of machines, never by what was measured.

`benchmark-pr` leaves one artifact for each machine, `measurements-NAME`, with a folder for each of its stacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from machmeter.compare.documents import Measurements
from machmeter.errors import ArtifactUnusable
from machmeter.github import untrusted
from machmeter.runners.machine_list import Runner
from machmeter.text.inert import plain

PREFIX = "measurements-"  # of an artifact's name in benchmark-pr.yml


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Measurements that should be at `path`, and whose they are where somebody trusted has said so."""

    path: Path
    name: str  # as they are called where they cannot be used
    machine: str = ""
    stack: str = ""
    folder: Path | None = None  # that of the artifact

    def read(self, sha: str) -> Measurements:
        """Return the measurements of the commit `sha`. Raises ArtifactUnusable, also where they claim to be others."""
        if self.folder is not None:
            _check_folders(self.folder, self.path)
        found = untrusted.read(self.path)
        measured = found.head.commit
        if measured != sha:
            said = f"the commit {measured[:8]}" if measured else "no commit"
            raise ArtifactUnusable(f"they are of {said}, and {sha[:8]} was to be measured")
        if self.machine and found.machine != self.machine:
            raise ArtifactUnusable(f"they claim to be of the machine {plain(found.machine, 60)!r}")
        claimed = {side.stack for side in (found.base, found.head) if side.stack}
        if self.stack and claimed - {self.stack}:
            raise ArtifactUnusable(f"they claim to be of the stack {plain(min(claimed - {self.stack}), 60)!r}")
        return found


def of_files(paths: Iterable[Path]) -> list[Expected]:
    """Return what is expected of files that somebody names by hand: they say themselves whose they are."""
    return [Expected(path=path, name=called(path)) for path in paths]


def of_runners(folder: Path, runners: Sequence[Runner]) -> list[Expected]:
    """Return what is expected in `folder` of each machine that measures pull requests, with each of its stacks."""
    found = []
    for runner in runners:
        if "benchmark-pr" not in runner.workflows:
            continue
        left = folder / f"{PREFIX}{runner.name}"
        for stack in runner.stacks:
            name = runner.name if len(runner.stacks) == 1 else f"{runner.name}, stack {stack}"
            path = left / stack / untrusted.NAME
            found.append(Expected(path=path, name=name, machine=runner.name, stack=stack, folder=left))
    return found


def called(path: Path) -> str:
    """Return what measurements are called before anybody has read them: by their file, or its folder."""
    return (path.absolute().parent.name if path.name == untrusted.NAME else path.name) or str(path)


def _check_folders(folder: Path, path: Path) -> None:
    """Raise ArtifactUnusable where the artifact or the file is missing, or a link stands in for one of the folders."""
    for place in (folder, *reversed([one for one in path.parents if folder in one.parents])):
        if place.is_symlink():
            raise ArtifactUnusable(f"{plain(str(place), 200)} is a link (links are not followed)")
    if not folder.is_dir():
        raise ArtifactUnusable("its job has left nothing: it failed before it measured, or was cancelled")
    if not path.parent.is_dir():
        raise ArtifactUnusable("its job has left nothing of this stack: the log of the run says why")
