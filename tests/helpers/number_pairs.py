"""Pairs of numbers with what became of them: the same cases for whatever judges two numbers and says so."""

from __future__ import annotations

from dataclasses import dataclass

from machmeter.metrics import Direction
from machmeter.text.two_numbers import Outcome

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two numbers, and what is to be said of them. The difference is one that counts, unless they are the same."""

    before: float
    after: float
    unit: str
    direction: Direction | None
    outcome: Outcome
    words: str


def _pair(
    before: float, after: float, unit: str, direction: Direction | None, outcome: Outcome, words: str
) -> Pair:  # fmt: skip
    return Pair(before=before, after=after, unit=unit, direction=direction, outcome=outcome, words=words)


# Units of which `units.direction` knows which way is better, so that a store of asv's can hold them.
PAIRS = (
    _pair(10.0, 12.0, "seconds", "lower", "worse", "+20.0 %"),
    _pair(12.0, 10.0, "seconds", "lower", "better", f"{MINUS}16.7 %"),
    _pair(100.0, 50.0, "images/s", "higher", "worse", f"{MINUS}50.0 %"),
    _pair(1.0, 12.0, "images/s", "higher", "better", "× 12.0"),
    _pair(1.0, 2.0, "points", None, "change", "+100.0 %"),
    _pair(4.0, 4.25, "bytes", "lower", "worse", "+6.2 %"),  # 6.25: Python and browsers round it differently
    _pair(5.0, 5.0, "seconds", "lower", "same", "unchanged"),
    # Zero on one side, or on both.
    _pair(0.0, 0.0, "bytes", "lower", "same", "unchanged"),
    _pair(0.0, 5.0, "seconds", "lower", "worse", "from 0 ns to 5.000 s"),
    _pair(5.0, 0.0, "bytes", "lower", "better", "from 5.000 B to 0 B"),
    _pair(0.0, 5.0, "points", None, "change", "from 0 points to 5.000 points"),
    # Below zero a ratio says nothing, or the opposite: from -10 to -20 is no doubling, and -10 / 5 no rise by 150 %.
    _pair(-10.0, -20.0, "images/s", "higher", "worse", "from -10.00 images/s to -20.00 images/s"),
    _pair(-10.0, -5.0, "seconds", "lower", "worse", "from -10.00 s to -5.000 s"),
    _pair(-0.001, -1.0, "images/s", "higher", "worse", "from -0.001000 images/s to -1.000 images/s"),
    _pair(-3.0, 4.0, "bytes", "lower", "worse", "from -3.000 B to 4.000 B"),
    _pair(3.0, -4.0, "points", None, "change", "from 3.000 points to -4.000 points"),
    # Decibels and shares, on either side of zero.
    _pair(30.0, 20.0, "dB", "higher", "worse", f"{MINUS}10.0 dB"),
    _pair(-500.0, 0.5, "dB", "higher", "better", "+500.5 dB"),
    _pair(0.5, -500.0, "dB", "higher", "worse", f"{MINUS}500.5 dB"),
    _pair(0.99, 0.5, "fraction", "higher", "worse", f"{MINUS}49.0 points"),
    _pair(0.0, 0.25, "fraction", "higher", "better", "+25.0 points"),
    # As large and as small as numbers are.
    _pair(1e-300, 1e300, "images/s", "higher", "better", "from 1.000e-300 images/s to 1.000e+300 images/s"),
    _pair(1e308, 5e-324, "images/s", "higher", "worse", "from 1.000e+308 images/s to 4.941e-324 images/s"),
    _pair(5e-324, 1e308, "seconds", "lower", "worse", "from 4.941e-315 ns to 1.000e+308 s"),
    _pair(5e-324, 1e-323, "images/s", "higher", "better", "+100.0 %"),
)  # fmt: skip
