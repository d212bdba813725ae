"""Doubt cuts: which of them are steps, judged by a few points on each side. The second half of the detector.

A search that optimises over a whole series is easily led into cuts that a reader of the graph would not make: at a few
outliers in a row, along a slope, in a run of the rarer of two modes. Each cut therefore has to stand on its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from machmeter.changes import ranks
from machmeter.changes.series import Array, Series, middle, sides

# Points on each side that a cut is judged by, inside the stretches beside it.
NEIGHBOURS = 20
# A change of the median below this share of it is none, however certain.
SMALLEST_CHANGE = 0.02
# Either is enough. The largest p of a rank test: 4 points against 20 can reach 1.9e-4, 3 points never do. And the least
# that telling both sides apart must bring in a kernel's terms, which outliers and a second mode hardly lessen.
LARGEST_P, LEAST_GAIN = 2e-4, 6.0
# Ten points cannot reach that p: in a series shorter than `SHORT`, a change of so many noise units may have a larger.
SHORT, CLEAR_CHANGE, LARGEST_P_OF_CLEAR = 20, 10.0, 1e-2
# So many points that then go back to where the series was are a burst, not two steps.
BURST = 5
# How much of the change must remain when both sides may have a slope; fewer points than `SLOPED` show no slope.
REMAINS, SLOPED = 0.5, 10


def without_bursts(series: Series, starts: Sequence[int]) -> list[int]:
    """Return the cuts without those around a short visit elsewhere, which comes back at least half of the way."""
    kept = list(starts)
    n = 0
    while n + 1 < len(kept):
        start, at, back, end = [0, *kept, len(series.values)][n : n + 4]
        level = middle(sides(series.scaled, start, at, end, NEIGHBOURS)[0])
        visited = middle(series.scaled[at:back])
        level_after = middle(sides(series.scaled, start, back, end, NEIGHBOURS)[1])
        if back - at <= BURST and abs(level_after - level) < abs(visited - level) / 2:
            del kept[n : n + 2]
            n = max(n - 1, 0)
        else:
            n += 1
    return kept


def without_weak(series: Series, starts: Sequence[int]) -> list[int]:
    """Take away the weakest cut that fails until none does: what it parted is one stretch for those beside it."""
    kept = list(starts)
    # What lies far from a removed cut is not judged again. The weakest has the largest p, then the smallest change.
    judged: dict[tuple[int, int, int], tuple[bool, float, float]] = {}
    while kept:
        around = list(zip([0, *kept[:-1]], kept, [*kept[1:], len(series.values)], strict=True))
        judged.update({each: _judged(series, *each) for each in around if each not in judged})
        failing = [n for n, each in enumerate(around) if not judged[each][0]]
        if not failing:
            return kept
        del kept[max(failing, key=lambda n: judged[around[n]][1:])]
    return kept


def relative_change(before: float, after: float) -> float:
    """Return the size of a change as a share of the smaller magnitude, infinite where only one of them is 0."""
    if before == after:
        return 0.0
    least = min(abs(before), abs(after))
    return abs(after - before) / least if least else float("inf")


def _judged(series: Series, start: int, at: int, end: int) -> tuple[bool, float, float]:
    before, after = sides(series.values, start, at, end, NEIGHBOURS)
    p = ranks.p_value(before, after)
    change = relative_change(middle(before), middle(after))
    if change < SMALLEST_CHANGE:
        return False, p, -change
    before, after = sides(series.scaled, start, at, end, NEIGHBOURS)
    jump = middle(after) - middle(before)
    clear = len(series.values) < SHORT and abs(jump) >= CLEAR_CHANGE * series.noise
    certain = p <= (LARGEST_P_OF_CLEAR if clear else LARGEST_P) or gain(before, after, series.noise) >= LEAST_GAIN
    return certain and _more_than_a_slope(before, after, jump), p, -change


def gain(before: Array, after: Array, noise: float) -> float:
    """Return how much better two stretches explain the points than one, in the feature space of a Gaussian kernel.

    That is m n / (m + n) times the squared maximum mean discrepancy (Gretton and others, JMLR 13, 2012), the kernel one
    noise unit wide. It grows with the number of points and stays below the smaller number, however far apart they are.
    """
    points, few, many = np.concatenate([before, after]) / noise, len(before), len(after)
    alike = np.exp(-0.5 * (points[:, None] - points) ** 2)
    discrepancy = alike[:few, :few].mean() + alike[few:, few:].mean() - 2 * alike[:few, few:].mean()
    return float(few * many / (few + many) * discrepancy)


def _more_than_a_slope(before: Array, after: Array, jump: float) -> bool:
    """Say whether a jump remains where both sides may rise or fall alike (the slope of Theil and Sen, within sides)."""
    sloped = [side for side in (before, after) if len(side) >= SLOPED]
    if not sloped:
        return True
    slope = middle(np.concatenate([_slopes(side) for side in sloped]))
    return 1.0 - slope * (len(before) + len(after)) / 2 / jump >= REMAINS


def _slopes(side: Array) -> Array:
    first, second = _pairs(len(side))
    return np.asarray((side[second] - side[first]) / (second - first))


@lru_cache(maxsize=64)
def _pairs(points: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    first, second = np.triu_indices(points, 1)
    return first, second
