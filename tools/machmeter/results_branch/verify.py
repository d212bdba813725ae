"""Whether every file of the branch is what its name says, and none was ever changed or removed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from machmeter.errors import BranchDamaged
from machmeter.results_branch import checks, paths
from machmeter.results_branch.checks import Unfit
from machmeter.results_branch.collect import Collected
from machmeter.results_branch.push import check_marker
from machmeter.results_branch.remote import Branch, Entry
from machmeter.text.numbers import plural

_PLAIN_MODE = "100644"
_DERIVED = ("benchmarks", "machine", "marker")


@dataclass(kw_only=True)
class Verified:
    """What was found."""

    files: int = 0
    size: int = 0  # bytes
    commits: int = 0
    restored: set[str] = field(default_factory=set)  # files that were changed or removed, and put back
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def lines(self, what: str) -> list[str]:
        """Return what to tell the user."""
        size = f"{plural(self.files, 'file')} of runs, {self.size / 1e6:.1f} MB"
        sound = "" if self.problems else f"sound: {what}: {size}{self._history()}"
        return [*self.notes, *self.problems, *([sound] if sound else [])]

    def _history(self) -> str:
        """Return what the commits did, where there are any."""
        if not self.commits:
            return ""
        if not self.restored:
            return f", {plural(self.commits, 'commit')} that changed or removed none"
        were = f"{plural(len(self.restored), 'file was', 'files were')} changed or removed, and put back"
        return f", {plural(self.commits, 'commit')}, by which {were}"

    def check(self, what: str) -> None:
        """Raise BranchDamaged where anything is not as it should be; `lines` has told what."""
        if self.problems:
            raise BranchDamaged(f"{what} is not sound: {plural(len(self.problems), 'problem')}, named above")


def verify_branch(branch: Branch, commit: str) -> Verified:
    """Check all files of `commit` and the history that led to it, which must be fetched."""
    entries, done = branch.entries(commit), Verified()
    check_marker(branch, entries)
    places: dict[str, tuple[Entry, paths.Place]] = {}
    for path, entry in entries.items():
        where = paths.place(path)
        ours = path.startswith((f"{paths.RESULTS}/", f"{paths.EVIDENCE}/"))
        if where is None and not ours:
            done.notes.append(f"not ours, and left alone: {path!r}")
        elif where is None or entry.mode != _PLAIN_MODE:
            done.problems.append(f"{path!r} is no file of a results branch")
        else:
            places[path] = entry, where
    sound = _check_contents(branch, places, done)
    done.problems += _machines_without_note(places)
    _check_history(branch, commit, sound, done)
    return done


def _check_contents(branch: Branch, places: dict[str, tuple[Entry, paths.Place]], done: Verified) -> set[str]:
    """Check the bytes of every file, and return the paths of those that are sound."""
    of_object: dict[str, list[str]] = {}
    for path, (entry, _) in places.items():
        of_object.setdefault(entry.object, []).append(path)
    sound = set()
    for name, content in branch.read(of_object):
        for path in of_object[name]:
            where = places[path][1]
            try:
                if content is None:
                    raise Unfit("is too large")
                checks.by_place(where, content)
            except Unfit as problem:
                done.problems.append(f"{path} {problem}")
                continue
            sound.add(path)
            if where.hash:
                done.files += 1
                done.size += len(content)
    done.problems.sort()
    return sound


def _machines_without_note(places: dict[str, tuple[Entry, paths.Place]]) -> list[str]:
    with_results = {where.machine for _, where in places.values() if where.kind == "result"}
    noted = {where.machine for _, where in places.values() if where.kind == "machine"}
    missing = sorted(with_results - noted)
    return [f"{paths.RESULTS}/{name}/{paths.MACHINE} is missing: asv reads no folder without it" for name in missing]


def _check_history(branch: Branch, commit: str, sound: set[str], done: Verified) -> None:
    """Look for commits that changed or removed a file. What was put back since is only noted."""
    done.commits = int(branch.git("rev-list", "--count", commit).decode())
    for changing, status, path in _changes(branch, commit):
        where = paths.place(path)
        if where is None or (where.kind in _DERIVED and path in sound):
            continue
        what = f"{path} was {'removed' if status == 'D' else 'changed'} by commit {changing[:12]}"
        if path in sound:
            done.notes.append(f"{what}, and is whole again")
            done.restored.add(path)
        elif status == "D":
            done.problems.append(what)
        else:  # the file itself is among the problems: say who it was
            done.notes.append(what)


def _changes(branch: Branch, commit: str) -> Iterator[tuple[str, str, str]]:
    """Yield commit, status and path of every change that is no addition, newest first."""
    options = ["-z", "-m", "--no-renames", "--diff-filter=MDT", "--name-status", "--format=%x01%H"]
    parts = iter(branch.git("log", *options, commit).decode("utf-8", errors="surrogateescape").split("\0"))
    changing = ""
    for part in parts:
        if part.startswith("\x01"):
            changing = part[1:]
        elif status := part.strip("\n"):
            yield changing, status, next(parts)


def verify_folder(found: Collected) -> Verified:
    """Return what `collect` found of a folder, as a judgement."""
    done = Verified(files=len(set(found.sources.values())), problems=list(found.problems), notes=list(found.notes))
    done.size = sum(path.stat().st_size for path in set(found.sources.values()))
    return done
