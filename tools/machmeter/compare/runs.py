"""Two runs on one machine side by side: what became of every number that one of them has.

Pure. Each run has one value of a number, so it is judged by its size alone, as `verdicts` judges what is known once;
whether a difference is more than noise is only hinted at by the intervals that the series usually has.
`site/static/js/two_runs.js` judges alike, by the rules that `rules` returns.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from machmeter.compare import comparable, limits
from machmeter.history import environment_changes
from machmeter.history.data import Benchmark, History, Run, Series
from machmeter.metrics import Limit
from machmeter.store.columns import FAILED, NOT_AVAILABLE, NOT_RUN, OK, SKIPPED, STATES, UNREADABLE
from machmeter.text import two_numbers
from machmeter.text.numbers import digits, plural

Verdict = Literal["failed", "removed", "worse", "change", "better", "fixed", "new", "not comparable", "same"]

# In this order they are read.
ORDER: tuple[Verdict, ...] = (
    "failed", "removed", "worse", "change", "better", "fixed", "new", "not comparable", "same",
)  # fmt: skip

Rounding = Callable[[Series, float], float]
Identity = tuple[str, tuple[str, ...]]  # benchmark and parameters


@dataclass(frozen=True, kw_only=True)
class Point:
    """What one run has of one series."""

    series: Series
    state: int
    value: float
    version: str
    reason: str = ""

    @property
    def benchmark(self) -> Benchmark:
        """Return what was measured."""
        return self.series.benchmark

    @property
    def noise(self) -> float:
        """Return half the interval that such a value of the series usually has; 0 where none is known."""
        share = spread(self.series)
        return share * abs(self.value) if share > 0.0 else 0.0


@dataclass(frozen=True, kw_only=True)
class Column:
    """Everything that one run measured."""

    run: Run
    points: Mapping[Identity, Point]


@dataclass(frozen=True, kw_only=True)
class Row:
    """What became of one number."""

    verdict: Verdict
    about: Point  # the newer of the two, where both are there
    before: float | None  # None where the older run has no number
    after: float | None
    words: str = ""  # by how much: "+20.0 %", "from 0 ns to 5.000 s"; "" where that says nothing
    reason: str = ""  # why there is no number, or why two are not compared

    @property
    def size(self) -> float | None:
        """Return how large the difference is, None where nothing is said of it."""
        if not self.words or self.before is None or self.after is None:
            return None
        return two_numbers.size(self.before, self.after)

    @property
    def name(self) -> str:
        """Return the benchmark with its parameters."""
        return f"{self.about.benchmark.name}({', '.join(self.about.series.params)})"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two runs compared. Rows are in the order in which they should be read: failures first, then by effect."""

    base: Run
    head: Run
    incomparable: str  # why no ratio of the two means anything, "" where they do
    rows: tuple[Row, ...]

    @property
    def summary(self) -> str:
        """Return how many rows have each verdict, and the mean of what both runs have."""
        if not self.rows:
            return "These two have no number in common."
        counts = Counter(row.verdict for row in self.rows)
        told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ORDER if counts[verdict])
        return f"{plural(len(self.rows), 'number')}: {told}.{_mean(self.rows)}"


def column(history: History, run: Run, rounding: Rounding = lambda series, value: value) -> Column:
    """Return what `run` measured, each value as `rounding` returns it."""
    points = {}
    for item in history.series:
        if (item.machine, item.environment) != (run.machine, run.environment):
            continue
        place = item.point(run.commit)
        if place is not None:
            points[item.benchmark.name, item.params] = _point(item, place, rounding)
    return Column(run=run, points=points)


def _point(item: Series, place: int, rounding: Rounding) -> Point:
    is_number = int(item.state[place]) == OK
    return Point(
        series=item,
        state=int(item.state[place]),
        value=rounding(item, float(item.value[place])) if is_number else math.nan,
        version=item.benchmark.versions[item.version[place]],
        reason=item.reasons.get(place, ""),
    )


def spread(item: Series) -> float:
    """Return the typical half-width of an interval as a share of the value, with six digits; NaN where none is known.

    A smaller difference means nothing.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = (item.high - item.low) / 2 / np.abs(item.value)
    share = share[np.isfinite(share)]
    return float(f"{np.partition(share, len(share) // 2)[len(share) // 2]:.6g}") if len(share) else math.nan


def compare(base: Column, head: Column) -> Comparison:
    """Compare two runs."""
    incomparable = comparable.between_runs(base.run, head.run)
    rows = [
        row
        for identity in {**base.points, **head.points}
        if (row := _row(base.points.get(identity), head.points.get(identity), comparable=not incomparable))
    ]
    rows.sort(key=lambda row: (ORDER.index(row.verdict), -(row.size or 0.0), row.name))
    return Comparison(base=base.run, head=head.run, incomparable=incomparable, rows=tuple(rows))


def _row(before: Point | None, after: Point | None, *, comparable: bool) -> Row | None:
    about = after or before
    kind = _KINDS[_state(before)][_state(after)]
    if about is None or not kind:
        return None
    old, new = (point.value if point and point.state == OK else None for point in (before, after))
    if kind != "pair" or before is None or after is None:
        verdict: Verdict = "not comparable" if kind == "pair" else kind
        return Row(verdict=verdict, about=about, before=old, after=new, reason=_why(verdict, before, after))
    refused = _refused(before, after)
    if refused or not comparable:
        return Row(verdict="not comparable", about=about, before=old, after=new, reason=refused)
    return Row(
        verdict=judge(before, after),
        about=about,
        before=old,
        after=new,
        words=two_numbers.words(before.value, after.value, after.benchmark.unit),
    )


def judge(before: Point, after: Point) -> Verdict:
    """Say what became of a number: a difference counts from the limit of its metric, and from its usual noise."""
    numbers, direction = (before.value, after.value), after.benchmark.direction
    found = two_numbers.outcome(*numbers, direction, limit(after.benchmark).least(before.value, once=True))
    if found not in ("same", "unknown"):  # the intervals are looked at only where they matter: it takes a while
        found = two_numbers.outcome(*numbers, direction, before.noise + after.noise)
    return "not comparable" if found == "unknown" else found


def limit(benchmark: Benchmark) -> Limit:
    """Return what counts as a change of `benchmark`."""
    return limits.limit(benchmark.method, benchmark.unit)


def smallest(found: Limit, one: float = 1.0) -> dict[str, float]:
    """Return what counts of a number that is known once, for `two_runs.js`; `one` of its unit in that of the limit."""
    return {"absolute": found.absolute / one} if found.absolute else {"relative": found.smallest(1.0, once=True)}


# ------------------------------------------------------------------ what there is on either side

Kind = Literal["pair", "failed", "removed", "fixed", "new", ""]  # "": nothing to tell

_ABSENT = ""  # the state of what a run does not have
_WITHOUT = (_ABSENT, *(STATES[state] for state in (SKIPPED, NOT_AVAILABLE, NOT_RUN)))  # nobody tried, or it cannot be
_LOST = tuple(STATES[state] for state in (FAILED, UNREADABLE))


def _kind(before: str, after: str) -> Kind:
    """Return what two states of a number mean."""
    if after == STATES[OK]:
        return "pair" if before == after else "fixed" if before in _LOST else "new"
    if after in _LOST:
        return "failed" if before in (STATES[OK], _ABSENT) else ""
    return "removed" if before == STATES[OK] else ""


_KINDS: dict[str, dict[str, Kind]] = {
    before: {after: _kind(before, after) for after in (*STATES, _ABSENT)} for before in (*STATES, _ABSENT)
}


def _state(point: Point | None) -> str:
    return STATES[point.state] if point else _ABSENT


def _why(verdict: Verdict, before: Point | None, after: Point | None) -> str:
    if verdict == "new" and before is None:
        return "not in the older run"
    if verdict == "removed" and after is None:
        return "not in the newer run"
    without = before if verdict in ("new", "fixed") else after
    return (without.reason or _state(without)) if without else ""


def _refused(before: Point, after: Point) -> str:
    """Return why two numbers measure different things, "" where they do not."""
    if before.version != after.version:
        return "another version of the benchmark: it measures something else"
    if before.benchmark.unit != after.benchmark.unit:
        return f"the unit was {before.benchmark.unit or 'none'} and is {after.benchmark.unit or 'none'}"
    return ""


# ------------------------------------------------------------------ the whole


_LARGEST = 709.0  # logarithm of a number that can be written


def _mean(rows: Sequence[Row]) -> str:
    """Return the geometric mean of how much better a number became; of shares and decibels there is none."""
    logarithms = []
    for row in rows:
        benchmark = row.about.benchmark
        if not row.words or row.before is None or row.after is None or benchmark.direction is None:
            continue
        ratio = two_numbers.ratio(row.before, row.after)
        if ratio is not None and not two_numbers.is_told_as_difference(benchmark.unit):
            logarithms.append(math.log(ratio) if benchmark.direction == "higher" else -math.log(ratio))
    if not logarithms:
        return ""
    mean = math.exp(min(sum(logarithms) / len(logarithms), _LARGEST))
    return f" Geometric mean ×{digits(mean)} (above 1 is better) over the {len(logarithms)} that both have."


def rules() -> dict[str, Any]:
    """Return what `site/static/js/two_runs.js` judges by."""
    return {
        **two_numbers.rules(),
        "order": ORDER,
        "kinds": _KINDS,
        "incomparable": environment_changes.INCOMPARABLE,
        "readable": environment_changes.READABLE,
    }
