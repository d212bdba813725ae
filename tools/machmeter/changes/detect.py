"""Find the steps of a series: where its level changed and stayed changed.

Pure: an array goes in, `Step`s come out. Missing and infinite values may be anywhere. `docs/statistics.md` says why it is
done this way, what was tried and rejected, and how good it is.

1. Drop what is not finite. Take logarithms, so that 10 % counts alike at 1 ms and at 1 s; a series that has a zero or
   a negative value (bytes, a count, an agreement, decibels) is taken as it is, in units of its typical magnitude.
2. Estimate the noise from differences of neighbours, which steps hardly touch.
3. Cut the series into stretches of one level (`segments`).
4. Doubt each cut, the weakest first, from at most 20 points on each side: it must change the median by 2 % at least,
   survive a rank test, and be more than a slope.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain, pairwise
from multiprocessing import get_context

import numpy as np
import numpy.typing as npt

from machmeter.changes import ranks, segments

Array = npt.NDArray[np.float64]

# Points on each side that a cut is judged by, inside the stretches beside it.
NEIGHBOURS = 20
# A change of the median below this share of it is none, however certain.
SMALLEST_CHANGE = 0.02
# Largest p of a step: 4 points against 12 or more can reach it, 3 against 20 only just (1.1e-3) not.
LARGEST_P = 1e-3
# So many points that then go back to where the series was are a burst, not two steps.
BURST = 5
# Noise is never taken for less than this share: without it the last digit of a constant series would be an event.
LEAST_NOISE = 0.004
# Neighbours at these distances give the noise: the farther ones see more where a point remembers the one before.
LAGS = (1, 2, 4)
# How much of the change must remain when both sides may have a slope.
REMAINS = 0.5
# Series below this number are not worth starting processes for.
WORTH_PROCESSES = 400


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
    """Return the steps of each series. With many series the work is shared among so many processes."""
    if processes < 2 or len(series) < WORTH_PROCESSES:
        return _detect_all(series)
    arrays = [np.asarray(values, dtype=np.float64) for values in series]
    size = -(-len(arrays) // processes)
    # Spawned, not forked: the caller may have threads (a served site), and a forked child may wait for their locks.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        parts = pool.map(_detect_all, [arrays[start : start + size] for start in range(0, len(arrays), size)])
        return list(chain.from_iterable(parts))


def _detect_all(series: Sequence[npt.ArrayLike]) -> list[list[Step]]:
    ready = [_Series.of(np.asarray(values, dtype=np.float64)) for values in series]
    starts = segments.cut([one.scaled / one.noise for one in ready])
    return [_confirmed(one, cuts) for one, cuts in zip(ready, starts, strict=True)]


@dataclass(frozen=True, kw_only=True)
class _Series:
    """The finite values of a series, where they were, and the same on the scale on which they are judged."""

    where: npt.NDArray[np.intp]
    values: Array
    scaled: Array
    noise: float

    @classmethod
    def of(cls, given: Array) -> _Series:
        where = np.flatnonzero(np.isfinite(given))
        values = given[where]
        scaled = scale(values)
        return cls(where=where, values=values, scaled=scaled, noise=noise(scaled))


def scale(values: Array) -> Array:
    """Return logarithms of positive values; otherwise the values over the median magnitude of those that are not 0."""
    if (values > 0).all():
        return np.log(values)
    return np.asarray(values / np.median(np.abs(values[values != 0]))) if values.any() else np.zeros_like(values)


def noise(scaled: Array) -> float:
    """Return the standard deviation of the noise: from median absolute differences, the largest over `LAGS`."""
    far = [np.median(np.abs(scaled[lag:] - scaled[:-lag])) for lag in LAGS if len(scaled) > 2 * lag]
    # A normal variable's median magnitude is 0.6745 of its deviation, and a difference has two variables in it.
    return max(LEAST_NOISE, *(float(value) / (0.6745 * 2**0.5) for value in far)) if far else LEAST_NOISE


def relative_change(before: float, after: float) -> float:
    """Return the size of a change as a share of the smaller magnitude, infinite where one of them only is 0."""
    if before == after:
        return 0.0
    least = min(abs(before), abs(after))
    return abs(after - before) / least if least else float("inf")


def _confirmed(series: _Series, starts: list[int]) -> list[Step]:
    """Take away the weakest cut that fails until none does: what it parted is one stretch for those beside it."""
    starts = _without_bursts(series, list(starts))
    while starts:
        bounds = [0, *starts, len(series.values)]
        steps = [_step(series, *bounds[n : n + 3]) for n in range(len(starts))]
        failing = [
            (step.p, -abs(relative_change(step.before, step.after)), n)
            for n, step in enumerate(steps)
            if not _holds(series, step, *bounds[n : n + 3])
        ]
        if not failing:
            return [
                Step(index=int(series.where[step.index]), before=step.before, after=step.after, p=step.p)
                for step in steps
            ]
        del starts[max((p, size, n) for p, size, n in failing)[2]]
    return []


def _without_bursts(series: _Series, starts: list[int]) -> list[int]:
    n = 0
    while n + 1 < len(starts):
        bounds = [0, *starts, len(series.values)]
        start, at, back, end = bounds[n : n + 4]
        level, visited, level_after = (
            float(np.median(series.scaled[side]))
            for side in (_sides(start, at, end)[0], slice(at, back), _sides(start, back, end)[1])
        )
        if back - at <= BURST and abs(level_after - level) < abs(visited - level) / 2:
            del starts[n : n + 2]
            n = max(n - 1, 0)
        else:
            n += 1
    return starts


def _sides(start: int, at: int, end: int, neighbours: int = NEIGHBOURS) -> tuple[slice, slice]:
    return slice(max(start, at - neighbours), at), slice(at, min(end, at + neighbours))


def _step(series: _Series, start: int, at: int, end: int) -> Step:
    left, right = _sides(start, at, end)
    before, after = series.values[left], series.values[right]
    return Step(
        index=at, before=float(np.median(before)), after=float(np.median(after)), p=ranks.p_value(before, after)
    )


def _holds(series: _Series, step: Step, start: int, at: int, end: int) -> bool:
    if step.p > LARGEST_P or relative_change(step.before, step.after) < SMALLEST_CHANGE:
        return False
    left, right = _sides(start, at, end)
    return _more_than_a_slope(series.scaled[left], series.scaled[right])


def _more_than_a_slope(before: Array, after: Array) -> bool:
    """Say whether a jump remains where both sides may rise or fall together (Theil and Sen's slope, within sides)."""
    slopes = np.concatenate([_slopes(before), _slopes(after)])
    if len(slopes) < 90:  # fewer than ten points on both sides: a slope would be noise
        return True
    jump = float(np.median(after) - np.median(before))
    risen = float(np.median(slopes)) * (len(before) + len(after)) / 2
    return (jump - risen) / jump >= REMAINS


def _slopes(side: Array) -> Array:
    first, second = np.triu_indices(len(side), 1)
    return np.asarray((side[second] - side[first]) / (second - first))


__all__ = ["Step", "detect", "detect_many", "noise", "pairwise", "relative_change", "scale"]
