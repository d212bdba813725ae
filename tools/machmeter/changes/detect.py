"""Find the steps of a series: where its level changed and stayed changed.

Pure: an array goes in, `Step`s come out. Missing and infinite values may be anywhere. `docs/statistics.md` says why
it is done this way, what was tried and rejected, and how good it is.

1. Drop what is not finite. Take logarithms, so that 10 % counts alike at 1 ms and at 1 s; a series that has a zero or
   a negative value (bytes, a count, an agreement, decibels) is taken as it is, in units of its typical magnitude.
2. Estimate the noise from differences of neighbours, which steps hardly touch.
3. Cut the series into stretches of one level each (`segments`).
4. Doubt each cut, the weakest first, from at most 20 points on each side: it must change the median by 2 % at least,
   survive a rank test, and be more than a slope. A visit of a few points that goes back is no step.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context

import numpy as np
import numpy.typing as npt

from machmeter.changes import ranks, segments

Array = npt.NDArray[np.float64]

# Points on each side that a cut is judged by, inside the stretches beside it.
NEIGHBOURS = 20
# A change of the median below this share of it is none, however certain.
SMALLEST_CHANGE = 0.02
# Largest p of a step: 4 points against 20 can reach 1.9e-4, 3 points never do.
LARGEST_P = 2e-4
# Ten points cannot reach that p: in a series shorter than `SHORT`, a change of so many noise units may have a larger.
SHORT, CLEAR_CHANGE, LARGEST_P_OF_CLEAR = 20, 10.0, 1e-2
# So many points that then go back to where the series was are a burst, not two steps.
BURST = 5
# Noise is never taken for less than this share: without it the last digit of a constant series would be an event.
LEAST_NOISE = 0.004
# Points at these distances give the noise: the farther ones see more where a point remembers the one before. A
# distance needs so many times its points, or one step would be in half of the differences.
LAGS, POINTS_PER_LAG = (1, 2, 4), 5
# How much of the change must remain when both sides may have a slope; fewer points than `SLOPED` show no slope.
REMAINS, SLOPED = 0.5, 10
# No benchmark measures a magnitude like this; what does is broken, and its sums and squares would overflow.
IMPOSSIBLE = 1e150
# Fewer series than this are not worth starting processes for.
WORTH_PROCESSES = 1000


@dataclass(frozen=True, kw_only=True)
class Step:
    """A change of level. `index` is the first point of the new level in the array that was given.

    `before` and `after` are medians of the values on either side (at most 20 each); `p` is the two-sided p of a
    Mann-Whitney test between the same points.
    """

    index: int
    before: float
    after: float
    p: float


def detect(values: npt.ArrayLike) -> list[Step]:
    """Return the steps of a series in order; none where there are too few points to tell."""
    return _detect_all([values])[0]


def detect_many(series: Sequence[npt.ArrayLike], *, processes: int = 1) -> list[list[Step]]:
    """Return the steps of each series. Where there are very many, so many processes share the work."""
    if processes < 2 or len(series) < WORTH_PROCESSES:
        return _detect_all(series)
    arrays = [np.asarray(values, dtype=np.float64) for values in series]
    # Spawned, not forked: the caller may have threads (a served site), and a forked child may wait for their locks.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        # Dealt like cards: long series lie together in a store, and each process should get its share of them.
        parts = list(pool.map(_detect_all, [arrays[first::processes] for first in range(processes)]))
    return [parts[number % processes][number // processes] for number in range(len(arrays))]


def confirmed(values: npt.ArrayLike, starts: Sequence[int]) -> list[Step]:
    """Return the steps among cuts that something else proposed: indices into the usable values of a series."""
    series = _Series.of(np.asarray(values, dtype=np.float64))
    return _confirmed(series, _without_bursts(series, list(starts)))


def usable(values: Array) -> npt.NDArray[np.bool_]:
    """Say which values count: those that are neither missing nor infinite nor of an impossible magnitude."""
    return np.asarray(np.abs(values) < IMPOSSIBLE)  # false for NaN, too


def scale(values: Array) -> Array:
    """Return logarithms of positive values; otherwise the values over the median magnitude of those that are not 0."""
    if (values > 0).all():
        return np.log(values)
    if not values.any():
        return np.zeros_like(values)
    # The limit keeps squares of distances finite where 1e-300 and 1e100 are in one series.
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(values / np.median(np.abs(values[values != 0])), -1e9, 1e9))


def noise(scaled: Array) -> float:
    """Return the standard deviation of the noise: from median absolute differences, the largest over `LAGS`."""
    far = [
        float(np.median(np.abs(scaled[lag:] - scaled[:-lag]))) for lag in LAGS if len(scaled) >= POINTS_PER_LAG * lag
    ]
    # A normal variable's median magnitude is 0.6745 of its deviation, and a difference has two variables in it.
    return max([LEAST_NOISE, *(value / (0.6745 * 2**0.5) for value in far)])


def middle(values: Array) -> float:
    """Return the median. NumPy's takes ten times as long for so few values, and there are a dozen per cut."""
    ordered, half = np.sort(values), len(values) // 2
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2)


def relative_change(before: float, after: float) -> float:
    """Return the size of a change as a share of the smaller magnitude, infinite where only one of them is 0."""
    if before == after:
        return 0.0
    least = min(abs(before), abs(after))
    return abs(after - before) / least if least else float("inf")


def sides(values: Array, start: int, at: int, end: int, neighbours: int = NEIGHBOURS) -> tuple[Array, Array]:
    """Return the nearest points before and after `at`, inside the stretches that reach from `start` to `end`."""
    return values[max(start, at - neighbours) : at], values[at : min(end, at + neighbours)]


@dataclass(frozen=True, kw_only=True)
class _Series:
    """The finite values of a series, where they were, and the same on the scale on which they are judged."""

    where: npt.NDArray[np.intp]
    values: Array
    scaled: Array
    noise: float

    @classmethod
    def of(cls, given: Array) -> _Series:
        where = np.flatnonzero(usable(given))
        values = given[where]
        scaled = scale(values)
        return cls(where=where, values=values, scaled=scaled, noise=noise(scaled))


def _detect_all(series: Sequence[npt.ArrayLike]) -> list[list[Step]]:
    ready = [_Series.of(np.asarray(values, dtype=np.float64)) for values in series]
    starts = segments.cut([one.scaled / one.noise for one in ready])
    return [_confirmed(one, _without_bursts(one, cuts)) for one, cuts in zip(ready, starts, strict=True)]


def _without_bursts(series: _Series, starts: list[int]) -> list[int]:
    kept = list(starts)
    n = 0
    while n + 1 < len(kept):
        start, at, back, end = [0, *kept, len(series.values)][n : n + 4]
        level = middle(sides(series.scaled, start, at, end)[0])
        visited = middle(series.scaled[at:back])
        level_after = middle(sides(series.scaled, start, back, end)[1])
        if back - at <= BURST and abs(level_after - level) < abs(visited - level) / 2:
            del kept[n : n + 2]
            n = max(n - 1, 0)
        else:
            n += 1
    return kept


def _confirmed(series: _Series, starts: list[int]) -> list[Step]:
    """Take away the weakest cut that fails until none does: what it parted is one stretch for those beside it."""
    kept = list(starts)
    judged: dict[tuple[int, int, int], tuple[Step, bool]] = {}  # what lies far from a removed cut is not judged again
    while kept:
        around = list(zip([0, *kept[:-1]], kept, [*kept[1:], len(series.values)], strict=True))
        for each in around:
            if each not in judged:
                step = _step(series, *each)
                judged[each] = step, _holds(series, step, *each)
        steps = [judged[each][0] for each in around]
        failing = [n for n, each in enumerate(around) if not judged[each][1]]
        if not failing:
            return steps
        del kept[max(failing, key=lambda n: (steps[n].p, -relative_change(steps[n].before, steps[n].after)))]
    return []


def _step(series: _Series, start: int, at: int, end: int) -> Step:
    before, after = sides(series.values, start, at, end)
    return Step(
        index=int(series.where[at]),
        before=middle(before),
        after=middle(after),
        p=ranks.p_value(before, after),
    )


def _holds(series: _Series, step: Step, start: int, at: int, end: int) -> bool:
    if relative_change(step.before, step.after) < SMALLEST_CHANGE:
        return False
    before, after = sides(series.scaled, start, at, end)
    jump = middle(after) - middle(before)
    clear = len(series.values) < SHORT and abs(jump) >= CLEAR_CHANGE * series.noise
    if step.p > (LARGEST_P_OF_CLEAR if clear else LARGEST_P):
        return False
    return _more_than_a_slope(before, after, jump)


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
