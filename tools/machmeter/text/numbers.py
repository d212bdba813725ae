"""How values, dates and names are written on every page. `site/static/js/words.js` writes them alike."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

NONE = "–"

_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "seconds": ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")),
    "bytes": ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")),
    "bytes/s": ((1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s"), (1e12, "TB/s")),
    "operations/s": ((1.0, "op/s"), (1e6, "Mop/s"), (1e9, "Gop/s"), (1e12, "Top/s")),
}
_SAME = {"s": "seconds", "second": "seconds", "sec": "seconds", "byte": "bytes", "b": "bytes"}


def scale(unit: str | None, magnitude: float) -> tuple[float, str]:
    """Return by what values in `unit` are divided where the largest is `magnitude`, and the unit's name then."""
    named = _SAME.get((unit or "").lower(), unit or "")
    steps = _SCALES.get(named)
    if steps is None:
        return 1.0, named
    chosen = steps[0]
    for step in steps:
        if magnitude >= step[0] * 0.9995:
            chosen = step
    return chosen


def digits(value: float, significant: int = 4) -> str:
    """Return `value` with so many significant digits, and no exponent where it can be read without."""
    if value == 0.0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if magnitude < -6 or magnitude > 9:
        return re.sub(r"e([+-])0(\d)$", r"e\1\2", f"{value:.{significant - 1}e}")
    return f"{value:.{max(0, significant - 1 - magnitude)}f}"


def value(number: float | None, unit: str | None) -> str:
    """Return a measured number with its unit, a dash where there is none."""
    if number is None or not math.isfinite(number):
        return NONE
    by, name = scale(unit, abs(number))
    if name == "fraction" and abs(number) < 1e6:
        return f"{number:.3f}"
    return f"{digits(number / by)} {name}".rstrip()


def speed(number: float | None) -> str:
    """Return images per second with the digits that every table of machmeter shows."""
    return NONE if number is None else f"{number:.{throughput_digits(number)}f}"


def ratio(number: float | None) -> str:
    """Return a multiple, such as `×1.34`."""
    return NONE if number is None or not math.isfinite(number) else f"×{digits(number, 3)}"


def percent(number: float | None) -> str:
    """Return a relative change with its sign, such as `+12.3 %`."""
    return NONE if number is None or not math.isfinite(number) else f"{signed(100 * number)} %"


def signed(number: float, decimals: int = 1) -> str:
    """Return a difference with its sign and so many decimals, such as `+1.5`; `0.0` has none."""
    text = digits(number, 3) if abs(number) >= 1000 else f"{number:.{decimals}f}"
    if not text.strip("-0."):
        return text.lstrip("-")
    return f"{'+' if number > 0 else ''}{text}".replace("-", "\N{MINUS SIGN}")


def day(milliseconds: float | None) -> str:
    """Return the day of a time, in UTC: a page must not depend on where it was built."""
    return NONE if milliseconds is None else _utc(milliseconds).strftime("%Y-%m-%d")


def minute(milliseconds: float | None) -> str:
    """Return the minute of a time, in UTC."""
    return NONE if milliseconds is None else _utc(milliseconds).strftime("%Y-%m-%d %H:%M UTC")


def stamp(milliseconds: float) -> str:
    """Return a time as machines read it."""
    return _utc(milliseconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def _utc(milliseconds: float) -> datetime:
    # Years beyond 9999 and before 1 have no calendar here; a wrong date in a file must not stop a build.
    seconds = min(max(milliseconds / 1000, -6e10), 2.5e11)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def plural(count: int, noun: str, many: str | None = None) -> str:
    """Return a count with its noun."""
    return f"{grouped(count)} {noun_of(count, noun, many)}"


def noun_of(count: float, noun: str, many: str | None = None) -> str:
    """Return the noun as it stands beside `count`."""
    return noun if count == 1 else many or noun + "s"


def grouped(count: int) -> str:
    """Return a count with its thousands apart."""
    return f"{count:,}".replace(",", "\N{NO-BREAK SPACE}")


def throughput_digits(images_per_second: float) -> int:
    """Return how many decimals of a throughput are shown: slow models need more than one."""
    return 1 if images_per_second >= 10 else 2
