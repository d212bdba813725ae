"""How things stand now: what has no number, why and since when; and how old the newest run of each machine is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from machmeter.history.data import Environment, History, Machine, Run, Series
from machmeter.store.columns import FAILED, NOT_AVAILABLE, OK, UNREADABLE

DAY = 86_400_000  # milliseconds
STALE_AFTER = 14  # days


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A series whose newest point has no number."""

    series: Series
    state: int
    reason: str  # "" where nobody knows
    since: int  # position in History.commits of the first point of this unbroken stretch
    commit: int  # of the newest point
    last_number: int | None  # position of the newest point that has a number, None where there never was one


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The newest run of one machine and environment."""

    machine: Machine
    environment: Environment
    run: Run
    age_days: float | None  # before `now`; None where asv did not say when it ran
    cells: int  # series that this run names
    ok: int
    failed: int  # unreadable ones too
    without: int  # n/a, not run or skipped

    @property
    def stale(self) -> bool:
        """Return whether nothing was measured for two weeks."""
        return self.age_days is not None and self.age_days > STALE_AFTER

    @property
    def failed_share(self) -> float:
        """Return the share of cells that should have a number and have none."""
        tried = self.ok + self.failed
        return self.failed / tried if tried else 0.0


def missing(history: History, states: Iterable[int] = (FAILED, UNREADABLE, NOT_AVAILABLE)) -> list[Missing]:
    """Return every series whose newest point is in one of `states`: failures first, those of the newest commit first.

    A cell is judged by the newest run of its machine and environment that names its benchmark.
    """
    wanted = set(states)
    found = []
    for item in history.series:
        if not len(item) or int(item.state[-1]) not in wanted:
            continue
        others = np.flatnonzero(item.state != item.state[-1])
        first = int(others[-1]) + 1 if len(others) else 0
        numbers = np.flatnonzero(item.state == OK)
        found.append(
            Missing(
                series=item,
                state=int(item.state[-1]),
                reason=item.reasons.get(len(item) - 1, ""),
                since=int(item.commits[first]),
                commit=int(item.commits[-1]),
                last_number=int(item.commits[numbers[-1]]) if len(numbers) else None,
            )
        )
    order = {FAILED: 0, UNREADABLE: 1}
    return sorted(found, key=lambda one: (order.get(one.state, 2), -one.commit))


def standings(history: History, now: int | None = None) -> list[Standing]:
    """Return the newest run of every machine and environment; `now` (milliseconds) is the time to tell ages from.

    Without it, ages are told from the newest run of all: the same store then always gives the same answer.
    """
    newest: dict[tuple[str, str], Run] = {}
    for run in history.runs:
        where = (run.machine.key, run.environment.key)
        if where not in newest or (run.started, run.commit) >= (newest[where].started, newest[where].commit):
            newest[where] = run
    counts: dict[tuple[str, str], list[int]] = {where: [0, 0, 0] for where in newest}
    for item in history.series:
        where = (item.machine.key, item.environment.key)
        place = int(np.searchsorted(item.commits, newest[where].commit))
        if place < len(item) and item.commits[place] == newest[where].commit:
            state = int(item.state[place])
            counts[where][0 if state == OK else 1 if state in (FAILED, UNREADABLE) else 2] += 1
    last = now if now is not None else max((run.started for run in history.runs), default=0)
    return [
        Standing(
            machine=run.machine,
            environment=run.environment,
            run=run,
            age_days=max(last - run.started, 0) / DAY if run.started else None,
            cells=sum(counts[where]),
            ok=counts[where][0],
            failed=counts[where][1],
            without=counts[where][2],
        )
        for where, run in newest.items()
    ]
