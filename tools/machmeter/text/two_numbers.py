"""Two numbers side by side: better, worse or the same, by how much, and how that is said.

It stands in `text` since steps of a series (`changes`), two sides (`compare`), pages and messages all say it, and of
those none stands below all others. `site/static/js/two_numbers.js` says it alike, by the rules that `rules` returns.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from machmeter.metrics import Direction
from machmeter.text.numbers import digits, signed, value

# "change" is a difference of which nobody said what is better; "unknown" is what no number can tell.
Outcome = Literal["better", "worse", "change", "same", "unknown"]

# From this factor on people say "20 times", not "+1900 %".
TIMES = 3.0

# Units in which a percentage says nothing: how often one of theirs goes into what the difference is said in.
_DIFFERENCES = {"dB": (1.0, "dB"), "fraction": (100.0, "points")}


def outcome(before: float, after: float, direction: Direction | None, least: float = 0.0) -> Outcome:
    """Say what became of a number, by which way is better; `least` is the smallest difference that counts, in its unit.

    The sign of the difference decides, never that of a ratio: from -10 to -5 is up, whatever -5 / -10 is.
    """
    if not (math.isfinite(before) and math.isfinite(after)):
        return "unknown"
    if before == after or abs(after - before) < least:
        return "same"
    if direction is None:
        return "change"
    return "better" if (after < before) == (direction == "lower") else "worse"


def ratio(before: float, after: float) -> float | None:
    """Return after over before, or None where one of them is zero or negative (or the ratio is no number)."""
    if before <= 0 or after <= 0:
        return None
    found = after / before
    return found if 0 < found < math.inf else None


def size(before: float, after: float) -> float:
    """Return how large a difference is, whichever way: 0 for none, the logarithm of the factor, or infinity."""
    if before == after:
        return 0.0
    found = ratio(before, after)
    return math.inf if found is None else abs(math.log(found))


def is_told_as_difference(unit: str) -> bool:
    """Return whether a change of numbers in `unit` is told in their unit, as a percentage of them says nothing."""
    return unit in _DIFFERENCES


def words(before: float, after: float, unit: str = "") -> str:
    """Say a change: "+20.0 %", "× 12.0", "+3.0 dB", "from 0 ns to 5.000 s", "unchanged".

    There is a percentage only where both are above zero, and none of decibels and shares. Never NaN or Infinity.
    """
    if before == after:
        return "unchanged"
    by = difference(after - before, unit)
    if by is None:
        found = None if is_told_as_difference(unit) else ratio(before, after)
        return f"from {value(before, unit)} to {value(after, unit)}" if found is None else factor(found)
    return by


def difference(by: float, unit: str) -> str | None:
    """Return a difference of so many `unit`, such as "+1.5 dB" or "+2.0 points"; None where it is not told so."""
    times, name = _DIFFERENCES.get(unit, (math.nan, ""))
    return f"{signed(times * by)} {name}" if math.isfinite(times * by) else None


def factor(found: float, decimals: int = 1) -> str:
    """Return a ratio as people say it: "+4.2 %", "× 3.40"."""
    return percent(found, decimals) if found < TIMES else f"× {digits(found, 3)}"


def percent(found: float, decimals: int = 1) -> str:
    """Return a ratio as a percentage with its sign, such as "+4.2 %"."""
    return f"{signed(100 * (found - 1), decimals)} %"


def rules() -> dict[str, Any]:
    """Return what `site/static/js/two_numbers.js` says the same by."""
    return {"times": TIMES, "differences": {unit: list(told) for unit, told in _DIFFERENCES.items()}}
