"""The static plots of the pages: what a reader without JavaScript sees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from machmeter.site import svg
from machmeter.site.svg import Drawing, Scale
from machmeter.text import numbers

WIDTH = 860


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a plot: its name, colour and points. None, or NaN, is a gap."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    index: int = 0
    dashed: str = ""


def _positions(line: Line, x: Scale, y: Scale) -> list[tuple[float, float] | None]:
    found: list[tuple[float, float] | None] = []
    for at, value in zip(line.x, line.y, strict=True):
        found.append((x(at), y(value)) if svg.drawable(value, log=y.log) else None)
    return found


def value_axis(
    values: list[float], unit: str | None, top: float, bottom: float, *, log: bool, zero: bool = False
) -> tuple[Scale, list[tuple[float, str]], str]:
    """Return the scale of values, its labels in a unit that suits them, and that unit."""
    low, high = svg.around(values, log=log, zero=zero)
    y = Scale(low=low, high=high, start=bottom, end=top, log=log)
    by, name = numbers.scale(unit, max((abs(v) for v in values if math.isfinite(v)), default=1.0))
    labels = [(at, _tick(at / by)) for at in y.ticks()]
    return y, labels, name


def _tick(value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:.10g}" if 1e-4 <= abs(value) < 1e7 else f"{value:.3g}"


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A rung of the ladder as a bar."""

    name: str
    value: float
    shown: str
    gain: str = ""
    kind: str = ""
    title: str = ""


def ladder(bars: Sequence[Bar], *, label: str) -> Markup:
    """Draw horizontal bars, each with its value and its gain."""
    row, left, right = 27, 246, WIDTH - 230
    drawing = Drawing(width=WIDTH, height=row * len(bars) + 8, label=label)
    x = Scale(low=0.0, high=max((bar.value for bar in bars), default=1.0) or 1.0, start=left, end=right)
    for place, bar in enumerate(bars):
        middle = 4 + row * place + row / 2
        drawing.text(left - 10, middle + 4, bar.name, "end", "strong")
        drawing.add(
            '<rect class="bar{k}" x="{x}" y="{y}" width="{w}" height="{h}" rx="2"><title>{t}</title></rect>',
            k=f" {bar.kind}" if bar.kind else "", x=left, y=svg.number(middle - 8.5),
            w=svg.number(max(x(bar.value) - left, 1.5)), h=17, t=bar.title or bar.name,
        )  # fmt: skip
        drawing.text(x(bar.value) + 8, middle + 4, bar.shown, "start", "strong")
        if bar.gain:
            drawing.text(x(bar.value) + 60, middle + 4, bar.gain, "start", "slower" if bar.kind == "slower" else "")
    return drawing.markup()


def scaling(lines: Sequence[Line], *, unit: str, label: str, log: bool = True, width: int = 560) -> Markup:
    """Draw lines over the batch, each batch at the same distance from the next."""
    height, left, right, top, bottom = 310, 58, width - 14, 26, 310 - 40
    batches = sorted({at for line in lines for at in line.x})
    place = {batch: float(position) for position, batch in enumerate(batches)}
    x = Scale(low=-0.15, high=max(len(batches) - 1, 0) + 0.15, start=left, end=right)
    y, labels, name = value_axis(
        [value for line in lines for value in line.y], unit, top, bottom, log=log, zero=not log
    )
    drawing = Drawing(width=width, height=height, label=label)
    svg.axes(drawing, x, y, y_labels=labels, title=name)
    for batch in batches:
        drawing.text(x(place[batch]), bottom + 18, f"{batch:g}", "middle")
    drawing.text((left + right) / 2, height - 4, "batch", "middle")
    for line in lines:
        moved = Line(name=line.name, x=[place[at] for at in line.x], y=line.y, index=line.index, dashed=line.dashed)
        drawing.add("<g><title>{t}</title>", t=line.name)
        points = _positions(moved, x, y)
        drawing.path(points, f"line c{svg.colour(line.index)}{line.dashed}")
        for point, value, batch in zip(points, line.y, line.x, strict=True):
            if point:
                words_of = f"{line.name}, batch {batch:g}: {numbers.value(value, unit)}"
                drawing.dot(*point, f"f{svg.colour(line.index)}", words_of)
        drawing.parts.append(Markup("</g>"))
    return drawing.markup()


@dataclass(frozen=True, kw_only=True)
class Point:
    """A configuration by fidelity and speed."""

    name: str
    x: float
    y: float
    index: int = 0
    front: bool = False


def pareto(points: Sequence[tuple[float, float]]) -> set[int]:
    """Return which of `points` no other beats: at least as high in both, and higher in one."""
    best = set()
    for number, (x, y) in enumerate(points):
        if not any((a >= x and b >= y) and (a > x or b > y) for a, b in points):
            best.add(number)
    return best


def fidelity(points: Sequence[Point], *, x_title: str, label: str) -> Markup:
    """Draw speed against fidelity, with the front that nothing beats in both."""
    height, left, right, top, bottom = 400, 58, WIDTH - 20, 30, 400 - 44
    low, high = svg.around([point.x for point in points])
    x = Scale(low=low, high=high, start=left, end=right)
    y, labels, name = value_axis([point.y for point in points], "images/s", top, bottom, log=True)
    drawing = Drawing(width=WIDTH, height=height, label=label)
    svg.axes(drawing, x, y, y_labels=labels, title=name)
    for at in x.ticks(8):
        drawing.line(x(at), bottom, x(at), bottom + 4, "axis")
        drawing.text(x(at), bottom + 18, _tick(at), "middle")
    drawing.text((left + right) / 2, height - 4, x_title, "middle")
    front = sorted((point for point in points if point.front), key=lambda point: (point.x, -point.y))
    corners: list[tuple[float, float] | None] = []
    for point in front:
        if corners and corners[-1]:
            corners.append((corners[-1][0], y(point.y)))
        corners.append((x(point.x), y(point.y)))
    drawing.path(corners, "front")
    taken: list[tuple[float, float, float]] = []
    for point in sorted(points, key=lambda item: (item.front, item.y)):
        words_of = f"{point.name}: {numbers.speed(point.y)} images/s, {x_title} {_tick(point.x)}"
        drawing.dot(x(point.x), y(point.y), f"f{svg.colour(point.index)}", words_of, 6.0 if point.front else 4.0)
    for point in sorted(front, key=lambda item: -item.y):
        width = 6.4 * len(point.name)
        at_end = x(point.x) + 12 + width > WIDTH
        across = x(point.x) - 11 if at_end else x(point.x) + 11
        start, stop = (across - width, across) if at_end else (across, across + width)
        tried = [y(point.y) + offset for offset in (-6, -21, 18, -36, 33)]
        free = (at for at in tried if not any(a < stop and start < b and abs(at - c) < 14 for a, b, c in taken))
        down = next(free, tried[0])
        taken.append((start, stop, down))
        drawing.text(across, down, point.name, "end" if at_end else "start", "strong")
    return drawing.markup()


def versions(lines: Sequence[Line], order: Sequence[str], *, unit: str, label: str, width: int = 560) -> Markup:
    """Draw lines over the versions of a library, each version at the same distance from the next."""
    height, left, right, top, bottom = 310, 58, width - 24, 26, 310 - 34
    x = Scale(low=-0.2, high=max(len(order) - 1, 0) + 0.2, start=left, end=right)
    values = [value for line in lines for value in line.y if math.isfinite(value)]
    wide = bool(values) and min(values) > 0 and max(values) / min(values) > 8
    y, labels, name = value_axis(values, unit, top, bottom, log=wide, zero=not wide)
    drawing = Drawing(width=width, height=height, label=label)
    svg.axes(drawing, x, y, y_labels=labels, title=name)
    last = -1e9
    for number, version in enumerate(order):
        if x(number) - last >= 7.2 * len(version) + 10:
            drawing.text(x(number), bottom + 18, version, "middle")
            last = x(number)
    for line in lines:
        drawing.add("<g><title>{t}</title>", t=line.name)
        points = _positions(line, x, y)
        drawing.path(points, f"line c{svg.colour(line.index)}{line.dashed}")
        for point, value, at in zip(points, line.y, line.x, strict=True):
            if point:
                drawing.dot(
                    *point, f"f{svg.colour(line.index)}", f"{line.name}, {order[int(at)]}: {numbers.value(value, unit)}"
                )
        drawing.parts.append(Markup("</g>"))
    return drawing.markup()


def bars(listed: Sequence[Bar], *, label: str) -> Markup:
    """Draw a few bars for a card."""
    width, row, left = 400, 24, 118
    drawing = Drawing(width=width, height=row * len(listed), label=label)
    x = Scale(low=0.0, high=max(bar.value for bar in listed) or 1.0, start=left, end=width - 56)
    for place, bar in enumerate(listed):
        middle = row * (place + 0.5)
        drawing.text(0, middle + 4.5, bar.name, kind="large")
        drawing.add(
            '<rect class="bar{k}" x="{x}" y="{y}" width="{w}" height="14" rx="2"><title>{t}</title></rect>',
            k=f" {bar.kind}" if bar.kind else "", x=left, y=svg.number(middle - 7),
            w=svg.number(max(x(bar.value) - left, 1.5)), t=bar.title or bar.name,
        )  # fmt: skip
        drawing.text(x(bar.value) + 7, middle + 4.5, bar.shown, kind="strong large")
    return drawing.markup()
