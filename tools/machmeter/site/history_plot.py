"""The static plot of a history page: lines of many points, drawn from columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from machmeter.site import plots, svg
from machmeter.site.svg import Drawing, Scale

Numbers = NDArray[np.float64]

POINTS = 900  # that all lines of a plot have together, at most
_DOTTED = 60  # a line of so many points, or fewer, shows each
_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 320, 62, plots.WIDTH - 12, 26, 320 - 28


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """A line of a plot: its colour and its points, x ascending. NaN in y is a gap."""

    x: Numbers
    y: Numbers
    index: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Band:
    """The area around a line, in its colour."""

    x: Numbers
    upper: Numbers
    lower: Numbers
    index: int = 0


def history(
    lines: Sequence[Curve],
    *,
    unit: str | None,
    label: str,
    dates: Sequence[tuple[float, str]],
    greyed: Sequence[Curve] = (),
    bands: Sequence[Band] = (),
    steps: Sequence[tuple[float, str, str]] = (),
    events: Sequence[tuple[float, str]] = (),
) -> Markup | None:
    """Draw series over commits, or nothing where no point has a number.

    `dates` label the x axis; `steps` are (x, verdict, words), `events` (x, words).
    """
    every = (*lines, *greyed)
    values = np.concatenate([np.empty(0), *(line.y for line in every)])
    if not np.isfinite(values).any():
        return None
    places = [float(at) for line in every for at in line.x[[0, -1] if len(line.x) else []]]
    x = Scale(low=min(places), high=max(places), start=_LEFT, end=_RIGHT)
    values = values[np.abs(values) < svg.LARGEST]
    ends = [float(values.min()), float(values.max())] if len(values) else []
    log = bool(ends) and ends[0] > 0 and ends[1] / ends[0] > 30
    y, labels, name = plots.value_axis(ends, unit, _TOP, _BOTTOM, log=log)
    drawing = Drawing(width=plots.WIDTH, height=_HEIGHT, label=label)
    svg.axes(drawing, x, y, y_labels=labels, title=name)
    _label(drawing, x, dates)
    for at, words_of in events:
        _mark(drawing, x(at), "event", words_of)
    for band in bands:
        _shade(drawing, band, x, y)
    step = max(1.0, 2.0 * (_RIGHT - _LEFT) * len(lines) / POINTS)
    for line, extra in [*((line, " old") for line in greyed), *((line, "") for line in lines)]:
        _line(drawing, *thin(x.many(line.x), y.many(line.y), _RIGHT - _LEFT, step), f"{svg.colour(line.index)}{extra}")
    for at, verdict, words_of in steps:
        _mark(drawing, x(at), f"step {verdict}", words_of)
    return drawing.markup()


def thin(x: Numbers, y: Numbers, pixels: float, step: float = 1.0) -> tuple[Numbers, Numbers]:
    """Return points, ordered by x, with no more than the highest and lowest of every `step` pixels of width.

    NaN in y is a gap, in what is given and in what is returned.
    """
    if len(y) <= 2 * pixels / step:
        return x, y
    gap = np.isnan(y)
    across, down, stretch = x[~gap], y[~gap], np.cumsum(gap)[~gap]
    if not len(down):
        return across, down
    bucket = np.cumsum(np.diff(stretch, prepend=stretch[0]) + np.diff(np.floor(across / step), prepend=0.0) != 0)
    begins = np.flatnonzero(np.diff(bucket, prepend=-1))
    sizes = np.diff(begins, append=len(down))
    ends = np.zeros(len(down), bool)
    for extreme in (np.minimum, np.maximum):
        reached = extreme.reduceat(down, begins)
        at = np.flatnonzero(down == np.repeat(reached, sizes))
        ends[at[np.flatnonzero(np.diff(bucket[at], prepend=-1))]] = True  # the first that reaches it
    broken = np.flatnonzero(np.diff(stretch[ends])) + 1
    if not len(broken):
        return across[ends], down[ends]
    return np.insert(across[ends], broken, np.nan), np.insert(down[ends], broken, np.nan)


def _label(drawing: Drawing, x: Scale, dates: Sequence[tuple[float, str]]) -> None:
    """Write the days below the axis, with room between them."""
    last = -1e9
    for at, day in dates:
        across = x(at)
        if across - last >= 84 and across <= _RIGHT - 30:
            drawing.line(across, _BOTTOM, across, _BOTTOM + 4, "axis")
            centred = across > _LEFT + 30
            drawing.text(across, _BOTTOM + 18, day, "middle" if centred else "start")
            last = across if centred else across + 36  # it reaches half of its width further


def _mark(drawing: Drawing, across: float, kind: str, title: str) -> None:
    """Draw a vertical line; its title appears under the pointer."""
    drawing.add(
        '<path class="{k}" d="M{x} {a}V{b}"><title>{t}</title></path>',
        k=kind, x=svg.number(across), a=_TOP, b=_BOTTOM, t=title,
    )  # fmt: skip


def _shade(drawing: Drawing, band: Band, x: Scale, y: Scale) -> None:
    """Fill the area between two lines, if they have the same points and not too many."""
    upper, lower = y.many(band.upper), y.many(band.lower)
    there = ~np.isnan(upper)
    count = int(there.sum())
    if (there == ~np.isnan(lower)).all() and 1 < count <= 2 * plots.WIDTH:
        across = x.many(band.x)[there]
        around = svg.line(np.append(across, across[::-1]), np.append(upper[there], lower[there][::-1]))
        drawing.trace(f"{around}Z", f"band f{svg.colour(band.index)}")


def _line(drawing: Drawing, x: Numbers, y: Numbers, colour: str) -> None:
    drawing.trace(svg.line(x, y), f"line c{colour}")
    there = ~np.isnan(y)
    if there.sum() <= _DOTTED:
        for across, down in zip(x[there].tolist(), y[there].tolist(), strict=True):
            drawing.dot(across, down, f"f{colour}", radius=2.6)
