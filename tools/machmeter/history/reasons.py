"""What the evidence adds to a history: why a cell has no number, and what each run ran on.

asv keeps null for what failed and NaN both for what is not available and for what was not run; only the evidence
tells those apart and knows the reason, of a failure that asv skipped too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from machmeter.history.data import History, LeftOut, Run, Series
from machmeter.measure import evidence_shape as shape
from machmeter.store import evidence, reading_runs, runs
from machmeter.store.columns import FAILED, NOT_AVAILABLE, NOT_RUN, SKIPPED
from machmeter.store.evidence import Outcome
from machmeter.store.runs import FolderOfRuns, Trouble
from machmeter.workload import names


def add(history: History, folder: Path) -> History:
    """Return `history` with what the evidence in `folder` says of its runs and of the cells without a number."""
    return add_read(history, folder, reading_runs.read(folder, (machine.folder for machine in history.machines)))


def add_read(history: History, folder: Path, read: Mapping[str, FolderOfRuns]) -> History:
    """Return what `add` does where the evidence of each machine's folder was `read` already, from `folder`."""
    unreadable = [
        LeftOut(
            path=f"{folder.name}/{path.relative_to(folder).as_posix()}",
            reason="is unreadable: reasons and versions of its run are missing",
        )
        for machine in history.machines
        for path in read[machine.folder].unreadable
    ]
    history = replace(history, left_out=(*history.left_out, *unreadable))
    told = _told(history, read)
    if not told:
        return history
    return replace(
        history,
        series=tuple(_explained(item, told) for item in history.series),
        runs=tuple(_described(run, told) for run in history.runs),
    )


@dataclass(kw_only=True)
class _Told:
    """What the evidence says of one machine and environment, by commit (its position in the history)."""

    known: NDArray[np.bool_]  # commits of which there is evidence at all
    runs: dict[int, list[runs.Run]] = field(default_factory=dict)
    trouble: dict[str, dict[int, list[Trouble]]] = field(default_factory=dict)  # by cell: where not all ended well


_Where = tuple[str, str]  # folder of the machine, environment


def _told(history: History, read: Mapping[str, FolderOfRuns]) -> dict[_Where, _Told]:
    position = {commit.hash: number for number, commit in enumerate(history.commits)}
    found: dict[_Where, _Told] = {}
    for machine in dict.fromkeys(machine.folder for machine in history.machines):
        for place in read[machine].places:
            commit = position.get(place.commit)
            if commit is None:
                continue
            told = found.setdefault((machine, place.environment), _Told(known=np.zeros(len(history.commits), np.bool_)))
            told.known[commit] = True
            told.runs.setdefault(commit, []).extend(place.runs)
            for cell in {cell for run in place.runs for cell in run.glance.trouble}:
                records = told.trouble.setdefault(cell, {}).setdefault(commit, [])
                records += [record for run in place.runs for record in _records(run, cell)]
    return found


def _records(run: runs.Run, cell: str) -> Sequence[Trouble]:
    """Return the records of a cell. Those that ended well say nothing, unless others of the cell did not."""
    if cell in run.glance.trouble:
        return run.glance.trouble[cell]
    return [runs.trouble(record) for record in run.cells[cell].values()] if cell in run.glance.cells else ()


def _described(run: Run, told: Mapping[_Where, _Told]) -> Run:
    """Return `run` with the host, packages and swept version of the newest of its runs in the evidence."""
    where = told.get((run.machine.folder, run.environment.name))
    newest = max(where.runs.get(run.commit, ()) if where else (), key=lambda item: item.glance.started, default=None)
    if newest is None:
        return run
    about = newest.about
    return replace(run, host=evidence.host(about), packages=dict(about.versions), swept=about.swept)


def _explained(series: Series, told: Mapping[_Where, _Told]) -> Series:
    """Return `series` with the reasons of its points without a number, and what asv skipped told apart."""
    where = told.get((series.machine.folder, series.environment.name))
    missing = (series.state == FAILED) | (series.state == SKIPPED)
    if where is None or not (missing & where.known[series.commits]).any():
        return series
    method = series.benchmark.method
    state = np.where(missing & where.known[series.commits] & (series.state == SKIPPED), NOT_RUN, series.state)
    reasons: dict[int, str] = {}
    cell = names.in_evidence(f"{series.benchmark.module}({series.label})", method)
    for commit, records in where.trouble.get(cell, {}).items():
        point = series.point(commit)
        if point is None or not missing[point]:
            continue
        found = _outcome(tuple(records), method, int(series.state[point]))
        if found.reason:
            reasons[point] = found.reason
        state[point] = _STATES.get(found.status, NOT_RUN)
    return replace(series, state=state.astype(np.uint8), reasons=dict(sorted(reasons.items())))


def _outcome(records: tuple[Trouble, ...], method: str, state: int) -> Outcome:
    if len(records) > 1:
        return evidence.outcome([record.record() for record in records], method, state)
    (record,) = records
    return _outcome_of_one(record.benchmark, record.status, record.reason, method, state)


@lru_cache(4096)
def _outcome_of_one(benchmark: str, status: shape.Status, reason: str | None, method: str, state: int) -> Outcome:
    """Return what became of a cell with one record: the same on every night on which it cannot run."""
    record = Trouble(benchmark=benchmark, status=status, reason=reason, started_at=0.0, order=0)
    return evidence.outcome([record.record()], method, state)


_STATES = {"failed": FAILED, "n/a": NOT_AVAILABLE}
