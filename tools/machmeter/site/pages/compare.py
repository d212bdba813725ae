"""Two runs side by side: the newest pair of each machine as a plain table, and what the browser needs for any other.

What became of a number is judged and worded by `compare.runs`, from the values that the exported columns hold: those
`site/static/js/compare.js` reads, which is given the same rules. So a pair is told alike with and without JavaScript.
"""

from __future__ import annotations

from typing import Any

from machmeter import metrics
from machmeter.compare import limits, runs
from machmeter.history.data import History, Machine, Run, Series
from machmeter.metrics import Direction
from machmeter.site.data import compare_columns
from machmeter.site.links import commit_name, history_href, named
from machmeter.site.pages.machmeter_tables import Own
from machmeter.site.pages.shared import Site
from machmeter.site.pages.versions import cell
from machmeter.store import columns
from machmeter.text import numbers as numbers_module

SHOWN = 20
_LOOKED_BACK = 5  # runs before the newest, among which the one with most in common is taken


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
            "rules": runs.rules(),
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
    older, newer = (runs.column(history, run, compare_columns.as_read) for run in (base, head))
    found = runs.compare(older, newer)
    return {
        "machine": machine.name,
        "environment": head.environment.label,
        "base": _label(base, history),
        "head": _label(head, history),
        "differs": found.incomparable,
        "summary": found.summary,
        "rows": [_row(row) for row in found.rows if row.verdict != "same"][:SHOWN],
    }


def _row(row: runs.Row) -> dict[str, Any]:
    benchmark = row.about.benchmark
    return {
        "verdict": row.verdict,
        "size": row.size,
        "words": row.words or numbers_module.NONE,
        "benchmark": benchmark.name,
        "params": named(benchmark, row.about.series.params),
        "before": row.before,
        "after": row.after,
        "unit": benchmark.unit,
        "href": f"{history_href(benchmark)}#s={row.about.series.key}",
        "reason": row.reason,
    }


def _label(run: Run, history: History) -> str:
    commit = history.commits[run.commit]
    return f"{commit_name(commit)} ({numbers_module.day(commit.date)})"


# What of a swept version is compared beside the metrics that `metrics.py` shows of it: key, title, unit, direction,
# and what counts as a change.
_OWN: tuple[tuple[str, str, str, Direction, dict[str, float]], ...] = (
    ("images_per_second", "throughput", "images/s", "higher", runs.smallest(metrics.LATENCY)),
    ("p50_ms", "latency", "ms", "lower", runs.smallest(metrics.LATENCY)),
)


def _metrics() -> list[tuple[str, str, str, Direction, dict[str, float]]]:
    return [
        *_OWN,
        *(
            (
                column.key,
                column.title or metric.title,
                column.unit,
                metric.better,
                runs.smallest(limits.limit(metric.benchmark, metric.unit), column.one),
            )
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
                numbers = {title: plain[key] for key, title, *_ in compared}
                column["numbers"][cell(item)] = {**numbers, "status": row.status, "reason": row.reason}
        if columns:
            found[machine.slug] = columns
    listed = [
        {"title": title, "unit": unit, "direction": better, "smallest": smallest}
        for _, title, unit, better, smallest in compared
    ]
    return {"schema": 1, "metrics": listed, "machines": found}
