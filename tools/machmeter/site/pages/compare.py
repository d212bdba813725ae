"""Two runs side by side: the newest pair of each machine as a plain table, and what the browser needs for any other.

`site/static/js/compare.js` judges as `judge` does, from the columns that the history exports.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Literal

from machmeter import metrics
from machmeter.compare import runs
from machmeter.history.data import History, Machine, Run, Series
from machmeter.metrics import Direction
from machmeter.site.pages.machmeter_tables import Own
from machmeter.site.pages.shared import Site, commit_name, history_href, named
from machmeter.site.pages.versions import cell
from machmeter.store import columns
from machmeter.text import numbers as numbers_module

Verdict = Literal["failed", "fixed", "removed", "new", "worse", "better", "change", "same", "not comparable"]

LEAST = 0.02  # a smaller effect is the same
SHOWN = 20
ORDER: tuple[Verdict, ...] = (
    "failed", "removed", "worse", "change", "better", "fixed", "new", "not comparable", "same",
)  # fmt: skip
_LOOKED_BACK = 5  # runs before the newest, among which the one with most in common is taken


def judge(base: float, head: float, direction: Direction | None, noise: float = 0.0) -> tuple[Verdict, float | None]:
    """Return what became of a number, and by how much as a share; None where it was zero.

    An effect counts from 2 %, and from `noise` (the sum of both half intervals, as shares) where that is more.
    """
    if base == 0.0:
        return ("same" if head == 0.0 else "change"), None
    effect = head / base - 1.0
    if abs(effect) < max(LEAST, noise):
        return "same", effect
    if direction is None:
        return "change", effect
    return ("better" if (effect > 0) == (direction == "higher") else "worse"), effect


def context(site: Site) -> dict[str, Any]:
    """Return what the page shows before anybody chooses: the two newest runs of each machine."""
    history = site.history
    newest = {machine.key: newest_pair(history, machine) for machine in history.machines}
    pairs = [_pair(machine, *pair, history) for machine in history.machines if (pair := newest[machine.key])]
    measured = {run.machine.key for run in history.runs}
    return {
        "compare": {
            "machines": [
                {"key": machine.slug, "name": machine.name, "sides": _sides(newest[machine.key], history)}
                for machine in history.machines
                if machine.key in measured
            ],
            "heading": "The newest run against one before" if pairs else "Nothing to compare yet",
            "pairs": pairs,
        }
    }


def _sides(pair: tuple[Run, Run] | None, history: History) -> list[str]:
    """Return the names of the sides that the page begins with, as `compare.js` calls them."""
    return [f"{run.environment.slug}@{history.commits[run.commit].hash[:12]}" for run in pair or ()]


def newest_pair(history: History, machine: Machine) -> tuple[Run, Run] | None:
    """Return a run and the newest of its environment: of the few runs before, the one with most numbers in common."""
    groups: dict[str, list[Run]] = {}
    for run in history.runs:
        if run.machine.key == machine.key:
            groups.setdefault(run.environment.key, []).append(run)
    best: tuple[tuple[bool, bool, int], Run, Run] | None = None
    for key, group in groups.items():
        if len(group) < 2:
            continue
        head = group[-1]
        mine = [item for item in history.series if item.machine.key == machine.key and item.environment.key == key]
        at_head = [item for item in mine if _measured(item, head.commit)]
        common = [
            (sum(_measured(item, run.commit) for item in at_head), run.commit, run)
            for run in group[-1 - _LOOKED_BACK : -1]
        ]
        most, _, base = max(common, key=lambda entry: entry[:2])
        claim = (most > 0, not head.swept, head.commit)
        if best is None or claim > best[0]:
            best = claim, base, head
    return (best[1], best[2]) if best else None


def _measured(item: Series, commit: int) -> bool:
    place = item.point(commit)
    return place is not None and bool(item.state[place] == columns.OK)


def _pair(machine: Machine, base: Run, head: Run, history: History) -> dict[str, Any]:
    found = runs.compare(runs.column(history, base), runs.column(history, head))
    rows = [_compared(pair, comparable=not found.incomparable) for pair in found.pairs]
    rows += [_lone(item, "failed") for item in found.failed]
    rows += [_lone(item, "removed") for item in found.removed]
    rows += [_lone(item, "not comparable") for item in found.refused]
    rows += [_lone(item, "fixed" if item.base and item.base.state in _LOST else "new") for item in found.new]
    rows.sort(
        key=lambda row: (ORDER.index(row["verdict"]), -abs(row["effect"] or 0.0), row["benchmark"], row["params"])
    )
    counts = Counter(row["verdict"] for row in rows)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ORDER if counts[verdict])
    return {
        "machine": machine.name,
        "environment": head.environment.label,
        "base": _label(base, history),
        "head": _label(head, history),
        "differs": found.incomparable,
        "summary": f"{numbers_module.plural(len(rows), 'number')}: {said}."
        if rows
        else "They have no number in common.",
        "rows": [row for row in rows if row["verdict"] != "same"][:SHOWN],
    }


_LOST = (columns.FAILED, columns.UNREADABLE)


def _compared(pair: runs.Pair, *, comparable: bool) -> dict[str, Any]:
    verdict: Verdict = "not comparable"
    effect: float | None = None
    if comparable:
        noise = _half(pair.base) + _half(pair.head)
        verdict, effect = judge(pair.base.value, pair.head.value, pair.head.benchmark.direction, noise)
    return _shown(pair.head, verdict, effect, pair.base.value, pair.head.value)


def _lone(item: runs.Lone, verdict: Verdict) -> dict[str, Any]:
    point = item.head or item.base
    assert point is not None
    before, after = (side.value if side and side.state == columns.OK else None for side in (item.base, item.head))
    return _shown(point, verdict, None, before, after, item.reason)


def _shown(
    point: runs.Point,
    verdict: Verdict,
    effect: float | None,
    before: float | None,
    after: float | None,
    reason: str = "",
) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "effect": effect,
        "benchmark": point.benchmark.name,
        "params": named(point.benchmark, point.params),
        "before": before,
        "after": after,
        "unit": point.benchmark.unit,
        "href": f"{history_href(point.benchmark)}#s={point.key}",
        "reason": reason,
    }


def _half(point: runs.Point) -> float:
    """Return half the interval of a point as a share of its value."""
    known = point.value and math.isfinite(point.low) and math.isfinite(point.high)
    return abs((point.high - point.low) / point.value) / 2 if known else 0.0


def _label(run: Run, history: History) -> str:
    commit = history.commits[run.commit]
    return f"{commit_name(commit)} ({numbers_module.day(commit.date)})"


# What of a swept version is compared beside the metrics that `metrics.py` shows of it: key, title, unit, direction.
_OWN: tuple[tuple[str, str, str, Direction], ...] = (
    ("images_per_second", "throughput", "images/s", "higher"),
    ("p50_ms", "latency", "ms", "lower"),
)


def _metrics() -> list[tuple[str, str, str, Direction]]:
    return [
        *_OWN,
        *(
            (column.key, column.title or metric.title, column.unit, metric.better)
            for metric, column in metrics.in_table("versions")
        ),
    ]


def versions(site: Site, own: Own) -> dict[str, Any]:
    """Return the swept versions of each machine as columns: what `data/versions.json` holds."""
    found: dict[str, Any] = {}
    compared = _metrics()
    for machine in site.history.machines:
        built = own.versions.get(machine.key)
        columns: dict[str, dict[str, Any]] = {}
        for item in built.series if built else ():
            for row in item.rows:
                column = columns.setdefault(
                    f"{item.library}@{row.version}",
                    {"library": item.library, "version": row.version, "released": row.released, "numbers": {}},
                )
                plain = row.as_json()
                numbers = {title: plain[key] for key, title, _, _ in compared}
                column["numbers"][cell(item)] = {**numbers, "status": row.status, "reason": row.reason}
        if columns:
            found[machine.slug] = columns
    listed = [{"title": title, "unit": unit, "direction": better} for _, title, unit, better in compared]
    return {"schema": 1, "metrics": listed, "machines": found}
