"""Two runs side by side: the newest pair of each machine as a plain table, and what the browser needs for any other.

`site/static/js/compare.js` judges as `judge` does, from the columns that the history exports.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from machmeter.history import events
from machmeter.history import model as states
from machmeter.history.model import Machine, Run, Series
from machmeter.metrics import Direction
from machmeter.site import words
from machmeter.site.pages.common import Site, commit_name, parameters, series_href
from machmeter.site.pages.own import Own
from machmeter.site.pages.versions import cell

Verdict = Literal["failed", "fixed", "removed", "new", "regression", "improvement", "change", "same", "not comparable"]

LEAST = 0.02  # a smaller effect is the same
SHOWN = 20
ORDER: tuple[Verdict, ...] = (
    "failed", "removed", "regression", "change", "improvement", "fixed", "new", "not comparable", "same",
)  # fmt: skip
_LOOKED_BACK = 5  # runs before the newest, among which the one with most in common is taken


@dataclass(frozen=True, kw_only=True)
class Point:
    """One number of a run, with half its interval relative to it; `state` says why there is none, "" is absent."""

    value: float | None
    error: float = 0.0
    state: str = "ok"


def judge(
    base: Point, head: Point, direction: Direction | None, *, comparable: bool = True
) -> tuple[Verdict, float | None]:
    """Return what became of a number, and by how much; None where that cannot be said as a share.

    An effect counts from 2 %, and from the sum of both half intervals where that is more.
    """
    lost = ("failed", "unreadable")
    if head.value is None:
        if base.value is None:
            return "same", None
        return ("failed" if head.state in lost else "removed"), None
    if base.value is None:
        return ("fixed" if base.state in lost else "new"), None
    if not comparable:
        return "not comparable", None
    if base.value == 0.0:
        return ("same" if head.value == 0.0 else "change"), None
    effect = head.value / base.value - 1.0
    if abs(effect) < max(LEAST, base.error + head.error):
        return "same", effect
    if direction is None:
        return "change", effect
    return ("improvement" if (effect > 0) == (direction == "higher") else "regression"), effect


def context(site: Site) -> dict[str, Any]:
    """Return what the page shows before anybody chooses: the two newest runs of each machine."""
    runs: dict[str, list[Run]] = {}
    series: dict[str, list[Series]] = {}
    for run in site.history.runs:
        runs.setdefault(run.machine.key, []).append(run)
    for item in site.history.series:
        series.setdefault(item.machine.key, []).append(item)
    machines = [machine for machine in site.history.machines if machine.key in runs]
    pairs = [
        pair
        for machine in machines
        if (pair := _pair(machine, runs[machine.key], series.get(machine.key, []), site))
    ]
    return {
        "compare": {
            "machines": [{"key": machine.slug, "name": machine.name} for machine in machines],
            "heading": "The newest run against one before" if pairs else "Nothing to compare yet",
            "pairs": pairs,
        }
    }


def newest_pair(runs: Sequence[Run], series: Sequence[Series]) -> tuple[Run, Run] | None:
    """Return a run and the newest of its environment: of the few runs before, the one with most numbers in common."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.environment.key, []).append(run)
    best: tuple[tuple[bool, int], Run, Run] | None = None
    for key, group in groups.items():
        head = group[-1]
        mine = [item for item in series if item.environment.key == key]
        at_head = [item for item in mine if _at(item, head.commit).value is not None]
        common = [
            (sum(_at(item, run.commit).value is not None for item in at_head), run.commit, run)
            for run in group[-1 - _LOOKED_BACK : -1]
        ]
        if common:
            most, _, base = max(common, key=lambda entry: entry[:2])
            claim = (most > 0, head.commit)
            if best is None or claim > best[0]:
                best = claim, base, head
    return (best[1], best[2]) if best else None


def _at(item: Series, commit: int) -> Point:
    place = int(np.searchsorted(item.commits, commit))
    if place >= len(item) or int(item.commits[place]) != commit:
        return Point(value=None, state="")
    state = int(item.state[place])
    if state != states.OK:
        return Point(value=None, state=states.STATES[state])
    value, low, high = (float(column[place]) for column in (item.value, item.low, item.high))
    known = value and math.isfinite(low) and math.isfinite(high)
    return Point(value=value, error=abs((high - low) / value) / 2 if known else 0.0)


def _pair(machine: Machine, runs: Sequence[Run], series: Sequence[Series], site: Site) -> dict[str, Any] | None:
    sides = newest_pair(runs, series)
    if sides is None:
        return None
    base, head = sides
    differs = [
        f"{name} {old} → {new}" for name, old, new in events.host(base, head) if name in events.INCOMPARABLE
    ]
    rows = []
    for item in series:
        if item.environment.key != head.environment.key:
            continue
        before, after = _at(item, base.commit), _at(item, head.commit)
        if before.value is None and after.value is None:
            continue
        verdict, effect = judge(before, after, item.benchmark.direction, comparable=not differs)
        rows.append(
            {
                "verdict": verdict,
                "effect": effect,
                "benchmark": item.benchmark.name,
                "params": parameters(item),
                "before": before.value,
                "after": after.value,
                "unit": item.benchmark.unit,
                "href": series_href(item),
            }
        )
    rows.sort(key=lambda row: (ORDER.index(row["verdict"]), -abs(row["effect"] or 0.0), row["benchmark"], row["params"]))
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in ORDER}
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    return {
        "machine": machine.name,
        "environment": head.environment.label,
        "base": _label(base, site),
        "head": _label(head, site),
        "differs": "; ".join(differs),
        "summary": f"{words.plural(len(rows), 'number')}: {said}." if rows else "They have no number in common.",
        "rows": [row for row in rows if row["verdict"] != "same"][:SHOWN],
    }


def _label(run: Run, site: Site) -> str:
    commit = site.history.commits[run.commit]
    return f"{commit_name(commit)} ({words.day(commit.date)})"


# What of a swept version is compared: attribute, title, unit, direction.
_METRICS: tuple[tuple[str, str, str, Direction], ...] = (
    ("images_per_second", "throughput", "images/s", "higher"),
    ("p50_ms", "latency", "ms", "lower"),
    ("top1_agreement", "top-1 agreement", "fraction", "higher"),
    ("sqnr_db", "SQNR", "dB", "higher"),
    ("peak_memory_mb", "peak memory", "MB", "lower"),
)


def versions(site: Site, own: Own) -> dict[str, Any]:
    """Return the swept versions of each machine as columns: what `data/versions.json` holds."""
    found: dict[str, Any] = {}
    for machine in site.history.machines:
        built = own.versions.get(machine.key)
        columns: dict[str, dict[str, Any]] = {}
        for item in built.series if built else ():
            for row in item.rows:
                column = columns.setdefault(
                    f"{item.library}@{row.version}",
                    {"library": item.library, "version": row.version, "released": row.released, "numbers": {}},
                )
                numbers = {title: getattr(row, attribute) for attribute, title, _, _ in _METRICS}
                column["numbers"][cell(item)] = {**numbers, "status": row.status, "reason": row.reason}
        if columns:
            found[machine.slug] = columns
    metrics = [{"title": title, "unit": unit, "direction": better} for _, title, unit, better in _METRICS]
    return {"schema": 1, "metrics": metrics, "machines": found}
