"""The stricter rule for what is worth waking somebody: the steps of a series that are beyond doubt.

A page may show a step that a reader then doubts; a message that was wrong twice is not read a third time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from machmeter.changes import detect, ranks
from machmeter.changes.detect import Step

# Points on each side, and the largest p of a Mann-Whitney test between them.
NEIGHBOURS = 30
LARGEST_P = 1e-3


def alerting(values: npt.ArrayLike, steps: Sequence[Step]) -> list[Step]:
    """Return those of a series' steps (as `detect` found them) that also hold among up to 30 points on each side.

    There the change must still be 2 % of the median, and p below 1e-3: a short series whose one jump is merely large
    shows a step and raises no alert.
    """
    given = np.asarray(values, dtype=np.float64)
    where = np.flatnonzero(detect.usable(given))
    used, bounds = given[where], [0, *(int(np.searchsorted(where, step.index)) for step in steps), len(where)]
    kept = []
    for number, step in enumerate(steps):
        start, at, end = bounds[number : number + 3]
        before, after = detect.sides(used, start, at, end, NEIGHBOURS)
        change = detect.relative_change(detect.middle(before), detect.middle(after))
        if change >= detect.SMALLEST_CHANGE and ranks.p_value(before, after) < LARGEST_P:
            kept.append(step)
    return kept
