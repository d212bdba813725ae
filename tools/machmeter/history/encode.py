"""How columns of numbers are written in the exported data: as plain JSON where that is small, packed where it is not.

Plain columns are lists of numbers with six significant digits. A long column of a noisy series would be mostly digits
of its noise, so it is packed into text of three characters a value: its logarithm, in 728,999 equal steps between the
smallest and the largest value, which is as exact as six digits where they differ by no more than a factor of two, and
never worse than five in a million. `site/static/schema/series.schema.json` says how to read both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# 90 characters that JSON never escapes: "#" to "~" without the backslash.
ALPHABET = bytes(code for code in range(35, 127) if code != 92)[:90]
BASE = len(ALPHABET)

VALUE_LEVELS = BASE**3 - 1
COARSE_LEVELS = BASE**2 - 5  # two characters; the four codes above are for what is no number
PACKED_FROM = 100  # values; a shorter column is small anyway, and plain numbers are easier to use
_WIDEST = 1480.0  # largest over smallest value; beyond, a level would be coarser than five in a million

_LETTERS = np.frombuffer(ALPHABET, np.uint8)
_CODES = np.full(128, 255, np.uint8)
_CODES[_LETTERS] = np.arange(BASE)

_NO_BOUND, _BOUND_LEVELS = BASE - 1, BASE - 2
_SMALLEST_BOUND, _BOUND_DECADES = 1e-6, 7.0


def rounded(values: Iterable[float]) -> list[float | int | None]:
    """Return `values` with six significant digits, None for what is no number."""
    text = ["%.6g" % value for value in values]  # noqa: UP031 - twice as fast as a format string
    return [None if item in ("nan", "inf", "-inf") else _number(item) for item in text]


def _number(text: str) -> float | int:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def can_be_packed(values: NDArray[np.float64]) -> bool:
    """Return whether `values`, all finite, are many enough, positive and not too different."""
    if len(values) < PACKED_FROM:
        return False
    least, most = float(values.min()), float(values.max())
    return least > 0.0 and most / least <= _WIDEST


def pack(values: NDArray[np.float64]) -> dict[str, Any]:
    """Return `values` packed: {"from", "to", "text"}. Ask `can_be_packed` first."""
    least, most = float(values.min()), float(values.max())
    return {"from": least, "to": most, "text": letters(levels(values, least, most, VALUE_LEVELS), 3)}


def unpack(packed: dict[str, Any]) -> NDArray[np.float64]:
    """Return the values that were packed: the reference for readers in other languages."""
    code = numbers(packed["text"], 3)
    return np.asarray(packed["from"] * np.exp(code / VALUE_LEVELS * np.log(packed["to"] / packed["from"])))


def levels(values: NDArray[np.float64], least: float, most: float, count: int) -> NDArray[np.int64]:
    """Return the nearest of the levels 0 to `count`, equally far apart in logarithm between `least` and `most`."""
    if most <= least:
        return np.zeros(len(values), np.int64)
    code = np.rint(np.log(values / least) * (count / np.log(most / least))).astype(np.int64)
    return np.asarray(np.minimum(code, count))


def letters(codes: NDArray[np.int64], width: int) -> str:
    """Return `codes` as text, `width` characters each, the first one counting most."""
    text = np.empty((len(codes), width), np.uint8)
    rest = codes
    for position in reversed(range(width)):
        rest, digit = np.divmod(rest, BASE)
        text[:, position] = _LETTERS[digit]
    return text.tobytes().decode("ascii")


def numbers(text: str, width: int) -> NDArray[np.int64]:
    """Return the codes that `letters` wrote."""
    digits = _CODES[np.frombuffer(text.encode("ascii"), np.uint8)].reshape(-1, width).astype(np.int64)
    codes = np.zeros(len(digits), np.int64)
    for position in range(width):
        codes = codes * BASE + digits[:, position]
    return codes


def bounds(value: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> str:
    """Return an interval around each value as two characters: how far below and above it reaches, to a tenth of that.

    0 is no distance, 89 no bound, and k between them 10^(-6 + 7 (k - 1) / 87) of the value.
    """
    distance = np.empty((len(value), 2))
    distance[:, 0], distance[:, 1] = (value - low) / value, (high - value) / value
    none, least = ~np.isfinite(distance), distance < _SMALLEST_BOUND / 2
    distance[none | least] = 1.0
    code = np.rint(1 + np.log10(distance / _SMALLEST_BOUND) * ((_BOUND_LEVELS - 1) / _BOUND_DECADES))
    code = np.minimum(np.maximum(code, 1), _BOUND_LEVELS)
    code[least], code[none] = 0, _NO_BOUND
    return _LETTERS[code.astype(np.int64).ravel()].tobytes().decode("ascii")


def unbound(value: NDArray[np.float64], text: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the intervals that `bounds` wrote: the reference for readers in other languages."""
    code = numbers(text, 1).reshape(-1, 2).astype(float)
    distance = _SMALLEST_BOUND * 10 ** ((code - 1) * _BOUND_DECADES / (_BOUND_LEVELS - 1))
    distance = np.where(code == 0, 0.0, np.where(code == _NO_BOUND, np.nan, distance))
    return value * (1 - distance[:, 0]), value * (1 + distance[:, 1])


def positions(ascending: NDArray[np.int32]) -> list[int]:
    """Return ascending positions as [skip, take, skip, take, ...]: skip so many, then take so many in a row."""
    if not len(ascending):
        return []
    if ascending[-1] - ascending[0] + 1 == len(ascending):
        return [int(ascending[0]), len(ascending)]
    gaps = np.flatnonzero(np.diff(ascending) != 1) + 1
    begins = np.concatenate([[0], gaps])
    ends = np.concatenate([gaps, [len(ascending)]])
    first = ascending[begins].astype(np.int64)
    after = np.concatenate([[0], ascending[ends[:-1] - 1].astype(np.int64) + 1])
    found: list[int] = np.stack([first - after, ends - begins], axis=1).ravel().tolist()
    return found


def runs(values: NDArray[Any]) -> list[int]:
    """Return `values` as [count, value, count, value, ...]."""
    if not len(values):
        return []
    if (values == values[0]).all():
        return [len(values), int(values[0])]
    begins = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])
    counts = np.diff(np.concatenate([begins, [len(values)]]))
    found: list[int] = np.stack([counts, values[begins].astype(np.int64)], axis=1).ravel().tolist()
    return found


def strict(content: Any) -> bytes:
    """Return `content` as strict JSON: the same bytes for the same content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
