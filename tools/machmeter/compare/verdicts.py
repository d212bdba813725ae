"""The verdict on one row, from what the statistics say of it, and what is left of it where the machine moved."""

from __future__ import annotations

import math
from collections.abc import Mapping

from machmeter.compare import limits, pairing
from machmeter.compare.documents import Shift, Verdict
from machmeter.compare.pairing import Pair
from machmeter.compare.statistics import Judged
from machmeter.text import two_numbers


def verdict(item: Judged, q: float | None, smallest: float) -> tuple[Verdict, str]:
    """Return the verdict, and words where a ratio does not say it."""
    pair = item.pair
    base, head = pair.middle
    if pair.why_not:
        return "not judged", pair.why_not
    if pair.once:
        return _by_size(pair, base, head)
    if item.middle is None or q is None or not item.within:
        return _without_ratio(pair, base, head)
    assert item.low is not None
    assert item.high is not None
    threshold = math.log1p(smallest)
    if q <= limits.FALSE_DISCOVERIES and abs(item.middle) >= threshold:
        return _named(0.0, item.middle, pair), ""
    own = math.log1p(pair.limit.smallest(base))
    if -own < item.low and item.high < own:
        return "no change", ""
    amount = _amount(smallest, base, pair)
    if not pair.matched:
        return "not judged", f"measured one after the other: less than {amount} may be the machine"
    return "undecided", f"a change of {amount} cannot be excluded"


def _amount(share: float, base: float, pair: Pair) -> str:
    """Return a share of `base` as a percentage, or in the unit where percentages say nothing."""
    told = two_numbers.difference(share * abs(base), pair.unit)
    return told.lstrip("+") if told else f"{100.0 * share:.3g} %"


def under(shift: Shift, item: Judged, found: Verdict, words: str) -> tuple[Verdict, str]:
    """Return what is left of a verdict where the machine itself moved: only what lies beyond its shift.

    What did not change on a machine that did has changed, or its numbers say nothing.
    """
    if found == "not judged":
        return found, words
    if item.middle is None or item.low is None or item.high is None or not item.within:
        certain = found in ("regression", "improvement", "changed")
        return (found, words) if certain else ("not judged", _moved(shift))
    extent = max(abs(math.log(shift.low)), abs(math.log(shift.high)))
    # By its near end: a change whose interval reaches into the shift may be nothing but the shift.
    near = 0.0 if item.low <= 0.0 <= item.high else min(abs(item.low), abs(item.high))
    if near > extent and found not in ("no change", "undecided"):
        return found, words
    if found == "undecided" and abs(item.middle) > extent:
        return found, "a change beyond that of the machine cannot be excluded"
    return "not judged", _moved(shift)


def _moved(shift: Shift) -> str:
    return f"the machine itself moved: {shift.control} by a factor of {shift.ratio:.3g}, and this not beyond it"


def _by_size(pair: Pair, base: float, head: float) -> tuple[Verdict, str]:
    """Judge what is known once, by its size alone."""
    found = _named(base, head, pair, pair.limit.least(base, once=True))
    if found != "no change" and pair.limit.absolute:
        return found, two_numbers.words(base, head, pair.unit)
    return found, "" if pairing.is_usable(base) and pairing.is_usable(head) else _words(pair, base, head)


def _without_ratio(pair: Pair, base: float, head: float) -> tuple[Verdict, str]:
    """Judge values that have no logarithm: certain only where all of head lie on one side of all of base."""
    words = _words(pair, base, head)
    if base == head and min(pair.base) == max(pair.base) and min(pair.head) == max(pair.head):
        return "no change", words
    if max(pair.base) < min(pair.head) or max(pair.head) < min(pair.base):
        return _named(base, head, pair), words
    return "undecided", words


def _words(pair: Pair, base: float, head: float) -> str:
    """Say with units what a ratio cannot."""
    return two_numbers.words(base, head, pair.unit)


_VERDICTS: Mapping[two_numbers.Outcome, Verdict] = {
    "better": "improvement",
    "worse": "regression",
    "change": "changed",
    "same": "no change",
}


def _named(base: float, head: float, pair: Pair, least: float = 0.0) -> Verdict:
    """Return what became of a number, where `least` is the smallest difference that counts."""
    direction = None if pair.better == "unknown" else pair.better
    return _VERDICTS.get(two_numbers.outcome(base, head, direction, least), "not judged")
