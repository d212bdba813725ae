"""How columns of numbers are written in the exported data: as plain JSON where that is small, packed where it is not.

Plain columns are lists of numbers with six significant digits. A long column of a noisy series would be mostly digits
of its noise, so it is packed into text: the logarithm of each value in equal steps between the smallest and the largest
value, with two, two and a half or three characters a value, as many as it takes to come within five in a million: as
near as six digits are. The ends of the intervals have fewer levels, and one to two characters for both.
`site/static/schema/series.schema.json` says how to read all of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter.site.data.shapes import Bounds, Packed

# 90 characters that JSON never escapes: "#" to "~" without the backslash.
ALPHABET = bytes(code for code in range(35, 127) if code != 92)[:90]
BASE = len(ALPHABET)

# Characters a value and the highest level they can say: of two and a half, two values share five.
WIDTHS = {2: BASE**2 - 1, 2.5: 76_842, 3: BASE**3 - 1}
# Characters for both ends of an interval, and how many levels each end can have then, "no bound" among them.
BOUND_WIDTHS = {1: 9, 1.5: 29, 2: BASE}
ERROR = 5e-6  # of a packed value, relative
COARSE_LEVELS = BASE**2 - 5  # two characters; the four codes above are for what is no number
PACKED_FROM = 100  # values; a shorter column is small anyway, and plain numbers are easier to use
_WIDEST = 1480.0  # largest over smallest value; beyond, a level would be coarser than five in a million

_LETTERS = np.frombuffer(ALPHABET, np.uint8)
_PAIRS = np.stack([np.repeat(_LETTERS, BASE), np.tile(_LETTERS, BASE)], axis=1)
_CODES = np.full(128, 255, np.uint8)
_CODES[_LETTERS] = np.arange(BASE)

_BOUND_LEVELS = BASE - 2
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


def pack(values: NDArray[np.float64]) -> Packed:
    """Return `values` packed: {"from", "to", "width", "text"}. Ask `can_be_packed` first."""
    least, most = float(values.min()), float(values.max())
    span = math.log(most / least)
    width = next((width for width, count in WIDTHS.items() if span <= 2 * ERROR * count), 3)
    code = levels(values, least, most, WIDTHS[width])
    return {"from": least, "to": most, "width": width, "text": joined(code, WIDTHS[width] + 1, width)}


def unpack(packed: Packed, count: int) -> NDArray[np.float64]:
    """Return the `count` values that were packed: the reference for readers in other languages."""
    highest = WIDTHS[packed["width"]]
    code = parted(packed["text"], highest + 1, packed["width"])[:count]
    return np.asarray(packed["from"] * np.exp(code / highest * np.log(packed["to"] / packed["from"])))


def levels(values: NDArray[np.float64], least: float, most: float, count: int) -> NDArray[np.int64]:
    """Return the nearest of the levels 0 to `count`, equally far apart in logarithm between `least` and `most`."""
    if math.isfinite(most / least):
        span, share = math.log(most / least), np.log(values / least)
    else:  # more than the largest number
        span, share = math.log(most) - math.log(least), np.log(values) - math.log(least)
    if span <= 0.0:
        return np.zeros(len(values), np.int64)
    return np.asarray(np.minimum(np.rint(share * (count / span)).astype(np.int64), count))


def even_levels(values: NDArray[np.float64], least: float, most: float, count: int) -> NDArray[np.int64]:
    """Return the nearest of the levels 0 to `count`, equally far apart between `least` and `most`."""
    if most <= least:
        return np.zeros(len(values), np.int64)
    if math.isinf(most - least):  # the distance of two numbers can be more than the largest number
        values, least, most = values / 2, least / 2, most / 2
    return np.asarray(np.rint((values - least) / (most - least) * count).astype(np.int64))


def letters(codes: NDArray[np.int64], width: int) -> str:
    """Return `codes` as text, `width` characters each, the first one counting most."""
    text = np.empty((len(codes), width), np.uint8)
    rest, end = codes, width
    while end > 1:  # two characters at a time
        rest, pair = np.divmod(rest, BASE * BASE) if end > 2 else (rest, rest)
        text[:, end - 2 : end] = _PAIRS[pair]
        end -= 2
    if end:
        text[:, 0] = _LETTERS[rest]
    return text.tobytes().decode("ascii")


def numbers(text: str, width: int) -> NDArray[np.int64]:
    """Return the codes that `letters` wrote."""
    digits = _CODES[np.frombuffer(text.encode("ascii"), np.uint8)].reshape(-1, width).astype(np.int64)
    codes = np.zeros(len(digits), np.int64)
    for position in range(width):
        codes = codes * BASE + digits[:, position]
    return codes


def joined(codes: NDArray[np.int64], count: int, width: float) -> str:
    """Return `codes`, each below `count`, with `width` characters each; where that is no whole number two share it."""
    if width == int(width):
        return letters(codes, int(width))
    pairs = np.append(codes, np.zeros(len(codes) % 2, np.int64)).reshape(-1, 2)
    return letters(pairs[:, 0] * count + pairs[:, 1], int(2 * width))


def parted(text: str, count: int, width: float) -> NDArray[np.int64]:
    """Return the codes that `joined` wrote, and perhaps one more that means nothing."""
    if width == int(width):
        return numbers(text, int(width))
    return np.stack(np.divmod(numbers(text, int(2 * width)), count), axis=1).ravel()


def bounds(value: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> Bounds:
    """Return an interval around each value packed: how far below and above it reaches, to a tenth of that.

    Level 0 is no distance, and k from 1 to 88 is 10^(-6 + 7 (k - 1) / 87) of the value. Only the levels that occur
    are told apart, and one after them that is no bound.
    """
    distance = np.empty((len(value), 2))
    with np.errstate(over="ignore"):  # too far from the value to be said: no bound
        distance[:, 0], distance[:, 1] = 1.0 - low / value, high / value - 1.0
    none, least = ~np.isfinite(distance), distance < _SMALLEST_BOUND / 2
    distance[none | least] = 1.0
    distance = np.minimum(distance, _SMALLEST_BOUND * 10**_BOUND_DECADES)
    level = np.rint(1 + np.log10(distance / _SMALLEST_BOUND) * ((_BOUND_LEVELS - 1) / _BOUND_DECADES)).astype(np.int64)
    level = np.minimum(np.maximum(level, 1), _BOUND_LEVELS)
    level[least] = 0
    there = level[~none]
    first = int(there.min()) if len(there) else 0
    count = (int(there.max()) - first + 2) if len(there) else 1
    level[none] = first + count - 1
    code = (level[:, 0] - first) * count + level[:, 1] - first
    width = next(width for width, most in BOUND_WIDTHS.items() if count <= most)
    return {"from": first, "levels": count - 1, "width": width, "text": joined(code, count**2, width)}


def unbound(value: NDArray[np.float64], packed: Bounds) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the intervals that `bounds` wrote: the reference for readers in other languages."""
    count = packed["levels"] + 1
    code = np.stack(np.divmod(parted(packed["text"], count**2, packed["width"])[: len(value)], count), axis=1)
    level = code + packed["from"]
    distance = _SMALLEST_BOUND * 10 ** ((level - 1) * _BOUND_DECADES / (_BOUND_LEVELS - 1))
    distance = np.where(code == count - 1, np.nan, np.where(level == 0, 0.0, distance))
    return value * (1 - distance[:, 0]), value * (1 + distance[:, 1])


def positions(ascending: NDArray[np.int32]) -> list[int]:
    """Return ascending positions as [skip, take, skip, take, ...]: skip so many, then take so many in a row."""
    if not len(ascending):
        return []
    if ascending[-1] - ascending[0] + 1 == len(ascending):
        return [int(ascending[0]), len(ascending)]
    found: list[int] = []
    begin = after = 0
    # A few gaps are quicker one by one than as columns.
    for gap in [*np.flatnonzero(ascending[1:] - ascending[:-1] != 1).tolist(), len(ascending) - 1]:
        first, last = int(ascending[begin]), int(ascending[gap])
        found += [first - after, gap + 1 - begin]
        begin, after = gap + 1, last + 1
    return found


def runs(values: NDArray[Any]) -> list[int]:
    """Return `values` as [count, value, count, value, ...]."""
    if not len(values):
        return []
    found: list[int] = []
    begin = 0
    for end in [*(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]:
        found += [end - begin, int(values[begin])]
        begin = end
    return found


def strict(content: object) -> bytes:
    """Return `content` as strict JSON: the same bytes for the same content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
