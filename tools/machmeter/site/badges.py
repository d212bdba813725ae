"""Badge endpoints in the form of shields.io: a cell's images/s, and where it is going."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from machmeter.history.model import Series, shown
from machmeter.results.table import Row
from machmeter.site import words
from machmeter.site.pages.common import Change, Site
from machmeter.site.pages.home import configuration
from machmeter.site.pages.own import Own

_COLOURS = {"improvement": "brightgreen", "regression": "red", "change": "yellow", "": "blue"}


@dataclass(frozen=True, kw_only=True)
class Badge:
    """One endpoint."""

    href: str
    machine: str
    kind: str  # speed or trend
    name: str
    label: str
    message: str
    colour: str

    def as_json(self) -> dict[str, Any]:
        """Return what shields.io reads."""
        return {"schemaVersion": 1, "label": self.label, "message": self.message, "color": self.colour}


def badges(site: Site, own: Own) -> Iterator[Badge]:
    """Yield two endpoints for each measured cell: its images/s, and the newest change of its latency."""
    steps = {change.series.key: change for change in sorted(site.changes, key=lambda change: change.point)}
    for machine in site.history.machines:
        built = own.tables.get(machine.key)
        rows = [row for row in built.rows if row.status == "ok" and row.images_per_second] if built else []
        names = words.files(_name(row) for row in rows)
        timed = _timed(site, machine.key)
        for row in rows:
            folder = f"data/badges/{machine.slug}/{names[_name(row)]}"
            label = f"{row.model} {configuration(row)}"
            speed = f"{words.digits(row.images_per_second or 0.0)} images/s"
            common = {"machine": machine.name, "name": label, "label": label}
            yield Badge(href=f"{folder}-speed.json", kind="speed", message=speed, colour="blue", **common)
            series = timed.get((row.backend, row.model, row.precision, row.options, str(row.batch)), [])
            change = next((steps[item.key] for item in series if item.key in steps), None)
            message, colour = _trend(change)
            yield Badge(href=f"{folder}-trend.json", kind="trend", message=message, colour=colour, **common)


def _name(row: Row) -> str:
    return "-".join(part for part in (row.model, row.backend, row.precision, row.options.replace(", ", "-"), str(row.batch)) if part)


def _trend(change: Change | None) -> tuple[str, str]:
    if change is None:
        return "steady", _COLOURS[""]
    # Latency went from `before` to `after`: readers of a badge think in speed.
    faster = change.before / change.after - 1.0 if change.after else None
    return f"{words.percent(faster)} speed", _COLOURS[change.verdict]


def _timed(site: Site, machine: str) -> dict[tuple[str, ...], list[Series]]:
    """Return the series of latency by cell, newest first."""
    found: dict[tuple[str, ...], list[Series]] = {}
    for item in site.history.series:
        parts = item.benchmark.module.split(".")
        if item.machine.key != machine or item.benchmark.method != "time_forward" or len(parts) < 3 or len(item.params) < 2:
            continue
        values = [shown(value) for value in item.params]
        key = (parts[-2], parts[-1], values[0], ", ".join(values[1:-1]), values[-1])
        found.setdefault(key, []).append(item)
    for group in found.values():
        group.sort(key=lambda item: -int(item.commits[-1]) if len(item) else 0)
    return found
