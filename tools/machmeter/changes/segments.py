"""Cut many series at once into stretches of one level each: the first half of the detector.

A stretch costs, for each of its points, half the squared distance from its level in units of the series' own noise, but
never more than `CAP`: an outlier costs no more than any other outlier, and so cannot buy a stretch of its own. Each new
stretch costs a penalty, and the cheapest cut of all is found exactly. Capped squares: Fearnhead and Rigaill,
"Changepoint detection in the presence of outliers", JASA 114 (2019).

Levels are taken from a grid of half a noise unit, and only where the series has points. With a fixed set of levels
the best cut is a Viterbi path: each point either stays on its level or pays the penalty and takes the cheapest one.
That is linear in the number of points, unlike a search over pairs of points, and one step of it serves many series.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from machmeter.changes.series import Array

# Half the square of 3: a point three noise units away, or a hundred, says "not this level" equally loudly.
CAP = 4.5
# What a stretch costs beside its points: as much as two clear points bring in. Every cut is doubted afterwards.
PENALTY = 9.0
# Distance of two levels, in noise units.
GRID = 0.5
# A level needs another point this near (in grid units): a lone outlier is no level.
NEAR = 2
# Series x levels that one step works on: enough to hide the interpreter, few enough for the cache. And points x series
# x levels whose moves are remembered, one byte each.
BATCH, REMEMBERED = 8192, 2**24


def cut(series: Sequence[Array]) -> list[list[int]]:
    """Return, for each series in noise units (finite), the indices at which a new stretch begins."""
    found: list[list[int]] = [[] for _ in series]
    levels = [_levels(values) for values in series]
    # Alike in length and levels together, so that little is padded.
    order = sorted(range(len(series)), key=lambda number: (len(series[number]), len(levels[number])))
    sizes = [(number, len(series[number]), len(levels[number])) for number in order if len(levels[number]) > 1]
    for batch in _batches(sizes):
        for number, starts in zip(batch, _cut([series[n] for n in batch], [levels[n] for n in batch]), strict=True):
            found[number] = starts
    return found


def _levels(values: Array) -> Array:
    bins, counts = np.unique(np.round(values / GRID), return_counts=True)
    if len(bins) < 2:
        return bins * GRID
    total = np.concatenate([[0], np.cumsum(counts)])
    near = total[np.searchsorted(bins, bins + NEAR, "right")] - total[np.searchsorted(bins, bins - NEAR, "left")]
    return np.asarray(bins[near > 1] * GRID, dtype=np.float64)


def _batches(sizes: Sequence[tuple[int, int, int]]) -> Iterator[list[int]]:
    batch: list[int] = []
    longest = widest = 0
    for number, points, levels in sizes:
        longest, widest = max(longest, points), max(widest, levels)
        cells = (len(batch) + 1) * widest
        if batch and (cells > BATCH or cells * longest > REMEMBERED):
            yield batch
            batch, longest, widest = [], points, levels
        batch.append(number)
    if batch:
        yield batch


def _cut(series: list[Array], levels: list[Array]) -> list[list[int]]:
    """Find the cheapest paths of one batch. Arrays are points x series x levels."""
    points, rows = max(map(len, series)), np.arange(len(series))
    values = np.full((points, len(series), 1), np.nan)
    grid = np.full((len(series), max(map(len, levels))), np.inf)
    for row, (one, its) in enumerate(zip(series, levels, strict=True)):
        values[: len(one), row, 0] = one
        grid[row, : len(its)] = its
    # A padded level is never the cheapest; a padded point costs nothing, so that nobody moves after the end.
    cheapest_from = np.zeros((points, len(series)), dtype=np.int32)
    moved = np.zeros((points, *grid.shape), dtype=np.bool_)
    cost = np.where(np.isinf(grid), np.inf, 0.0)
    step = np.empty_like(grid)
    for point in range(points):
        best = cost.argmin(axis=1)
        cheapest_from[point] = best
        entry = cost[rows, best][:, None] + PENALTY
        np.greater(cost, entry, out=moved[point])
        np.minimum(cost, entry, out=cost)
        np.subtract(values[point], grid, out=step)
        np.multiply(step, step, out=step)
        step *= 0.5
        # fmin takes the number where the other is NaN: a padded point costs CAP on every level alike.
        np.fmin(step, CAP, out=step)
        cost += step
    return _paths(cost.argmin(axis=1), cheapest_from, moved)


def _paths(
    last: npt.NDArray[np.intp], cheapest_from: npt.NDArray[np.int32], moved: npt.NDArray[np.bool_]
) -> list[list[int]]:
    starts: list[list[int]] = [[] for _ in last]
    level, rows = last.copy(), np.arange(len(last))
    for point in range(len(moved) - 1, 0, -1):
        jumped = moved[point, rows, level]
        if jumped.any():
            for row in np.flatnonzero(jumped):
                starts[row].append(point)
            level[jumped] = cheapest_from[point, jumped]
    return [one[::-1] for one in starts]
