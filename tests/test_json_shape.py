"""Dataclasses to JSON and back: what is left out, what is null, what keeps its own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from machmeter.json_shape import decode, encode, in_own_words, optional


@dataclass(frozen=True, kw_only=True)
class Wheel:
    size: int
    maker: str | None = None
    note: str | None = optional()


@dataclass(frozen=True, kw_only=True)
class Car:
    wheels: tuple[Wheel, ...] = ()
    spare: Wheel | None = optional()
    seats: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    more: dict[str, Any] = in_own_words()


def test_none_is_null_and_an_optional_none_is_left_out() -> None:
    assert encode(Wheel(size=16)) == {"size": 16, "maker": None}
    assert encode(Wheel(size=16, note="worn")) == {"size": 16, "maker": None, "note": "worn"}


def test_what_was_written_is_read_again() -> None:
    car = Car(wheels=(Wheel(size=16), Wheel(size=17)), spare=Wheel(size=3), seats={"front": (1, 2)}, more={"hue": [1]})
    written = encode(car)
    assert written == {
        "wheels": [{"size": 16, "maker": None}, {"size": 17, "maker": None}],
        "spare": {"size": 3, "maker": None},
        "seats": {"front": [1, 2]},
        "hue": [1],
    }
    assert decode(Car, written) == car


def test_what_a_dataclass_does_not_know_is_skipped_and_what_is_missing_has_its_default() -> None:
    assert decode(Wheel, {"size": 16, "tread": "deep"}) == Wheel(size=16)
    assert decode(Car, {}) == Car()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "Car must be an object, not list"),
        ({"wheels": {}}, "a list is expected"),
        ({"wheels": [5]}, "Wheel must be an object, not int"),
        ({"wheels": [{}]}, "Wheel lacks size"),
        ({"seats": []}, "an object is expected"),
    ],
)
def test_another_form_is_told(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode(Car, value)
