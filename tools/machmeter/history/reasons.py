"""What the evidence adds to a history: why a cell has no number, and what each run ran on.

asv keeps null for what failed and NaN both for what is not available and for what was not run; only the evidence
tells those apart and knows the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from machmeter.history.data import History, LeftOut, Run, Series
from machmeter.measure import settling
from machmeter.store import evidence
from machmeter.store.columns import FAILED, NOT_AVAILABLE, NOT_RUN, SKIPPED

_Where = tuple[str, str, str]  # folder of the machine, commit, environment


def add(history: History, folder: Path) -> History:
    """Return `history` with what the evidence in `folder` says of its runs and of the cells without a number."""
    found: dict[_Where, dict[str, Any]] = {}
    left_out = list(history.left_out)
    for machine in history.machines:
        contents = []
        for path in sorted((folder / machine.folder).glob("*.json")):
            content = settling.read(path)
            if content is None:
                where = f"{folder.name}/{path.relative_to(folder).as_posix()}"
                left_out.append(
                    LeftOut(path=where, reason="is unreadable: reasons and versions of its run are missing")
                )
            else:
                contents.append(content)
        for content in evidence.join(contents):
            key = (machine.folder, str(content.get("commit")), str(content.get("environment")))
            found.setdefault(key, {}).update(content["runs"])
    if not found:
        return replace(history, left_out=tuple(left_out))
    return replace(
        history,
        series=tuple(_explained(history, item, found) for item in history.series),
        runs=tuple(_described(history, run, found) for run in history.runs),
        left_out=tuple(left_out),
    )


def _where(history: History, item: Series | Run, commit: int) -> _Where:
    return item.machine.folder, history.commits[commit].hash, item.environment.name


def _described(history: History, run: Run, found: Mapping[_Where, Mapping[str, Any]]) -> Run:
    """Return `run` with the host, packages and swept version of the newest of its runs in the evidence."""
    told = found.get(_where(history, run, run.commit), {})
    newest = max(told.values(), key=lambda item: str(item.get("started", "")), default=None)
    if newest is None:
        return run
    packages = newest.get("versions")
    host, swept = newest.get("host"), newest.get("swept")
    return replace(
        run,
        host=host if isinstance(host, dict) else {},
        packages={str(name): str(text) for name, text in packages.items()} if isinstance(packages, dict) else {},
        swept=swept if isinstance(swept, dict) else None,
    )


def _explained(history: History, series: Series, found: Mapping[_Where, Mapping[str, Any]]) -> Series:
    """Return `series` with the reasons of its points without a number, and "n/a" and "not run" told apart."""
    missing = np.flatnonzero((series.state == FAILED) | (series.state == SKIPPED)).tolist()
    reasons: dict[int, str] = {}
    state = series.state
    cell = f"{series.benchmark.module}({series.label})"
    for point in missing:
        told = found.get(_where(history, series, int(series.commits[point])))
        if told is None:
            continue
        status, reason = _outcome(_records(told.values(), cell), series.benchmark.method)
        if series.state[point] == FAILED:
            if status == "failed":
                reasons[point] = reason
            continue
        if state is series.state:
            state = series.state.copy()
        state[point] = NOT_AVAILABLE if status == "n/a" else NOT_RUN
        if status in ("n/a", "interrupted", "failed") and reason:
            reasons[point] = reason
    return replace(series, state=state, reasons=reasons) if missing else series


def _records(runs: Iterable[Mapping[str, Any]], cell: str) -> list[Mapping[str, Any]]:
    return [record for run in runs for record in run.get("cells", {}).get(cell, {}).values()]


def _outcome(records: list[Mapping[str, Any]], method: str) -> tuple[str, str]:
    """Return status and reason of a cell: of the newest attempt, and of this very benchmark where that is on record."""
    own = [record for record in records if record.get("benchmark") == method] or records
    told = [record for record in own if record.get("status") in ("failed", "n/a")] or own
    newest = max(told, key=lambda record: float(record.get("started_at") or 0.0), default={})
    return str(newest.get("status", "")), str(newest.get("reason", ""))
