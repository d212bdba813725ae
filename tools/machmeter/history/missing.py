"""What has no number now: why, since when, and when it last had one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from machmeter.history.data import History, Series
from machmeter.store.columns import OK


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A series whose newest point has no number."""

    series: Series
    state: int
    reason: str  # "" where nobody knows
    since: int  # position in History.commits of the first point of this unbroken stretch
    last_number: int | None  # position of the newest point that has a number, None where there never was one


def still_run(history: History) -> list[Series]:
    """Return the series that the newest run of their machine and environment has: what was given up is no failure."""
    last = {(run.machine.key, run.environment.key): run.commit for run in history.runs}
    return [
        item
        for item in history.series
        if len(item) and int(item.commits[-1]) == last.get((item.machine.key, item.environment.key))
    ]


def missing(history: History) -> list[Missing]:
    """Return every series that is still run and whose newest point has no number, in the order of the history."""
    return [_missing(item) for item in still_run(history) if int(item.state[-1]) != OK]


def _missing(item: Series) -> Missing:
    others = np.flatnonzero(item.state != item.state[-1])
    first = int(others[-1]) + 1 if len(others) else 0
    numbers = np.flatnonzero(item.measured)
    return Missing(
        series=item,
        state=int(item.state[-1]),
        reason=item.reasons.get(len(item) - 1, ""),
        since=int(item.commits[first]),
        last_number=int(item.commits[numbers[-1]]) if len(numbers) else None,
    )
