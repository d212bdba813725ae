"""What a series is judged on: its usable values, on a scale where a given share counts alike, and its own noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# No benchmark measures a magnitude like this; what does is broken, and its sums and squares would overflow.
IMPOSSIBLE = 1e150
# A series with this share of zeros still has logarithms; zeros lie so far below its smallest value (a factor of 150).
FEW_ZEROS, FAR_BELOW = 0.1, 5.0
# Noise is never taken for less than this share: without it the last digit of a constant series would be an event.
LEAST_NOISE = 0.004
# Points at these distances give the noise: the farther ones see more where a point remembers the one before. A
# distance needs so many times its points, or one step would be in half of the differences.
LAGS, POINTS_PER_LAG = (1, 2, 4), 5
# Of the differences this quantile is taken, not the median: with two modes nearly half of them lead from one to the
# other. A normal variable's magnitude is below 0.5244 deviations as often.
QUANTILE, QUANTILE_OF_NORMAL = 0.4, 0.5244


@dataclass(frozen=True, kw_only=True)
class Series:
    """The usable values of a series, where they were, and the same on the scale on which they are judged."""

    where: npt.NDArray[np.intp]
    values: Array
    scaled: Array
    noise: float

    @classmethod
    def of(cls, given: npt.ArrayLike) -> Series:
        """Take what is usable of an array in which missing and infinite values may be anywhere."""
        array = np.asarray(given, dtype=np.float64)
        where = np.flatnonzero(usable(array))
        values = array[where]
        scaled = scale(values)
        return cls(where=where, values=values, scaled=scaled, noise=noise(scaled))


def usable(values: Array) -> npt.NDArray[np.bool_]:
    """Say which values count: those that are neither missing nor infinite nor of an impossible magnitude."""
    return np.asarray(np.abs(values) < IMPOSSIBLE)  # false for NaN, too


def scale(values: Array) -> Array:
    """Return logarithms where no value is negative and few are 0; otherwise the values over their typical magnitude.

    The few zeros (a broken run) lie far below everything else. The typical magnitude is the median of those not 0.
    """
    positive = values > 0
    if not (values < 0).any() and len(values) - positive.sum() <= FEW_ZEROS * len(values):
        floor = np.log(values[positive].min(initial=IMPOSSIBLE)) - FAR_BELOW
        return np.log(values, out=np.full_like(values, floor), where=positive)
    if not values.any():
        return np.zeros_like(values)
    # The limit keeps squares of distances finite where 1e-300 and 1e100 are in one series.
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(values / middle(np.abs(values[values != 0])), -1e9, 1e9))


def noise(scaled: Array) -> float:
    """Return the standard deviation of the noise: from a quantile of absolute differences, the largest over `LAGS`."""
    far = [np.abs(scaled[lag:] - scaled[:-lag]) for lag in LAGS if len(scaled) >= POINTS_PER_LAG * lag]
    unit = QUANTILE_OF_NORMAL * 2**0.5  # a difference has two variables in it
    return max([LEAST_NOISE, *(float(np.sort(one)[int(QUANTILE * len(one))]) / unit for one in far)])


def middle(values: Array) -> float:
    """Return the median. NumPy's takes ten times as long for so few values, and there are a dozen per cut."""
    ordered, half = np.sort(values), len(values) // 2
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2)


def sides(values: Array, start: int, at: int, end: int, neighbours: int) -> tuple[Array, Array]:
    """Return the nearest points before and after `at`, inside the stretches that reach from `start` to `end`."""
    return values[max(start, at - neighbours) : at], values[at : min(end, at + neighbours)]
