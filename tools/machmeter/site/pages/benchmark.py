"""The history page of one benchmark, and the list of all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter.history.data import Benchmark, Event, Series
from machmeter.site import history_plot, svg
from machmeter.site.links import commit_name, history_href, parameters, reproduce
from machmeter.site.pages.home import modules
from machmeter.site.pages.shared import Change, Site
from machmeter.store import columns
from machmeter.store.columns import shown
from machmeter.text import numbers

DRAWN = 5  # lines of the static plot, and columns of the static table
LISTED = 12  # rows of the static table: the newest; the data files have all


def context(benchmark: Benchmark, series: Sequence[Series], site: Site) -> dict[str, Any]:
    """Return what the page of `benchmark` shows; `series` are all of its series."""
    ordered = sorted(series, key=lambda item: (item.machine.name, item.environment.label))
    chosen = default(ordered, site.swept_environments)
    known = [item for item in ordered if has_data(item)]
    dimensions = _dimensions(benchmark, known)
    places = {each["key"]: {value: at for at, value in enumerate(each["values"])} for each in dimensions}
    changes = site.changes_of.get(benchmark.key, ())
    newest = {change.series.key: change for change in sorted(changes, key=lambda change: change.point)}
    events = _events(chosen, site)
    return {
        "bench": {
            "name": benchmark.name,
            "unit": benchmark.unit,
            "direction": benchmark.direction or "",
            "direction_words": direction(benchmark),
            "versions": len(benchmark.versions),
            "regex": benchmark.name,
            "dimensions": dimensions,
            "rows": [_row(item, item in chosen, places, newest.get(item.key), site) for item in known],
            "never": len(ordered) - len(known),
            "several_machines": len({item.machine.key for item in known}) > 1,
            "several_environments": len({item.environment.key for item in known}) > 1,
            "plot": _plot(benchmark, chosen, changes, events, site),
            "legend": [
                {"name": _label(item, ordered), "swatch": svg.swatch(number)} for number, item in enumerate(chosen)
            ],
            "points": _points(chosen, ordered, site),
            "changes": [_change(change, site) for change in changes if change.series in chosen],
            "events": [
                {
                    "date": site.history.commits[event.commit].date,
                    "text": event.text,
                    "commit": commit_name(site.history.commits[event.commit]),
                    "kind": event.kind,
                }
                for event in events
            ],
            "reproduce": reproduce(chosen[0], site.history.commits[int(chosen[0].commits[-1])].hash[:12])
            if chosen and len(chosen[0])
            else "",
        }
    }


def direction(benchmark: Benchmark) -> str:
    """Return which way is better, in words."""
    if benchmark.direction is None:
        return "nobody said which way is better"
    return f"{benchmark.direction} is better"


def default(series: Sequence[Series], swept: Set[str] = frozenset()) -> list[Series]:
    """Return the series that a reader sees first: those of the machine and environment with the newest number.

    `swept` are the keys of environments that measure one version of a library: they come last.
    """
    if not series:
        return []

    def claim(item: Series) -> tuple[bool, int, int]:
        measured = item.commits[item.measured]
        return item.environment.key not in swept, int(measured[-1]) if len(measured) else -1, len(measured)

    newest = max(series, key=claim)
    same = [
        item
        for item in series
        if item.machine.key == newest.machine.key and item.environment.key == newest.environment.key
    ]
    measured = [item for item in same if item.measured.any()]
    return (measured or same)[:DRAWN]


def _label(item: Series, among: Sequence[Series]) -> str:
    parts = [
        parameters(item),
        item.machine.name if len({other.machine.key for other in among}) > 1 else "",
        item.environment.label if len({other.environment.key for other in among}) > 1 else "",
    ]
    return " · ".join(part for part in parts if part) or item.benchmark.method


def _dimensions(benchmark: Benchmark, series: Sequence[Series]) -> list[dict[str, Any]]:
    """Return what a reader can choose among: machine, environment, and every parameter with more than one value."""
    found: list[dict[str, Any]] = []
    for key, title, values in (
        ("machine", "Machine", [item.machine.name for item in series]),
        ("environment", "Environment", [item.environment.label for item in series]),
    ):
        if len(set(values)) > 1:
            found.append({"key": key, "title": title, "values": list(dict.fromkeys(values))})
    for number, name in enumerate(benchmark.param_names):
        options = [shown(item.params[number]) for item in series if number < len(item.params)]
        if len(set(options)) > 1:
            found.append({"key": f"p{number}", "title": name, "values": list(dict.fromkeys(options))})
    return found


def _value(item: Series, dimension: str) -> str:
    """Return what `item` has in one of the dimensions of `_dimensions`."""
    if dimension == "machine":
        return item.machine.name
    if dimension == "environment":
        return item.environment.label
    number = int(dimension.removeprefix("p"))
    return shown(item.params[number]) if number < len(item.params) else ""


def _row(
    item: Series, chosen: bool, dimensions: Mapping[str, Mapping[str, int]], step: Change | None, site: Site
) -> dict[str, Any]:
    measured = np.flatnonzero(item.measured)
    last = int(measured[-1]) if len(measured) else None
    point = len(item) - 1
    return {
        "key": item.key,
        "chosen": chosen,
        "machine": item.machine.name,
        "environment": item.environment.label,
        "params": parameters(item),
        "at": " ".join(str(places.get(_value(item, key), -1)) for key, places in dimensions.items()),
        "stack": item.environment.stack or "",
        "value": float(item.value[last]) if last is not None else None,
        "error": interval(item, last),
        "sorted_by": f"{item.value[last]:.6g}" if last is not None else "",
        "day": site.days[int(item.commits[last])] if last is not None else numbers.NONE,
        "count": len(measured),
        "state": columns.STATES[int(item.state[point])] if point >= 0 else "not run",
        "reason": item.reasons.get(point, ""),
        "change": {"verdict": step.verdict, "words": step.words} if step else None,
    }


def has_data(item: Series) -> bool:
    """Return whether a series has a number or a reason why it has none: only those have a data file."""
    return bool(item.measured.any() or item.reasons)


def interval(item: Series, point: int | None) -> str:
    """Return half the width of the confidence interval relative to the value, such as `± 1.2 %`."""
    if point is None:
        return ""
    value, low, high = (float(column[point]) for column in (item.value, item.low, item.high))
    if not value or not math.isfinite(low) or not math.isfinite(high):
        return ""
    half = 50 * abs(high / value - low / value)
    return f"± {numbers.digits(half, 2)} %" if math.isfinite(half) else ""


def _events(chosen: Sequence[Series], site: Site) -> list[Event]:
    places = {(item.machine.key, item.environment.key) for item in chosen}
    reached = set(_reached(chosen).tolist())
    return [
        event
        for event in site.history.events
        if (event.machine.key, event.environment.key) in places and event.commit in reached
    ]


def _plot(
    benchmark: Benchmark, chosen: list[Series], changes: Sequence[Change], events: Sequence[Event], site: Site
) -> Any:
    lines, greyed, bands = [], [], []
    for number, item in enumerate(chosen):
        places = item.commits.astype(np.float64)
        lines.append(history_plot.Curve(x=places, y=np.where(item.older, np.nan, item.value), index=number))
        if item.older.any():
            greyed.append(history_plot.Curve(x=places, y=np.where(item.older, item.value, np.nan), index=number))
        if len(chosen) <= 3 and len(item) <= 400:
            low, high = (np.where(item.older, np.nan, bound) for bound in (item.low, item.high))
            bands.append(history_plot.Band(x=places, upper=high, lower=low, index=number))
    reached = _reached(chosen)
    dates: dict[str, float] = {}
    for at in reached.tolist():
        dates.setdefault(site.days[at], float(at))
    return history_plot.history(
        lines,
        unit=benchmark.unit,
        label=f"{benchmark.name} over {numbers.plural(len(reached), 'commit')}, {numbers.plural(len(lines), 'line')}; "
        "the numbers are in the table below",
        dates=[(at, day) for day, at in dates.items()],
        greyed=greyed,
        bands=bands,
        steps=[
            (
                float(change.series.commits[change.point]),
                change.verdict,
                f"{change.verdict}: {change.words}",
            )
            for change in changes
            if change.series in chosen
        ],
        events=[(float(event.commit), event.text) for event in events],
    )


def _reached(chosen: Sequence[Series]) -> NDArray[np.int32]:
    """Return the commits at which any of the series has a point, ascending."""
    return np.unique(np.concatenate([np.empty(0, np.int32), *(item.commits for item in chosen)]))


def _points(chosen: Sequence[Series], ordered: Sequence[Series], site: Site) -> dict[str, Any]:
    reached = _reached(chosen)
    rows = []
    for at in reached[::-1][:LISTED].tolist():
        commit = site.history.commits[at]
        rows.append(
            {
                "commit": commit_name(commit),
                "hash": commit.hash,
                "orphan": commit.orphan,
                "date": commit.date,
                "cells": [_cell(item, item.point(at)) for item in chosen],
            }
        )
    return {"labels": [_label(item, ordered) for item in chosen], "rows": rows, "total": len(reached)}


def _cell(item: Series, point: int | None) -> dict[str, Any]:
    if point is None:
        return {"value": None, "state": "", "old": False, "error": "", "reason": ""}
    state = int(item.state[point])
    return {
        "value": float(item.value[point]) if state == columns.OK else None,
        "state": columns.STATES[state],
        "error": interval(item, point),
        "old": bool(item.older[point]),
        "reason": item.reasons.get(point, ""),
    }


def _change(change: Change, site: Site) -> dict[str, Any]:
    commits, series = site.history.commits, change.series
    first, last = commits[int(series.commits[change.previous])], commits[int(series.commits[change.point])]
    return {
        "verdict": change.verdict,
        "size": change.size,
        "words": change.words,
        "params": parameters(series),
        "before": change.before,
        "after": change.after,
        "span": f"{commit_name(first)} … {commit_name(last)}",
        "date": last.date,
    }


def listing(site: Site) -> dict[str, Any]:
    """Return the list of all benchmarks, by module."""
    swept = site.swept_environments
    by_module: dict[str, list[dict[str, Any]]] = {}
    series: dict[str, list[Series]] = {}
    for item in site.history.series:
        series.setdefault(item.benchmark.key, []).append(item)
    counted: dict[str, int] = {}
    for change in site.changes:
        counted[change.series.benchmark.key] = counted.get(change.series.benchmark.key, 0) + 1
    for benchmark in site.history.benchmarks:
        mine = series.get(benchmark.key, [])
        head = next(iter(default(mine, swept)), None)
        measured = np.flatnonzero(head.measured if head is not None else np.zeros(0, bool))
        last = int(measured[-1]) if len(measured) else None
        by_module.setdefault(benchmark.module, []).append(
            {
                "name": benchmark.method,
                "href": history_href(benchmark),
                "series": len(mine),
                "points": int(sum(item.measured.sum() for item in mine)),
                "changes": counted.get(benchmark.key, 0),
                "unit": benchmark.unit,
                "value": float(head.value[last]) if head is not None and last is not None else None,
                "params": parameters(head) if head is not None else "",
                "date": site.history.commits[int(head.commits[last])].date
                if head is not None and last is not None
                else None,
            }
        )
    return {
        "modules": [
            {**module, "benchmarks": by_module.get(module["name"] if module["name"] != "(no module)" else "", [])}
            for module in modules(site.history)
        ]
    }
