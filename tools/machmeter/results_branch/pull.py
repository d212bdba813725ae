"""Bring the files of the branch here, beside what was measured here. A local file is never replaced or removed."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from machmeter import atomic
from machmeter.errors import BranchDamaged
from machmeter.results_branch import checks, paths
from machmeter.results_branch.checks import Unfit
from machmeter.results_branch.collect import Collected, Store, merge_benchmarks, read_file, shortened
from machmeter.results_branch.push import check_marker
from machmeter.results_branch.remote import Branch, Entry
from machmeter.text.numbers import plural

_PLAIN_MODES = ("100644", "100755")


@dataclass(kw_only=True)
class Pulled:
    """What a pull came to."""

    written: list[Path] = field(default_factory=list)
    present: int = 0  # files of runs that are here, be it as a part of a larger file
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def lines(self, branch: Branch) -> list[str]:
        """Return what to tell the user."""
        where = f"the branch {branch.name} of {branch.remote.name}"
        were = f"; {plural(self.present, 'was', 'were')} here" if self.present else ""
        return [*self.notes, f"pulled {plural(len(self.written), 'file')} from {where}{were}"]

    def check(self) -> None:
        """Raise BranchDamaged where a file could not be brought."""
        if self.problems:
            raise BranchDamaged(f"{shortened(self.problems)}; the other files were pulled")


def pull(branch: Branch, commit: str, into: Store, local: Collected) -> Pulled:
    """Write the files of `commit` into the folders of `into`, which have what is `local` already."""
    entries, done = branch.entries(commit), Pulled()
    check_marker(branch, entries)
    wanted: dict[str, tuple[Entry, paths.Place]] = {}
    for path, entry in entries.items():
        where = paths.place(path)
        if where is None or entry.mode not in _PLAIN_MODES:
            if where or path.startswith((f"{paths.RESULTS}/", f"{paths.EVIDENCE}/")):
                done.problems.append(f"{path!r} on the branch is no file of ours")
        elif path in local.files:
            done.present += 1
        elif where.kind != "marker":
            wanted[path] = entry, where
    contents = dict(branch.read(entry.object for entry, _ in wanted.values()))
    for path, (entry, where) in wanted.items():
        content = contents[entry.object]
        try:
            if content is None:
                raise Unfit("is too large")
            checks.by_place(where, content)
        except Unfit as problem:
            done.problems.append(f"{path} on the branch {problem}")
        else:
            _bring(_target(into, path), where, content, done)
    return done


def _target(into: Store, path: str) -> Path:
    top, _, rest = path.partition("/")
    return (into.results if top == paths.RESULTS else into.evidence) / rest


def _bring(target: Path, where: paths.Place, content: bytes, done: Pulled) -> None:
    if not os.path.lexists(target):
        _write(target, content)
        done.written.append(target)
        return
    try:
        here = read_file(target)
        if here == content:
            done.present += where.kind in ("result", "evidence")
        elif where.kind == "benchmarks":
            _add_benchmarks(target, here, content, done)
        elif where.kind == "machine":
            done.notes.append(f"kept: {target} differs from that of the branch")
        else:
            raise Unfit("was changed")
    except Unfit as problem:
        done.problems.append(
            f"{target} {problem}: it is kept, and the branch's was not written; move it away and pull again"
        )


def _add_benchmarks(target: Path, here: bytes, content: bytes, done: Pulled) -> None:
    """Add the descriptions of benchmarks that only the branch has."""
    ours, theirs = checks.benchmarks(here), checks.benchmarks(content)
    if more := theirs.keys() - ours.keys():
        _write(target, merge_benchmarks(theirs, ours))
        done.notes.append(f"{target} gained {plural(len(more), 'benchmark')}")
        done.written.append(target)


def _write(target: Path, content: bytes) -> None:
    atomic.write(target, content, "results")
