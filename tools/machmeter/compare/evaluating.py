"""What the statistics say of pairs: those of one metric are one table for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from machmeter.compare import pairing, statistics
from machmeter.compare.pairing import Pair

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
