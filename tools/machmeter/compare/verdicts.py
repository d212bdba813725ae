"""The verdict on one row, from what the statistics say of it, and what is left of it where the machine moved."""

from __future__ import annotations

import math

from machmeter.compare import limits, pairing
from machmeter.compare.documents import Shift, Verdict
from machmeter.compare.pairing import Pair
from machmeter.compare.runs import verdict as direction_of
from machmeter.compare.statistics import Judged
from machmeter.text.numbers import signed, value


def verdict(item: Judged, q: float | None, smallest: float) -> tuple[Verdict, str]:
    """Return the verdict, and words where a ratio does not say it."""
    pair = item.pair
    base, head = pair.middle
    if pair.why_not:
        return "not judged", pair.why_not
    if pair.once:
        return _by_size(pair, base, head, smallest)
    if item.middle is None or q is None or not item.within:
        return _without_ratio(pair, base, head)
    assert item.low is not None
    assert item.high is not None
    threshold = math.log1p(smallest)
    if q <= limits.FALSE_DISCOVERIES and abs(item.middle) >= threshold:
        return _named(item.middle, pair), ""
    own = math.log1p(pair.limit.smallest(base))
    if -own < item.low and item.high < own:
        return "no change", ""
    if not pair.matched:
        return "not judged", f"measured one after the other: less than {100.0 * smallest:.3g} % may be the machine"
    return "undecided", f"a change of {100.0 * smallest:.3g} % cannot be excluded"


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


def _by_size(pair: Pair, base: float, head: float, smallest: float) -> tuple[Verdict, str]:
    """Judge what is known once, by its size alone."""
    by = head - base
    words = "" if pairing.is_usable(base) and pairing.is_usable(head) else _words(pair, base, head)
    counts = abs(by) >= pair.limit.absolute if pair.limit.absolute else abs(by) >= smallest * abs(base)
    if by == 0.0 or not counts:
        return "no change", words
    if pair.limit.absolute:
        words = f"{signed(100.0 * by)} points" if pair.unit == "fraction" else f"{signed(by)} {pair.unit}".strip()
    return _named(by, pair), words


def _without_ratio(pair: Pair, base: float, head: float) -> tuple[Verdict, str]:
    """Judge values that have no logarithm: certain only where all of head lie on one side of all of base."""
    words = _words(pair, base, head)
    if base == head and min(pair.base) == max(pair.base) and min(pair.head) == max(pair.head):
        return "no change", words
    if max(pair.base) < min(pair.head) or max(pair.head) < min(pair.base):
        return _named(head - base, pair), words
    return "undecided", words


def _words(pair: Pair, base: float, head: float) -> str:
    """Say with units what a ratio cannot."""
    if base == head:
        return f"unchanged at {value(base, pair.unit)}"
    return f"was {value(base, pair.unit)}, is {value(head, pair.unit)}"


def _named(by: float, pair: Pair) -> Verdict:
    """Return what a change `by` so much, up or down, is."""
    found = direction_of(0.0, by, None if pair.better == "unknown" else pair.better)
    verdicts: dict[str, Verdict] = {"better": "improvement", "worse": "regression", "different": "changed"}
    return verdicts.get(found, "no change")
