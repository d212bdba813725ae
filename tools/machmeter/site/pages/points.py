"""The newest points of a benchmark as a table, and what its series are called beside each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from machmeter.history.data import Series
from machmeter.site.links import commit_name, parameters
from machmeter.site.pages.shared import Site
from machmeter.store import columns
from machmeter.text import numbers

LISTED = 12  # rows of the static table: the newest; the data files have all


@dataclass(frozen=True, kw_only=True)
class Point:
    """What one series has at a commit."""

    value: float | None = None
    state: str = ""
    error: str = ""
    old: bool = False
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class PointRow:
    """What the series have at one commit."""

    commit: str
    hash: str
    orphan: bool
    date: int
    cells: Sequence[Point]


@dataclass(frozen=True, kw_only=True)
class Points:
    """The newest rows, and how many there are."""

    labels: Sequence[str]
    rows: Sequence[PointRow]
    total: int


def newest(chosen: Sequence[Series], ordered: Sequence[Series], site: Site) -> Points:
    """Return the newest points of the series `chosen`, which are some of `ordered`."""
    reached = reached_by(chosen)
    rows = []
    for at in reached[::-1][:LISTED].tolist():
        commit = site.history.commits[at]
        rows.append(
            PointRow(
                commit=commit_name(commit),
                hash=commit.hash,
                orphan=commit.orphan,
                date=commit.date,
                cells=[_cell(item, item.point(at)) for item in chosen],
            )
        )
    return Points(labels=[label(item, ordered) for item in chosen], rows=rows, total=len(reached))


def _cell(item: Series, point: int | None) -> Point:
    if point is None:
        return Point()
    state = int(item.state[point])
    return Point(
        value=float(item.value[point]) if state == columns.OK else None,
        state=columns.STATES[state],
        error=interval(item, point),
        old=bool(item.older[point]),
        reason=item.reasons.get(point, ""),
    )


def label(item: Series, among: Sequence[Series]) -> str:
    """Return what tells `item` from the others `among` which it is shown."""
    parts = [
        parameters(item),
        item.machine.name if len({other.machine.key for other in among}) > 1 else "",
        item.environment.label if len({other.environment.key for other in among}) > 1 else "",
    ]
    return " · ".join(part for part in parts if part) or item.benchmark.method


def interval(item: Series, point: int | None) -> str:
    """Return half the width of the confidence interval relative to the value, such as `± 1.2 %`."""
    if point is None:
        return ""
    value, low, high = (float(column[point]) for column in (item.value, item.low, item.high))
    if not value or not math.isfinite(low) or not math.isfinite(high):
        return ""
    half = 50 * abs(high / value - low / value)
    return f"± {numbers.digits(half, 2)} %" if math.isfinite(half) else ""


def reached_by(chosen: Sequence[Series]) -> NDArray[np.int32]:
    """Return the commits at which any of the series has a point, ascending."""
    return np.unique(np.concatenate([np.empty(0, np.int32), *(item.commits for item in chosen)]))
