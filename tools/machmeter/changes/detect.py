"""Find the steps of a series: where its level changed and stayed changed.

Pure: an array goes in, `Step`s come out. Missing and infinite values may be anywhere. `docs/changes.md` says why
it is done this way, what was tried and rejected, and how good it is.

1. Drop what is not finite. Take logarithms, so that 10 % counts alike at 1 ms and at 1 s; a series that has zeros or
   negative values (bytes, a count, decibels) is taken as it is, in units of its typical magnitude (`series`).
2. Estimate the noise from differences of neighbours, which steps hardly touch.
3. Cut the series into stretches of one level each (`segments`).
4. Doubt each cut, the weakest first, from at most 20 points on each side (`doubts`): it must change the median by 2 %
   at least, be certain by a rank test or by a kernel's, and be more than a slope. A visit of a few points is no step.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import numpy.typing as npt

from machmeter.changes import doubts, ranks, segments
from machmeter.changes.series import Series, middle, sides

# Fewer series than this are not worth starting processes for.
WORTH_PROCESSES = 1000


@dataclass(frozen=True, kw_only=True)
class Step:
    """A change of level. `index` is the first point of the new level in the array that was given.

    `before` and `after` are medians of the values on either side (at most 20 each); `p` is the two-sided p of a
    Mann-Whitney test between the same points. It is the p of one place that a search has chosen: smaller is surer,
    but it is no false-alarm rate.
    """

    index: int
    before: float
    after: float
    p: float


def detect(values: npt.ArrayLike) -> list[Step]:
    """Return the steps of a series in order; none where there are too few points to tell (fewer than ten)."""
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
    return _steps(Series.of(values), starts)


def _detect_all(series: Sequence[npt.ArrayLike]) -> list[list[Step]]:
    ready = [Series.of(values) for values in series]
    cuts = segments.cut([one.scaled / one.noise for one in ready])
    return [_steps(one, starts) for one, starts in zip(ready, cuts, strict=True)]


def _steps(series: Series, starts: Sequence[int]) -> list[Step]:
    kept = doubts.without_weak(series, doubts.without_bursts(series, starts))
    bounds = zip([0, *kept[:-1]], kept, [*kept[1:], len(series.values)], strict=True) if kept else ()
    return [_step(series, start, at, end) for start, at, end in bounds]


def _step(series: Series, start: int, at: int, end: int) -> Step:
    before, after = sides(series.values, start, at, end, doubts.NEIGHBOURS)
    p = ranks.p_value(before, after)
    return Step(index=int(series.where[at]), before=middle(before), after=middle(after), p=p)
