"""Throughput and fidelity over the versions of a library, from sweeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from machmeter.site import plots, svg
from machmeter.site.pages import grid
from machmeter.site.pages.grid import Badge, Column, Entry, Grid
from machmeter.site.pages.machmeter_tables import Own
from machmeter.site.pages.shared import Mark, Site
from machmeter.tables.versions_table import Row, Series, Versions
from machmeter.text import numbers


@dataclass(frozen=True, kw_only=True)
class ShownSeries:
    """One cell over the versions of a library, as a table."""

    name: str
    rows: Grid[Row]
    notes: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class ShownModel:
    """The cells of one model over the versions of a library, with plots of them."""

    name: str
    speed: Markup | None
    fidelity: Markup | None
    legend: Sequence[Mark]
    series: Sequence[ShownSeries]


@dataclass(frozen=True, kw_only=True)
class Library:
    """What was swept of one library."""

    name: str
    models: Sequence[ShownModel]


@dataclass(frozen=True, kw_only=True)
class SweptMachine:
    """What was swept on one machine."""

    name: str
    host: str
    notes: Sequence[str]
    libraries: Sequence[Library]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the template of the page of versions is given."""

    machines: Sequence[SweptMachine]


def context(site: Site, own: Own) -> Context:
    """Return what the page of versions shows: for each machine and library the cells, and a plot of each model."""
    return Context(
        machines=[
            SweptMachine(
                name=machine.name,
                host=built.host.cpu.model if built.host else "",
                notes=list(built.notes),
                libraries=[_library(name, built) for name in dict.fromkeys(item.library for item in built.series)],
            )
            for machine in site.history.machines
            if (built := own.versions.get(machine.key))
        ]
    )


def cell(item: Series) -> str:
    """Return the cell of a series in words."""
    options = "" if item.options in ("contiguous", "") else item.options
    return " ".join(part for part in (item.model, item.backend, item.precision, options, f"batch {item.batch}") if part)


def _library(name: str, built: Versions) -> Library:
    series = [item for item in built.series if item.library == name]
    models = []
    for model in dict.fromkeys(item.model for item in series):
        chosen = [item for item in series if item.model == model]
        names = [cell(item).removeprefix(f"{model} ") for item in chosen]
        models.append(
            ShownModel(
                name=model,
                speed=_plot(
                    chosen,
                    lambda row: row.images_per_second,
                    "images/s",
                    f"Images per second of {model} over versions of {name}",
                ),
                fidelity=_plot(
                    chosen, lambda row: row.facts.get("sqnr_db"), "dB", f"SQNR of {model} over versions of {name}"
                ),
                legend=[
                    Mark(name=called, swatch=svg.swatch(number, dashed=svg.dash(number)))
                    for number, called in enumerate(names)
                ],
                series=[
                    ShownSeries(
                        name=called,
                        rows=grid.build(_columns(item.rows), "versions", item.rows),
                        notes=list(item.notes),
                    )
                    for called, item in zip(names, chosen, strict=True)
                ],
            )
        )
    return Library(name=name, models=models)


def _columns(rows: Sequence[Row]) -> list[Column[Row]]:
    """Return the columns that are not of a metric alone. Versions are sorted as `rows` are: as PEP 440 orders them."""
    place = {row.version: float(number) for number, row in enumerate(rows, 1)}
    return [
        Column(
            heading="Version",
            fill=lambda row: Entry(shown=row.version, value=place[row.version]),
            order=1,
            number=False,
        ),
        Column(heading="Released", fill=lambda row: grid.words(row.released), order=2, number=False),
        Column(
            heading="images/s",
            fill=lambda row: Entry(shown=numbers.speed(row.images_per_second), value=row.images_per_second),
            order=30,
        ),
        Column(heading="Change", fill=_change, order=50),
        Column(heading="p50 ms", fill=lambda row: grid.figure(row.p50_ms, 2), order=60),
        Column(heading="Status", fill=_status, order=900, number=False),
    ]


def _change(row: Row) -> Entry:
    share = None if row.change_percent is None else row.change_percent / 100
    return Entry(shown=numbers.percent(share), value=row.change_percent)


def _status(row: Row) -> Entry:
    return Entry(shown=row.reason, before=Badge(text=row.status, kind=row.status.replace("/", "")))


def _plot(series: list[Series], look: Callable[[Row], float | None], unit: str, label: str) -> Markup | None:
    order = _merged([[row.version for row in item.rows] for item in series])
    place = {version: float(number) for number, version in enumerate(order)}
    lines = [
        plots.Line(
            name=cell(item),
            x=[place[row.version] for row in item.rows],
            y=[value if (value := look(row)) is not None else float("nan") for row in item.rows],
            index=number,
            dashed=svg.dash(number),
        )
        for number, item in enumerate(series)
    ]
    if len(order) < 2 or not any(value == value for line in lines for value in line.y):
        return None
    return plots.versions(lines, order, unit=unit, label=label)


def _merged(lists: list[list[str]]) -> list[str]:
    """Return every version once, in the order that all lists share: each is ordered as PEP 440 orders."""
    from packaging.version import InvalidVersion, Version

    def key(text: str) -> tuple[int, Any]:
        try:
            return 1, Version(text)
        except InvalidVersion:
            return 0, text

    return sorted({version for one in lists for version in one}, key=key)
