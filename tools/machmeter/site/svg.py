"""Plots drawn at build time: scales, axes and marks as SVG that takes its colours from the page's style sheet.

Nothing here sets a style or a script, so the page's Content-Security-Policy holds for them too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

COLOURS = 8
LARGEST = 1e300  # sums and powers of more would overflow
_EXACT = 60  # points; a longer line is drawn in whole pixels


def colour(index: int) -> int:
    """Return the number of the colour of the `index`-th line."""
    return index % COLOURS + 1


def dash(index: int) -> str:
    """Return the class of the dash pattern of the `index`-th line, told apart even without colours."""
    return f" d{index // COLOURS % 4 + 1}" if index >= COLOURS else ""


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Return round numbers between `low` and `high`, about `wanted` of them."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    raw = span / max(wanted, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1.0, 2.0, 2.5, 5.0) if m * power >= raw * 0.999), 10.0 * power)
    first = math.ceil(low / step - 1e-9)
    return [0.0 if n == 0 else n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 of every power of ten between `low` and `high`, or powers alone where that is many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1.0, 2.0, 5.0) if last - first <= 3 else (1.0,)
    return [m * 10.0**p for p in range(first, last + 1) for m in steps if low * 0.999 <= m * 10.0**p <= high * 1.001]


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Maps values between `low` and `high` to pixels between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return where `value` lies, in pixels."""
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        at = math.log(value) if self.log else value
        share = (at - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def many(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where each of `values` lies, NaN for what has no place."""
        there = (np.abs(values) < LARGEST) & ((values > 0) | (not self.log))
        kept = np.where(there, values, np.nan)
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        share = ((np.log(kept) if self.log else kept) - low) / (high - low) if high > low else kept * 0.0 + 0.5
        return np.asarray(self.start + share * (self.end - self.start))

    def ticks(self, wanted: int = 5) -> list[float]:
        """Return where its axis has labels."""
        return log_ticks(self.low, self.high) if self.log else ticks(self.low, self.high, wanted)


def drawable(value: float | None, *, log: bool = False) -> bool:
    """Return whether a value has a place in a plot: a number, and none whose sums and powers would overflow."""
    return value is not None and abs(value) < LARGEST and (value > 0 or not log)


def around(values: Iterable[float], *, log: bool = False, zero: bool = False) -> tuple[float, float]:
    """Return limits that leave some room around `values`; from zero where asked for."""
    finite = [value for value in values if drawable(value, log=log)]
    if not finite:
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = min(finite), max(finite)
    if log:
        return low / 1.12, high * 1.12
    room = 0.06 * (high - low) or abs(high) * 0.05 or 0.5
    return (min(0.0, low) if zero else low - room), high + room


@dataclass(kw_only=True)
class Drawing:
    """An SVG in the making. `label` is what a screen reader says of it."""

    width: int
    height: int
    label: str
    parts: list[Markup] = field(default_factory=list)

    def add(self, markup: str, **values: object) -> None:
        """Add an element; `values` are escaped."""
        self.parts.append(Markup(markup).format(**values))

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Add a straight line."""
        drawn = f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}"
        self.trace(drawn, kind)

    def text(self, x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> None:
        """Add words."""
        more = f' text-anchor="{anchor}"' if anchor != "start" else ""
        more += f' class="{escape(kind)}"' if kind else ""
        self.parts.append(Markup(f'<text x="{number(x)}" y="{number(y)}"{more}>{escape(text)}</text>'))

    def dot(self, x: float, y: float, kind: str, title: str = "", radius: float = 3.5) -> None:
        """Add a point; its `title` appears under the pointer."""
        inner = f"<title>{escape(title)}</title>" if title else ""
        where = f'cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"'
        self.parts.append(Markup(f'<circle class="dot {escape(kind)}" {where}>{inner}</circle>'))

    def path(self, points: Sequence[tuple[float, float] | None], kind: str) -> None:
        """Add a line through `points`; None is a gap."""
        self.trace(trace(points), kind)

    def trace(self, drawn: str, kind: str) -> None:
        """Add a path, unless it is empty."""
        if drawn:
            self.parts.append(Markup(f'<path class="{escape(kind)}" d="{drawn}"/>'))

    def markup(self) -> Markup:
        """Return the finished SVG."""
        kind = "plot" if self.width > 600 else "plot narrow"
        opening = '<svg class="{}" viewBox="0 0 {} {}" role="img" aria-label="{}" xmlns="http://www.w3.org/2000/svg">'
        return (
            Markup(opening).format(kind, self.width, self.height, self.label)
            + Markup("").join(self.parts)
            + Markup("</svg>")
        )


def number(value: float) -> str:
    """Return a coordinate with no more digits than a pixel needs."""
    return f"{value:.1f}".removesuffix(".0")


def trace(points: Sequence[tuple[float, float] | None]) -> str:
    """Return the path through `points`, with gaps where one is None."""
    drawn: list[str] = []
    begun = False
    for point in points:
        if point is not None:
            drawn.append(f"{'L' if begun else 'M'}{number(point[0])} {number(point[1])}")
        begun = point is not None
    return "".join(drawn)


def line(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """Return the path through points, with gaps where y is NaN.

    Long lines are written in whole pixels and as steps: a page of a thousand points stays small.
    """
    if len(y) <= _EXACT:
        given = zip(x.tolist(), y.tolist(), strict=True)
        return trace([None if math.isnan(point[1]) else point for point in given])
    there = ~np.isnan(y)
    begins = (there & ~np.concatenate([[False], there[:-1]]))[there].tolist()
    across, down = (np.rint(some[there]).astype(np.int64) for some in (x, y))
    steps = zip(np.diff(across, prepend=0).tolist(), np.diff(down, prepend=0).tolist(), strict=True)
    drawn = [f"l{right}{below}" if below < 0 else f"l{right} {below}" for right, below in steps]
    for at in np.flatnonzero(begins).tolist():
        drawn[at] = f"M{across[at]} {down[at]}"
    return "".join(drawn)


def axes(drawing: Drawing, x: Scale, y: Scale, *, y_labels: Sequence[tuple[float, str]], title: str = "") -> None:
    """Draw horizontal grid lines with their labels, and the base line."""
    for at, words in y_labels:
        drawing.line(x.start, y(at), x.end, y(at), "grid")
        drawing.text(x.start - 8, y(at) + 4, words, "end")
    drawing.line(x.start, y.start, x.end, y.start, "axis")
    if title:
        drawing.text(0, 12, title)


def swatch(index: int, *, dashed: str = "", dot: bool = False) -> Markup:
    """Return the sample of a line, or of a dot, for a legend."""
    mark = '<circle class="f{}{}" cx="20" cy="5" r="5"/>' if dot else '<path class="line c{}{}" d="M0 5H28"/>'
    return Markup('<svg viewBox="0 0 28 10" aria-hidden="true">' + mark + "</svg>").format(
        colour(index), escape(dashed)
    )
