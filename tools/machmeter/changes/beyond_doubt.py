"""The stricter rule for what is worth waking somebody: the steps of a series that are beyond doubt.

A page may show a step that a reader then doubts; a message that was wrong twice is not read a third time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from machmeter.changes import doubts, ranks
from machmeter.changes.detect import Step
from machmeter.changes.series import Series, middle, sides

# Points on each side, and the largest p of a Mann-Whitney test between them.
NEIGHBOURS = 30
LARGEST_P = 1e-3


def alerting(values: npt.ArrayLike, steps: Sequence[Step]) -> list[Step]:
    """Return those of a series' steps (as `detect` found them) that also hold among up to 30 points on each side.

    There the change must still be 2 % of the median, and p below 1e-3: a series of ten points with one large jump, or
    a step that only the kernel's test was sure of, is shown and raises no alert.
    """
    series = Series.of(values)
    starts = [int(np.searchsorted(series.where, step.index)) for step in steps]
    kept = []
    for step, start, at, end in zip(steps, [0, *starts], starts, [*starts[1:], len(series.values)], strict=False):
        before, after = sides(series.values, start, at, end, NEIGHBOURS)
        change = doubts.relative_change(middle(before), middle(after))
        if change >= doubts.SMALLEST_CHANGE and ranks.p_value(before, after) < LARGEST_P:
            kept.append(step)
    return kept
