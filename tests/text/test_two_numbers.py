"""Two numbers: which way they went and what is said of it."""

from __future__ import annotations

import math
import re

import pytest

from helpers.number_pairs import MINUS, PAIRS, Pair
from machmeter.metrics import Direction
from machmeter.text import two_numbers

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("pair", PAIRS)
def test_direction_decides_and_words_say_by_how_much(pair: Pair) -> None:
    assert two_numbers.outcome(pair.before, pair.after, pair.direction) == pair.outcome
    assert two_numbers.words(pair.before, pair.after, pair.unit) == pair.words


@pytest.mark.parametrize("pair", PAIRS)
def test_a_percentage_never_contradicts_the_numbers(pair: Pair) -> None:
    """A fall is never told as a rise, and what is not above zero has no percentage."""
    for before, after in ((pair.before, pair.after), (pair.after, pair.before)):
        told = two_numbers.words(before, after, pair.unit)
        if "%" in told or "×" in told:
            assert before > 0
            assert after > 0
        if told[0] in f"+×{MINUS}":
            assert (told[0] != MINUS) == (after > before)


@pytest.mark.parametrize("direction", ["lower", "higher", None])
@pytest.mark.parametrize(("before", "after"), [(NAN, 1.0), (1.0, NAN), (NAN, NAN), (INF, 1.0), (1.0, -INF)])
def test_what_is_no_number_is_unknown(before: float, after: float, direction: Direction | None) -> None:
    assert two_numbers.outcome(before, after, direction) == "unknown"
    for unit in ("seconds", "dB", "fraction", ""):
        assert not re.search("nan|inf|%", two_numbers.words(before, after, unit))


@pytest.mark.parametrize(
    ("before", "after", "least", "outcome"),
    [(1.0, 1.25, 0.25, "worse"), (1.0, 1.125, 0.25, "same"), (-1.0, -0.875, 0.25, "same"), (0.0, 0.0, 0.0, "same")],
)
def test_a_difference_counts_from_the_least_that_does(before: float, after: float, least: float, outcome: str) -> None:
    assert two_numbers.outcome(before, after, "lower", least) == outcome


@pytest.mark.parametrize(
    ("before", "after", "ratio", "size"),
    [
        (10.0, 12.0, 1.2, math.log(1.2)),
        (12.0, 10.0, 10 / 12, math.log(1.2)),
        (5.0, 5.0, 1.0, 0.0),
        (0.0, 0.0, None, 0.0),
        (0.0, 5.0, None, INF),
        (-3.0, -6.0, None, INF),
        (5e-324, 1e149, None, INF),
    ],
)
def test_a_ratio_is_of_two_positive_numbers(before: float, after: float, ratio: float | None, size: float) -> None:
    """J7."""
    assert two_numbers.ratio(before, after) == (None if ratio is None else pytest.approx(ratio))
    assert two_numbers.size(before, after) == pytest.approx(size)


@pytest.mark.parametrize(
    ("ratio", "decimals", "text"),
    [(1.042, 1, "+4.2 %"), (0.5, 0, f"{MINUS}50 %"), (1.0, 1, "0.0 %"), (0.9999, 0, "0 %"), (3.4, 1, "× 3.40")],
)
def test_a_ratio_is_told_as_people_say_it(ratio: float, decimals: int, text: str) -> None:
    assert two_numbers.factor(ratio, decimals) == text
