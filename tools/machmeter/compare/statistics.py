"""Whether the processes of head differ from those of base: estimate, interval and p of every row of a table at once.

Why so, and how well it does: docs/comparisons.md. Everything is in logarithms, so that a ratio is a difference. Arrays
have rows, and what was measured of each row last; any dimensions before these are further tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from machmeter.compare import pairing, statistics
from machmeter.compare.limits import CERTAINTY
from machmeter.compare.pairing import Pair

Array = NDArray[np.float64]

# A clock may be so coarse that nothing differs: no standard error is taken to be smaller.
LEAST_ERROR = 1e-9

# Fewer rows than this do not tell how variances are spread over a table.
LEAST_ROWS = 20

# A pair counts for at most this many standard deviations of pairs.
FARTHEST = 2.0

# The table's word counts for this share of what it would if all its rows were noisy in the same way, which they are
# not; and for nothing in rows that are clearly noisier than the others.
TRUST = 0.15
NOISY = 0.1
_MOST_FREEDOM = 200.0


@dataclass(frozen=True, kw_only=True)
class Table:
    """What a table knows of the noise of any row of it: arrays over tables."""

    scale: Array  # the usual robust standard deviation of a pair
    variance: Array  # the usual variance of a pair, once far pairs are drawn in
    freedom: Array  # degrees of freedom that this is worth


@dataclass(frozen=True, kw_only=True)
class Spread:
    """What is known of rows: arrays over rows."""

    middle: Array  # the logarithm of head over base
    error: Array  # its standard error
    freedom: Array  # degrees of freedom of that error


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """What may be said of the logarithm of head over base: arrays over rows."""

    middle: Array
    low: Array
    high: Array
    p: Array


def table(differences: Array) -> Table | None:
    """Return what rows of log ratios of pairs tell of each other's noise; None where there are too few rows."""
    if differences.shape[-2] < LEAST_ROWS:
        return None
    scale = np.median(_robust(differences)[1], axis=-1)
    variance = np.maximum(_drawn_in(differences, scale)[1], LEAST_ERROR**2)
    own = differences.shape[-1] - 1.0
    low, middle, high = np.quantile(np.log(variance), [0.1, 0.5, 0.9], axis=-1)
    # What the logarithms of variances spread beyond chance: psi'(own / 2) is the chance of normal noise.
    excess = ((high - low) / (2.0 * stats.norm.ppf(0.9))) ** 2 - special.polygamma(1, own / 2.0)
    freedom = TRUST * np.where(excess > 0.01, 2.0 * _inverse_trigamma(np.maximum(excess, 0.01)), _MOST_FREEDOM)
    return Table(scale=scale, variance=np.exp(middle) / stats.f.median(own, np.maximum(freedom, 1e-3)), freedom=freedom)


def paired(differences: Array, known: Table | None) -> Spread:
    """Summarise rows of log ratios of pairs, with what is known of the table."""
    count = differences.shape[-1]
    own = np.full(differences.shape[:-1], count - 1.0)
    if known is None:  # nothing tells a far pair from a noisy row
        error = differences.std(axis=-1, ddof=1) / np.sqrt(count)
        return Spread(middle=differences.mean(axis=-1), error=error, freedom=own)
    middle, variance = _drawn_in(differences, known.scale)
    usual, freedom = known.variance[..., None], known.freedom[..., None]
    noisy = stats.f.sf(variance / usual, own, freedom) < NOISY
    shared = (freedom * usual + own * variance) / (freedom + own)
    return Spread(
        middle=middle,
        error=np.sqrt(np.where(noisy, variance, shared) / count),
        freedom=np.where(noisy, own, own + freedom),
    )


def _robust(differences: Array) -> tuple[Array, Array]:
    """Return the trimmed mean of rows, and the standard deviation of a pair from the winsorised variance (Yuen)."""
    count = differences.shape[-1]
    cut = count // 8  # of fewer, those that are left may agree by luck
    inner = np.sort(differences, axis=-1)[..., cut : count - cut]
    drawn = np.clip(differences, inner[..., :1], inner[..., -1:])
    kept = count - 2 * cut
    variance = drawn.var(axis=-1, ddof=1) * (count - 1.0) * count / (kept * (kept - 1.0))
    return inner.mean(axis=-1), np.sqrt(variance)


def _drawn_in(differences: Array, usual: Array) -> tuple[Array, Array]:
    """Return mean and variance of a pair of rows, with pairs that lie far outside drawn in: one step of Huber's M."""
    middle, scale = _robust(differences)
    reach = np.maximum(FARTHEST * np.maximum(scale, usual[..., None]), LEAST_ERROR)[..., None]
    beside = differences - middle[..., None]
    drawn = np.clip(beside, -reach, reach)
    inside = np.maximum(np.mean(np.abs(beside) <= reach, axis=-1), 0.5)
    return middle + drawn.mean(axis=-1) / inside, drawn.var(axis=-1, ddof=1) / inside**2


def _inverse_trigamma(value: Array) -> Array:
    """Return x with psi'(x) = `value`, by Newton's method on 1 / psi', which is nearly straight."""
    found = 0.5 + 1.0 / value
    for _ in range(8):
        trigamma = special.polygamma(1, found)
        found = np.maximum(found + trigamma * (1.0 - trigamma / value) / special.polygamma(2, found), 1e-3)
    return np.asarray(found, float)


def blocks(base: Array, head: Array) -> Spread:
    """Summarise sides that were measured one after the other, from logarithms of their processes: Welch's test."""
    sizes = [side.shape[-1] for side in (base, head)]
    parts = [side.var(axis=-1, ddof=1) / size for side, size in zip((base, head), sizes, strict=True)]
    total = np.maximum(parts[0] + parts[1], LEAST_ERROR**2)
    doubt = sum(part**2 / (size - 1.0) for part, size in zip(parts, sizes, strict=True))
    freedom = total**2 / np.maximum(doubt, total**2 / (sum(sizes) - 2.0))
    return Spread(middle=head.mean(axis=-1) - base.mean(axis=-1), error=np.sqrt(total), freedom=freedom)


def estimates(rows: Spread) -> Estimates:
    """Return what rows say, by Student's t."""
    error = np.maximum(rows.error, LEAST_ERROR)
    reach = stats.t.isf((1.0 - CERTAINTY) / 2.0, rows.freedom) * error
    p = 2.0 * stats.t.sf(np.abs(rows.middle) / error, rows.freedom)
    return Estimates(middle=rows.middle, low=rows.middle - reach, high=rows.middle + reach, p=np.minimum(p, 1.0))


def discoveries(p: Array) -> Array:
    """Return p after Benjamini-Hochberg over the last axis, the whole table."""
    return np.asarray(stats.false_discovery_control(p, axis=-1), float) if p.size else p


LARGEST_LOGARITHM = 690.0  # no logarithm of a ratio beyond this: it would be no number in JSON


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A pair with what the statistics say of it, in logarithms; None where there is nothing to say."""

    pair: Pair
    middle: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None

    @property
    def within(self) -> bool:
        """Return whether ratio and interval are numbers that JSON can hold."""
        return all(
            number is not None and abs(number) < LARGEST_LOGARITHM for number in (self.middle, self.low, self.high)
        )


def judge_all(pairs: Sequence[Pair]) -> list[Judged]:
    """Return what the statistics say of each pair: each metric's rows are one table for them."""
    found: dict[int, Judged] = {}
    groups: dict[tuple[str, bool], list[int]] = {}
    for place, pair in enumerate(pairs):
        if pair.why_not or pair.once or not all(map(pairing.is_usable, (*pair.base, *pair.head))):
            found[place] = Judged(pair=pair)
        else:
            groups.setdefault((pair.metric, pair.matched), []).append(place)
    for places in groups.values():
        some = [pairs[place] for place in places]
        estimates = statistics.estimates(_summaries(some))
        for place, middle, low, high, p in zip(
            places, estimates.middle, estimates.low, estimates.high, estimates.p, strict=True
        ):
            found[place] = Judged(pair=pairs[place], middle=float(middle), low=float(low), high=float(high), p=float(p))
    return [found[place] for place in range(len(pairs))]


def _summaries(pairs: Sequence[Pair]) -> statistics.Spread:
    """Return the summary of each of `pairs`; those with as many processes are summarised at once."""
    middle, error, freedom = (np.empty(len(pairs)) for _ in range(3))
    sizes: dict[tuple[int, int], list[int]] = {}
    for place, pair in enumerate(pairs):
        sizes.setdefault((len(pair.base), len(pair.head)), []).append(place)
    known = _usual(pairs) if pairs[0].matched else None
    for places in sizes.values():
        base = np.log([pairs[place].base for place in places])
        head = np.log([pairs[place].head for place in places])
        matched = pairs[0].matched
        found = statistics.paired(head - base, known) if matched else statistics.blocks(base, head)
        middle[places], error[places], freedom[places] = found.middle, found.error, found.freedom
    return statistics.Spread(middle=middle, error=error, freedom=freedom)


def _usual(pairs: Sequence[Pair]) -> statistics.Table | None:
    """Return what a metric's rows tell of each other's noise, from as many rounds of each.

    Who has more rounds was undecided for longer, and is noisier than others: it must not be told from those alone.
    """
    rounds = min(len(pair.base) for pair in pairs)
    base, head = (np.log([getattr(pair, side)[:rounds] for pair in pairs]) for side in ("base", "head"))
    return statistics.table(head - base)
