"""Two runs on one machine side by side: pairs of series, their ratio by direction, and what only one of them has.

Pure. This says what differs, by how much and which way is better; whether a difference is more than noise is only
hinted at by asv's own intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from machmeter.history import environment_changes
from machmeter.history.data import Benchmark, History, Run, Series
from machmeter.metrics import Direction
from machmeter.store.columns import FAILED, NOT_AVAILABLE, NOT_RUN, OK, SKIPPED, STATES, UNREADABLE

Verdict = Literal["better", "worse", "same", "different"]

Identity = tuple[str, tuple[str, ...]]  # benchmark and parameters


@dataclass(frozen=True, kw_only=True)
class Point:
    """What one run has of one series."""

    benchmark: Benchmark
    params: tuple[str, ...]
    key: str  # of the series
    state: int
    value: float
    low: float
    high: float
    version: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Column:
    """Everything that one run measured."""

    run: Run
    points: Mapping[Identity, Point]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A benchmark that has a number in both runs."""

    base: Point
    head: Point
    ratio: float | None  # head over base; None where one of them is zero or negative
    verdict: Verdict
    overlap: bool | None  # of asv's intervals; None where one has none
    words: str  # "1.25", "unchanged at 0", "was 0, is 5"

    @property
    def effect(self) -> float:
        """Return how large the difference is, whichever way: 0 for none, the logarithm of the factor, or infinity."""
        if self.ratio is None:
            return 0.0 if self.base.value == self.head.value else math.inf
        return abs(math.log(self.ratio))


@dataclass(frozen=True, kw_only=True)
class Lone:
    """A benchmark that cannot be compared, and why."""

    name: str
    params: tuple[str, ...]
    reason: str
    base: Point | None = None
    head: Point | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two runs compared. Lists are in the order in which they should be read: failures first."""

    base: Run
    head: Run
    incomparable: str  # why no ratio of the two means anything, "" where they do
    failed: tuple[Lone, ...]  # has a number in base and failed in head
    refused: tuple[Lone, ...]  # another version of the benchmark, or another unit
    new: tuple[Lone, ...]
    removed: tuple[Lone, ...]
    still_without: tuple[Lone, ...]  # has no number in either
    pairs: tuple[Pair, ...]  # largest effect first, and the worse first among equals
    packages: tuple[environment_changes.Difference, ...]
    means: Mapping[str, tuple[float, int]]  # geometric mean of the ratios by unit and direction, and of how many

    @property
    def counts(self) -> dict[Verdict, int]:
        """Return how many pairs have each verdict."""
        found: dict[Verdict, int] = {"better": 0, "worse": 0, "same": 0, "different": 0}
        for pair in self.pairs:
            found[pair.verdict] += 1
        return found


def column(history: History, run: Run) -> Column:
    """Return what `run` measured."""
    points = {}
    for item in history.series:
        if (item.machine, item.environment) != (run.machine, run.environment):
            continue
        place = int(np.searchsorted(item.commits, run.commit))
        if place < len(item) and item.commits[place] == run.commit:
            points[item.benchmark.name, item.params] = _point(item, place)
    return Column(run=run, points=points)


def find(history: History, machine: str, environment: str, commit: str) -> Run | None:
    """Return the run on `machine` in `environment` (their keys or slugs) of the commit whose hash begins so."""
    for run in history.runs:
        if (
            machine in (run.machine.key, run.machine.slug)
            and environment in (run.environment.key, run.environment.slug)
            and history.commits[run.commit].hash.startswith(commit)
        ):
            return run
    return None


def _point(item: Series, place: int) -> Point:
    return Point(
        benchmark=item.benchmark,
        params=item.params,
        key=item.key,
        state=int(item.state[place]),
        value=float(item.value[place]),
        low=float(item.low[place]),
        high=float(item.high[place]),
        version=item.benchmark.versions[item.version[place]],
        reason=item.reasons.get(place, ""),
    )


def compare(base: Column, head: Column) -> Comparison:
    """Compare two runs."""
    lists: dict[str, list[Lone]] = {name: [] for name in ("failed", "refused", "new", "removed", "still_without")}
    pairs = []
    for identity in {**base.points, **head.points}:
        before, after = base.points.get(identity), head.points.get(identity)
        where, reason = _place(before, after)
        if where == "pairs" and before and after:
            pairs.append(_pair(before, after))
        elif where:
            lists[where].append(Lone(name=identity[0], params=identity[1], reason=reason, base=before, head=after))
    pairs.sort(key=lambda pair: (-pair.effect, pair.verdict != "worse", pair.head.benchmark.name, pair.head.params))
    return Comparison(
        base=base.run,
        head=head.run,
        incomparable=_incomparable(base.run, head.run),
        pairs=tuple(pairs),
        packages=tuple(environment_changes.packages(base.run, head.run)),
        means=_means(pairs),
        **{name: tuple(some) for name, some in lists.items()},
    )


_WITHOUT = (SKIPPED, NOT_AVAILABLE, NOT_RUN)  # nobody tried, or it cannot be


def _place(before: Point | None, after: Point | None) -> tuple[str, str]:
    """Return which list a benchmark belongs to ("" for none), and why."""
    there = before is not None and before.state == OK
    if after is None or after.state in _WITHOUT:
        if there:
            return "removed", (after.reason or STATES[after.state]) if after else "not in the newer run"
        return ("still_without", _why(before)) if before and before.state not in _WITHOUT else ("", "")
    if after.state in (FAILED, UNREADABLE):
        return ("failed", _why(after)) if there or before is None else ("still_without", _why(after))
    if before is None or not there:
        return "new", _why(before) if before else "not in the older run"
    if before.version != after.version:
        return "refused", "another version of the benchmark: it measures something else"
    if before.benchmark.unit != after.benchmark.unit:
        return "refused", f"the unit was {before.benchmark.unit or 'none'} and is {after.benchmark.unit or 'none'}"
    return "pairs", ""


def _why(point: Point | None) -> str:
    return (point.reason or STATES[point.state]) if point else ""


def _pair(before: Point, after: Point) -> Pair:
    ratio = after.value / before.value if before.value > 0.0 and after.value > 0.0 else None
    if ratio is not None and not 0.0 < ratio < math.inf:
        ratio = None
    bounds = (before.low, before.high, after.low, after.high)
    known = all(map(math.isfinite, bounds))
    return Pair(
        base=before,
        head=after,
        ratio=ratio,
        verdict=verdict(before.value, after.value, after.benchmark.direction),
        overlap=before.low <= after.high and after.low <= before.high if known else None,
        words=words(before.value, after.value),
    )


def verdict(before: float, after: float, direction: Direction | None) -> Verdict:
    """Return what a difference is: where nobody said which way is better, it is only "different"."""
    if before == after:
        return "same"
    if direction is None:
        return "different"
    return "better" if (after < before) == (direction == "lower") else "worse"


def words(before: float, after: float) -> str:
    """Return the ratio with three digits, or words where there is none: never NaN, Infinity or a division by zero."""
    if before == after:
        return f"unchanged at {before:.6g}"
    if before > 0.0 and after > 0.0 and 0.0 < (ratio := after / before) < math.inf:
        return f"{ratio:.3g}"
    return f"was {before:.6g}, is {after:.6g}"


def _incomparable(base: Run, head: Run) -> str:
    if base.machine.key != head.machine.key:
        return f"not comparable: measured on {base.machine.name} and on {head.machine.name}"
    differences = [
        found for found in environment_changes.host(base, head) if found[0] in environment_changes.INCOMPARABLE
    ]
    return f"not comparable: {environment_changes.text(differences)}" if differences else ""


def _means(pairs: Sequence[Pair]) -> dict[str, tuple[float, int]]:
    """Return the geometric mean over the pairs of each unit and direction: ratios of times and rates never mix."""
    logarithms: dict[str, list[float]] = {}
    for pair in pairs:
        if pair.ratio is not None:
            benchmark = pair.head.benchmark
            what = f"{benchmark.unit or 'no unit'}, {benchmark.direction or 'unknown'} is better"
            logarithms.setdefault(what.replace("unknown is better", "no direction"), []).append(math.log(pair.ratio))
    return {what: (math.exp(math.fsum(some) / len(some)), len(some)) for what, some in sorted(logarithms.items())}
