"""What the evidence adds to a history: why a cell has no number, and what each run ran on.

asv keeps null for what failed and NaN both for what is not available and for what was not run; only the evidence
tells those apart and knows the reason, of a failure that asv skipped too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from machmeter.history.data import History, LeftOut, Run, Series
from machmeter.measure import evidence_shape as shape
from machmeter.store import evidence
from machmeter.store.columns import FAILED, NOT_AVAILABLE, NOT_RUN, SKIPPED
from machmeter.workload import names

_Where = tuple[str, str, str]  # folder of the machine, commit, environment


def add(history: History, folder: Path) -> History:
    """Return `history` with what the evidence in `folder` says of its runs and of the cells without a number."""
    found: dict[_Where, list[shape.Run]] = {}
    left_out = list(history.left_out)
    for machine in history.machines:
        files = []
        for path in sorted((folder / machine.folder).glob("*.json")):
            file = evidence.read(path, samples=False)
            if file is None:
                where = f"{folder.name}/{path.relative_to(folder).as_posix()}"
                left_out.append(
                    LeftOut(path=where, reason="is unreadable: reasons and versions of its run are missing")
                )
            else:
                files.append(file)
        for file in evidence.join(files):
            found.setdefault((machine.folder, file.commit, file.environment), []).extend(file.runs.values())
    if not found:
        return replace(history, left_out=tuple(left_out))
    told = {where: (runs, evidence.by_cell(runs)) for where, runs in found.items()}
    return replace(
        history,
        series=tuple(_explained(history, item, told) for item in history.series),
        runs=tuple(_described(history, run, told) for run in history.runs),
        left_out=tuple(left_out),
    )


_Told = Mapping[_Where, tuple[list[shape.Run], Mapping[str, list[shape.Record]]]]


def _where(history: History, item: Series | Run, commit: int) -> _Where:
    return item.machine.folder, history.commits[commit].hash, item.environment.name


def _described(history: History, run: Run, told: _Told) -> Run:
    """Return `run` with the host, packages and swept version of the newest of its runs in the evidence."""
    runs, _ = told.get(_where(history, run, run.commit), ([], {}))
    newest = max(runs, key=lambda item: item.started, default=None)
    if newest is None:
        return run
    return replace(run, host=evidence.host(newest), packages=dict(newest.versions), swept=newest.swept)


def _explained(history: History, series: Series, told: _Told) -> Series:
    """Return `series` with the reasons of its points without a number, and what asv skipped told apart."""
    missing = np.flatnonzero((series.state == FAILED) | (series.state == SKIPPED)).tolist()
    reasons: dict[int, str] = {}
    state = series.state
    cell = f"{series.benchmark.module}({series.label})"
    for point in missing:
        where = _where(history, series, int(series.commits[point]))
        if where not in told:
            continue
        records = told[where][1].get(names.in_evidence(cell, series.benchmark.method), [])
        found = evidence.outcome(records, series.benchmark.method, int(series.state[point]))
        if found.reason:
            reasons[point] = found.reason
        if state is series.state:
            state = series.state.copy()
        state[point] = _STATES.get(found.status, NOT_RUN)
    return replace(series, state=state, reasons=reasons) if missing else series


_STATES = {"failed": FAILED, "n/a": NOT_AVAILABLE}
