"""Judge steps by the metric's direction, say them in words, and put the most important first.

asv knows no direction: to it a throughput that halves has improved. Directions come from `metrics`, or from whoever
describes a foreign benchmark; where there is none, a change is a change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from machmeter.changes.detect import Step
from machmeter.changes.series import usable
from machmeter.metrics import Direction

Verdict = Literal["regression", "improvement", "change"]

# A regression counts like an improvement by the square of its factor: users lose by it until someone acts.
WEIGHTS: dict[Verdict, float] = {"regression": 2.0, "change": 1.5, "improvement": 1.0}
# From or to nothing has no factor; it ranks like this one, and so does any larger.
LARGEST_FACTOR = 1000.0
# From this factor on people say "20 times", not "+1900 %".
TIMES = 3.0


@dataclass(frozen=True, kw_only=True)
class Change:
    """A judged step. `ratio` is after over before: None where one of them is zero or negative and a ratio says nothing.

    `last_before` is the last point of the old level that has a value: the change came with a commit after that point
    and not after `index`. `importance` orders changes: weight of the verdict x log2 of the factor.
    """

    index: int
    last_before: int
    before: float
    after: float
    p: float
    verdict: Verdict
    ratio: float | None
    importance: float
    words: str


def judge(values: npt.ArrayLike, steps: Iterable[Step], direction: Direction | None) -> list[Change]:
    """Return the steps of a series, judged: in the order of the series. `direction` says which way is better."""
    there = np.flatnonzero(usable(np.asarray(values, dtype=np.float64)))
    return [_judged(step, int(there[there < step.index].max()), direction) for step in steps]


def _judged(step: Step, last_before: int, direction: Direction | None) -> Change:
    called = verdict(step.before, step.after, direction)
    return Change(
        index=step.index,
        last_before=last_before,
        before=step.before,
        after=step.after,
        p=step.p,
        verdict=called or "change",
        ratio=ratio(step.before, step.after),
        importance=WEIGHTS[called or "change"] * math.log2(_factor(step.before, step.after)),
        words=words(step.before, step.after),
    )


def verdict(before: float, after: float, direction: Direction | None) -> Verdict | None:
    """Say what a change is, by the metric's direction; None where there is no change."""
    if before == after:
        return None
    if direction is None:
        return "change"
    return "improvement" if (after < before) == (direction == "lower") else "regression"


def ratio(before: float, after: float) -> float | None:
    """Return after over before, or None where one of them is zero or negative (or the ratio is no number)."""
    if before <= 0 or after <= 0:
        return None
    found = after / before
    return found if 0 < found < math.inf else None


def words(before: float, after: float) -> str:
    """Say the change without a unit: "+20.0 %", "× 12.0", "from 0 to 5"; never NaN or Infinity."""
    if before == after:
        return f"unchanged at {before:.6g}"
    found = ratio(before, after)
    if found is None:
        return f"from {before:.6g} to {after:.6g}"
    if found >= TIMES:
        return f"× {found:.3g}"
    return f"{100 * (found - 1):+.1f} %".replace("-", "\N{MINUS SIGN}")


def most_important_first(changes: Sequence[Change]) -> list[Change]:
    """Order changes, of one series or of many, by importance, and the newer first among equals."""
    return sorted(changes, key=lambda change: (-change.importance, -change.index))


def _factor(before: float, after: float) -> float:
    found = ratio(before, after)
    if found is not None:
        return min(max(found, 1 / found), LARGEST_FACTOR)
    if before == after:
        return 1.0
    if (before < 0) and (after < 0):
        return min(max(before / after, after / before), LARGEST_FACTOR)
    return LARGEST_FACTOR
