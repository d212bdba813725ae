"""Frozen dataclasses to JSON and back, with the standard library alone: what runs beside a measurement loads no more.

A dataclass says in its fields what an object of JSON holds. A field that is `optional()` is left out where it is None;
every other None is written as null. The field `in_own_words()` holds what else the object has, under its own names.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import MISSING, field, fields, is_dataclass
from typing import Any, TypeAlias, TypeVar

Json = dict[str, Any]  # an object of JSON of which nothing is known yet
JsonValue: TypeAlias = "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"

Shape = TypeVar("Shape")

_OPTIONAL, _OWN_WORDS = "optional", "own words"


def optional() -> Any:
    """Return a dataclass field that is left out of the JSON where its value is None."""
    return field(default=None, metadata={_OPTIONAL: True})


def in_own_words() -> Any:
    """Return a dataclass field, a dictionary, whose items stand in the JSON beside the other fields."""
    return field(default_factory=dict, metadata={_OWN_WORDS: True})


def encode(value: Any) -> Any:
    """Return `value`, a dataclass or what JSON can hold, as JSON can hold it."""
    if is_dataclass(value) and not isinstance(value, type):
        return _object(value)
    if isinstance(value, Mapping):
        return {name: encode(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    return value


def _object(value: Any) -> Json:
    written: Json = {}
    for item in fields(value):
        inside = getattr(value, item.name)
        if item.metadata.get(_OWN_WORDS):
            written |= {name: encode(more) for name, more in inside.items()}
        elif inside is not None or not item.metadata.get(_OPTIONAL):
            written[item.name] = encode(inside)
    return written


def decode(shape: type[Shape], value: Any) -> Shape:
    """Return the dataclass `shape` that the object of JSON `value` describes.

    What is missing has its default, and what the dataclass does not know is skipped. Numbers and texts are taken as
    they are. Raises ValueError where an object or a list has another form, or something without a default is missing.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"{shape.__name__} must be an object, not {type(value).__name__}")
    known = dict(value)
    kinds = _types(shape)  # type: ignore[arg-type]  # mypy: a variable of a type is not hashable
    given: Json = {}
    own_words = None
    for item in fields(shape):  # type: ignore[arg-type]
        if item.metadata.get(_OWN_WORDS):
            own_words = item.name
        elif item.name in known:
            given[item.name] = _value(kinds[item.name], known.pop(item.name))
        elif item.default is MISSING and item.default_factory is MISSING:
            raise ValueError(f"{shape.__name__} lacks {item.name}")
    if own_words:
        given[own_words] = known
    return shape(**given)


@functools.cache
def _types(shape: Hashable) -> dict[str, object]:
    return typing.get_type_hints(shape)


def _value(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    if is_dataclass(kind):
        return decode(kind, value)  # type: ignore[arg-type]
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        shapes = [part for part in inside if is_dataclass(part) or typing.get_origin(part) is not None]
        return _value(shapes[0], value) if len(shapes) == 1 and isinstance(value, Mapping | list) else value
    if origin in (tuple, list):
        if not isinstance(value, list | tuple):
            raise ValueError(f"a list is expected, not {value!r}"[:200])
        return origin(_value(inside[0], item) for item in value) if _has_shape(inside[0]) else origin(value)
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise ValueError(f"an object is expected, not {value!r}"[:200])
        return {name: _value(inside[1], item) for name, item in value.items()} if _has_shape(inside[1]) else dict(value)
    return value


@functools.cache
def _has_shape(kind: Any) -> bool:
    """Return whether values of `kind` are more than numbers and texts."""
    return is_dataclass(kind) or typing.get_origin(kind) is not None
