"""Judge steps by the metric's direction, say them in words, and weigh them.

asv knows no direction: to it a throughput that halves has improved. Directions come from `metrics`, or from whoever
describes a foreign benchmark; where there is none, a change is a change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from machmeter.changes.detect import Step
from machmeter.changes.series import usable
from machmeter.metrics import Direction
from machmeter.text import two_numbers

Verdict = Literal["regression", "improvement", "change"]

# A regression counts like an improvement by the square of its factor: users lose by it until someone acts.
WEIGHTS: dict[Verdict, float] = {"regression": 2.0, "change": 1.5, "improvement": 1.0}
# From or to nothing has no factor; it ranks like this one, and so does any larger.
LARGEST_FACTOR = 1000.0
_VERDICTS: Mapping[two_numbers.Outcome, Verdict] = {
    "better": "improvement",
    "worse": "regression",
    "change": "change",
}


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


def judge(values: npt.ArrayLike, steps: Iterable[Step], direction: Direction | None, unit: str = "") -> list[Change]:
    """Return the steps of a series in `unit`, judged: in its order. `direction` says which way is better."""
    there = np.flatnonzero(usable(np.asarray(values, dtype=np.float64)))
    return [_judged(step, int(there[there < step.index].max()), direction, unit) for step in steps]


def _judged(step: Step, last_before: int, direction: Direction | None, unit: str) -> Change:
    called = verdict(step.before, step.after, direction)
    return Change(
        index=step.index,
        last_before=last_before,
        before=step.before,
        after=step.after,
        p=step.p,
        verdict=called or "change",
        ratio=two_numbers.ratio(step.before, step.after),
        importance=WEIGHTS[called or "change"] * math.log2(_factor(step.before, step.after)),
        words=two_numbers.words(step.before, step.after, unit),
    )


def verdict(before: float, after: float, direction: Direction | None) -> Verdict | None:
    """Say what a change is, by the metric's direction; None where there is no change."""
    return _VERDICTS.get(two_numbers.outcome(before, after, direction))


def _factor(before: float, after: float) -> float:
    found = two_numbers.ratio(before, after)
    if found is not None:
        return min(max(found, 1 / found), LARGEST_FACTOR)
    if before == after:
        return 1.0
    if (before < 0) and (after < 0):
        return min(max(before / after, after / before), LARGEST_FACTOR)
    return LARGEST_FACTOR
