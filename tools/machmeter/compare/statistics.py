"""Whether the processes of head differ from those of base: estimate, interval and p of every row of a table at once.

Why so, and how well it does: docs/statistics.md. Everything is in logarithms, so that a ratio is a difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from machmeter.compare.limits import CERTAINTY

Array = NDArray[np.float64]

# A clock may be so coarse that nothing differs: no interval is narrower than this share.
LEAST_ERROR = 1e-9


@dataclass(frozen=True, kw_only=True)
class Spread:
    """What rows of a table say on their own: arrays over rows, with any dimensions before."""

    middle: Array  # the logarithm of head over base
    error: Array  # its standard error
    freedom: Array  # degrees of freedom of that error


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """What may be said of the logarithm of head over base, an array over rows each."""

    middle: Array
    low: Array
    high: Array
    p: Array


def paired(differences: Array) -> Spread:
    """Summarise log ratios of pairs, of shape (..., pairs)."""
    count = differences.shape[-1]
    return Spread(
        middle=differences.mean(axis=-1),
        error=differences.std(axis=-1, ddof=1) / np.sqrt(count),
        freedom=np.full(differences.shape[:-1], count - 1.0),
    )


def blocks(base: Array, head: Array) -> Spread:
    """Summarise sides that were measured one after the other: logarithms of shape (..., processes). Welch's test."""
    parts = [side.var(axis=-1, ddof=1) / side.shape[-1] for side in (base, head)]
    sizes = [side.shape[-1] for side in (base, head)]
    total = np.maximum(parts[0] + parts[1], LEAST_ERROR**2)
    freedom = total**2 / np.maximum(
        sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True)), total**2 / (sum(sizes) - 2)
    )
    return Spread(middle=head.mean(axis=-1) - base.mean(axis=-1), error=np.sqrt(total), freedom=freedom)


def estimates(rows: Spread) -> Estimates:
    """Judge the rows of a table."""
    error = np.maximum(rows.error, LEAST_ERROR)
    reach = stats.t.isf((1.0 - CERTAINTY) / 2.0, rows.freedom) * error
    p = 2.0 * stats.t.sf(np.abs(rows.middle) / error, rows.freedom)
    return Estimates(middle=rows.middle, low=rows.middle - reach, high=rows.middle + reach, p=np.minimum(p, 1.0))


def discoveries(p: Array) -> Array:
    """Return p after Benjamini-Hochberg over the last axis, the whole table."""
    return np.asarray(stats.false_discovery_control(p, axis=-1), float) if p.size else p
