"""The plots on the page of a model: speed against fidelity, and speed and latency over the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from machmeter.site import plots, svg
from machmeter.site.pages import grid
from machmeter.site.pages.grid import Column, Entry, Grid
from machmeter.site.pages.model_cards import configuration
from machmeter.site.pages.shared import Mark
from machmeter.tables.cells_table import Row
from machmeter.text import numbers


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A plot and what it says."""

    svg: Markup
    caption: str


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """Speed against fidelity; no plots where fewer than two configurations were compared with fp32."""

    plots: Sequence[Plot]
    legend: Sequence[Mark]
    front: Grid[Row]  # what nothing beats, fastest first


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """Throughput and latency over the batch."""

    speed: Markup
    latency: Markup
    legend: Sequence[Mark]


# From 60 dB on the error is below a thousandth: what is beyond is the rounding of fp32, and no better answer.
CLEAN_DB = 60.0
# SQNR tells more apart, agreement is what users feel.
_AXES = (("sqnr_db", f"SQNR dB, {CLEAN_DB:.0f} stands for any above"), ("top1_agreement", "top-1 agreement"))


def fidelity(measured: Sequence[Row], backends: list[str]) -> Fidelity:
    """Return the plots of speed against fidelity, one colour for each of `backends`."""
    drawn: list[Plot] = []
    fronts: list[set[str]] = []
    for key, title in _AXES:
        known = [(row, value) for row in measured if (value := row.facts.get(key)) is not None]
        if len(known) < 2:
            continue
        at = [(min(value, CLEAN_DB), row.images_per_second or 0.0) for row, value in known]
        best = plots.pareto(at)
        points = [
            plots.Point(name=configuration(row), x=x, y=y, index=backends.index(row.backend), front=number in best)
            for number, ((row, _), (x, y)) in enumerate(zip(known, at, strict=True))
        ]
        label = f"Images per second over {title} of {len(known)} configurations; {len(best)} are on the front"
        drawn.append(
            Plot(
                svg=plots.fidelity(points, x_title=title, label=label),
                caption=f"Images per second over {title.split(' dB')[0]}.",
            )
        )
        fronts.append({configuration(row) for number, (row, _) in enumerate(known) if number in best})
    front = [row for row in measured if any(configuration(row) in names for names in fronts)]
    return Fidelity(
        plots=drawn,
        legend=[Mark(name=name, swatch=svg.swatch(number, dot=True)) for number, name in enumerate(backends)],
        front=grid.build(_FRONT, "cells", sorted(front, key=lambda row: -(row.images_per_second or 0.0)), extra=False),
    )


_FRONT: tuple[Column[Row], ...] = (
    Column(heading="Configuration", fill=lambda row: Entry(shown=configuration(row)), order=1, number=False),
    Column(
        heading="images/s",
        fill=lambda row: Entry(shown=numbers.speed(row.images_per_second), value=row.images_per_second),
        order=30,
    ),
)

_DASHES = {"fp32": "", "bf16": " d2", "tf32": " d4", "fp16": " d2", "int8": " d3", "int8-dynamic": " d4"}


def scaling(measured: Sequence[Row], backends: list[str], name: str) -> Scaling | None:
    """Return throughput and latency over the batch; nothing where only one batch was measured."""
    if len({row.batch for row in measured}) < 2:
        return None
    groups: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for row in measured:
        groups.setdefault((row.backend, row.precision), {}).setdefault(row.options, []).append(row)
    speed, latency, legend = [], [], []
    for (backend, precision), by_options in sorted(groups.items()):
        # The options that are fastest at the largest batch speak for the backend and precision.
        options = max(
            by_options, key=lambda key: max((row.batch, row.images_per_second or 0.0) for row in by_options[key])
        )
        chosen = sorted(by_options[options], key=lambda row: row.batch)
        line = plots.Line(
            name=configuration(chosen[0], batch=False),
            x=[float(row.batch) for row in chosen],
            y=[row.images_per_second or 0.0 for row in chosen],
            index=backends.index(backend),
            dashed=_DASHES.get(precision, " d4"),
        )
        speed.append(line)
        latency.append(replace(line, y=[(row.p50_ms or 0.0) / 1e3 for row in chosen]))
        legend.append(Mark(name=line.name, swatch=svg.swatch(line.index, dashed=line.dashed)))
    return Scaling(
        speed=plots.scaling(
            speed, unit="images/s", label=f"Images per second of {name} over the batch, {len(speed)} lines"
        ),
        latency=plots.scaling(latency, unit="seconds", label=f"Latency of {name} over the batch, {len(latency)} lines"),
        legend=legend,
    )
