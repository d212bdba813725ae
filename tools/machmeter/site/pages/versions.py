"""Throughput and fidelity over the versions of a library, from sweeps."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from machmeter.site import plots, svg
from machmeter.site.pages.machmeter_tables import Own
from machmeter.site.pages.shared import Site
from machmeter.tables.versions_table import Series, Versions


def context(site: Site, own: Own) -> dict[str, Any]:
    """Return what the page of versions shows: for each machine and library the cells, and a plot of each model."""
    machines = []
    for machine in site.history.machines:
        built = own.versions.get(machine.key)
        if built:
            host = built.host.get("cpu", {}).get("model", "")
            machines.append(
                {
                    "name": machine.name,
                    "host": host,
                    "notes": list(built.notes),
                    "libraries": [
                        _library(name, built) for name in dict.fromkeys(item.library for item in built.series)
                    ],
                }
            )
    return {"machines": machines}


def cell(item: Series) -> str:
    """Return the cell of a series in words."""
    options = "" if item.options in ("contiguous", "") else item.options
    return " ".join(part for part in (item.model, item.backend, item.precision, options, f"batch {item.batch}") if part)


def _library(name: str, built: Versions) -> dict[str, Any]:
    series = [item for item in built.series if item.library == name]
    models = []
    for model in dict.fromkeys(item.model for item in series):
        chosen = [item for item in series if item.model == model]
        models.append(
            {
                "name": model,
                "speed": _plot(
                    chosen, "images_per_second", "images/s", f"Images per second of {model} over versions of {name}"
                ),
                "fidelity": _plot(chosen, "sqnr_db", "dB", f"SQNR of {model} over versions of {name}"),
                "legend": [
                    {"name": cell(item).removeprefix(f"{model} "), "swatch": svg.swatch(n, dashed=svg.dash(n))}
                    for n, item in enumerate(chosen)
                ],
                "series": [
                    {
                        "name": cell(item).removeprefix(f"{model} "),
                        "rows": [row.as_json() for row in item.rows],
                        "notes": list(item.notes),
                    }
                    for item in chosen
                ],
            }
        )
    return {"name": name, "models": models}


def _plot(series: list[Series], what: str, unit: str, label: str) -> Markup | None:
    order = _merged([[row.version for row in item.rows] for item in series])
    place = {version: float(number) for number, version in enumerate(order)}
    lines = [
        plots.Line(
            name=cell(item),
            x=[place[row.version] for row in item.rows],
            y=[value if (value := row.as_json()[what]) is not None else float("nan") for row in item.rows],
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
