"""Add the results of this machine to the branch: whole or not at all, on top of whatever others added meanwhile."""

from __future__ import annotations

import functools
import random
import time
from dataclasses import dataclass

from machmeter.errors import BranchBusy, BranchDamaged, NoResults, NotResultsBranch
from machmeter.json_shape import Json
from machmeter.results_branch import checks, paths
from machmeter.results_branch.checks import Unfit
from machmeter.results_branch.collect import Collected, merge_benchmarks
from machmeter.results_branch.remote import Branch, Entry, Raced
from machmeter.text.numbers import plural

ATTEMPTS = 40
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0  # seconds
_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Pushed:
    """What a push came to."""

    added: tuple[str, ...]  # paths of runs
    present: int  # runs that were on the branch
    derived: tuple[str, ...]
    commit: str | None
    attempts: int

    def lines(self, branch: Branch) -> list[str]:
        """Return what to tell the user."""
        where = f"the branch {branch.name} of {branch.remote.name}"
        were = f"; {plural(self.present, 'was', 'were')} there" if self.present else ""
        if self.commit is None:
            return [f"nothing to push: {plural(self.present, 'file is', 'files are')} on {where}"]
        tries = f" ({self.attempts} attempts: others pushed too)" if self.attempts > 1 else ""
        return [f"pushed {plural(len(self.added), 'file')} to {where}{were}{tries}"]


def push(found: Collected, branch: Branch) -> Pushed:
    """Add `found` to `branch`. What was on the branch is on it still. Raises NoResults, BranchDamaged or BranchBusy."""
    if not found.files:
        raise NoResults("there are no results to push yet: run 'make bench' or 'asv run'")
    ours = {path: branch.object_name(content) for path, content in found.files.items()}
    for attempt in range(1, ATTEMPTS + 1):
        tip = branch.fetch()
        entries = branch.entries(tip) if tip else {}
        if tip:
            check_marker(branch, entries)
        added = _missing(found, ours, entries)
        derived = _derived(found, branch, entries)
        done = functools.partial(
            Pushed, added=tuple(added), present=len(ours) - len(added), derived=tuple(derived), attempts=attempt
        )
        if not added and not derived:
            return done(commit=None)
        objects = branch.write({path: found.files[path] for path in added} | derived)
        commit = branch.commit(tip, objects, message(found, added, list(derived)))
        try:
            branch.push(commit)
        except Raced:
            _wait(attempt)
        else:
            return done(commit=commit)
    raise BranchBusy(
        f"others moved the branch {branch.name!r} first, {ATTEMPTS} times: nothing was pushed, and the results are "
        "still here; try again later"
    )


def _wait(attempt: int) -> None:
    """Sleep before the next attempt, each publisher for another time."""
    time.sleep(random.uniform(0.0, min(_LONGEST_WAIT, _FIRST_WAIT * 1.5**attempt)))


def check_marker(branch: Branch, entries: dict[str, Entry]) -> None:
    """Raise NotResultsBranch where the files `entries` of `branch` were not put there by a push of ours."""
    entry = entries.get(paths.MARKER)
    if entry is None:
        raise NotResultsBranch(
            f"the branch {branch.name!r} of {branch.remote.name!r} is not a results branch: it has no {paths.MARKER}; "
            "choose another name with --branch"
        )
    try:
        checks.marker(_content(branch, paths.MARKER, entry))
    except Unfit as problem:
        raise NotResultsBranch(f"{paths.MARKER} on the branch {branch.name!r} {problem}") from problem


def _missing(found: Collected, ours: dict[str, str], entries: dict[str, Entry]) -> list[str]:
    """Return the paths that the branch does not have. Raises BranchDamaged where it has other bytes under the name."""
    for path, name in ours.items():
        there = entries.get(path)
        if there and there.object != name:
            raise BranchDamaged(
                f"{path} on the branch was changed: it is not {found.sources[path]}, of which its name was made; "
                "nothing was pushed. 'machmeter results verify' lists all such files"
            )
    return [path for path in ours if path not in entries]


def _derived(found: Collected, branch: Branch, entries: dict[str, Entry]) -> dict[str, bytes]:
    """Return those derived files that must change: they gain what `found` has and lose nothing."""
    wanted: dict[str, bytes] = {}
    if paths.MARKER not in entries:
        wanted[paths.MARKER] = checks.MARKER
    if found.benchmarks:
        wanted[paths.BENCHMARKS] = merge_benchmarks(_benchmarks(branch, entries), found.benchmarks)
    for machine, note in {**found.guessed, **found.machines}.items():
        path = f"{paths.RESULTS}/{machine}/{paths.MACHINE}"
        if machine in found.machines or path not in entries:
            wanted[path] = note
    return {
        path: content
        for path, content in wanted.items()
        if path not in entries or branch.object_name(content) != entries[path].object
    }


def _benchmarks(branch: Branch, entries: dict[str, Entry]) -> Json:
    entry = entries.get(paths.BENCHMARKS)
    if entry is None:
        return {}
    try:
        return checks.benchmarks(_content(branch, paths.BENCHMARKS, entry))
    except Unfit as problem:
        raise BranchDamaged(
            f"{paths.BENCHMARKS} on the branch {branch.name!r} {problem}: it is not overwritten, and nothing was "
            "pushed; put an older version of it back with git"
        ) from problem


def _content(branch: Branch, path: str, entry: Entry) -> bytes:
    ((_, content),) = branch.read([entry.object])
    if content is None:
        raise Unfit("is too large")
    return content


def message(found: Collected, added: list[str], derived: list[str]) -> str:
    """Return the commit message: which machines, which commits."""
    by_machine: dict[str, dict[str, None]] = {}
    for path in added:
        by_machine.setdefault(path.split("/")[1], {})[found.commits[path][:8]] = None
    parts = []
    for machine, commits in by_machine.items():
        more = f" and {len(commits) - _SHOWN} more" if len(commits) > _SHOWN else ""
        parts.append(f"{machine} at {', '.join(list(commits)[:_SHOWN])}{more}")
    if not parts:
        return f"Update {', '.join(derived)}\n"
    return f"Add results of {'; '.join(parts)}\n\n{plural(len(added), 'file')} of runs.\n"
