"""Two runs side by side: the data that the page compares in the browser, and the newest pair as a plain table.

`site/static/js/compare.js` judges as `judge` does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from machmeter.history import model as states
from machmeter.history.model import Machine, Run, Series, short_hash
from machmeter.metrics import Direction
from machmeter.results.versions import Row
from machmeter.site import words
from machmeter.site.pages.common import Site, commit_name, history_href, parameters
from machmeter.site.pages.own import Own
from machmeter.site.pages.versions import cell

Verdict = Literal["failed", "fixed", "removed", "new", "regression", "improvement", "change", "same"]

LEAST = 0.02  # a smaller effect is the same
SHOWN = 20
ORDER: tuple[Verdict, ...] = ("failed", "removed", "regression", "change", "improvement", "fixed", "new", "same")


@dataclass(frozen=True, kw_only=True)
class Point:
    """One number of a run, with half its interval relative to it; `state` says why there is none."""

    value: float | None
    error: float = 0.0
    state: str = "ok"


ABSENT = Point(value=None, state="")


def judge(base: Point, head: Point, direction: Direction | None) -> tuple[Verdict, float | None]:
    """Return what became of a number, and by how much; None where that cannot be said as a share.

    An effect counts from 2 %, and from the sum of both half intervals where that is more.
    """
    if head.value is None:
        if base.value is None:
            return "same", None
        return ("failed" if head.state in ("failed", "unreadable") else "removed"), None
    if base.value is None:
        return ("fixed" if base.state in ("failed", "unreadable") else "new"), None
    if base.value == 0.0:
        return ("same" if head.value == 0.0 else "change"), None
    effect = head.value / base.value - 1.0
    if abs(effect) < max(LEAST, base.error + head.error):
        return "same", effect
    if direction is None:
        return "change", effect
    return ("improvement" if (effect > 0) == (direction == "higher") else "regression"), effect


@dataclass(kw_only=True)
class Column:
    """One side of a comparison: a run, or a version of a library that was swept."""

    key: str
    group: str  # the environment, or the library
    label: str
    date: int
    commit: str
    facts: str  # what must be equal for a percentage
    points: dict[tuple[str, str], Point] = field(default_factory=dict)  # by benchmark and parameters


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What the rows of a machine are about."""

    benchmark: str
    unit: str
    direction: Direction | None
    href: str


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """Everything that can be compared on one machine."""

    machine: Machine
    subjects: dict[str, Subject]
    columns: list[Column]

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Return every (benchmark, parameters) that any column has, in order."""
        found: dict[tuple[str, str], None] = {}
        for column in self.columns:
            found.update(dict.fromkeys(column.points))
        return sorted(found)


def sheets(site: Site, own: Own) -> list[Sheet]:
    """Return what can be compared, for each machine."""
    series: dict[str, list[Series]] = {}
    for item in site.history.series:
        series.setdefault(item.machine.key, []).append(item)
    return [_sheet(machine, series.get(machine.key, []), site, own) for machine in site.history.machines]


def _sheet(machine: Machine, series: Sequence[Series], site: Site, own: Own) -> Sheet:
    columns: dict[tuple[str, int], Column] = {}
    for run in site.history.runs:
        if run.machine.key == machine.key:
            columns[run.environment.key, run.commit] = _column(run, site)
    subjects: dict[str, Subject] = {}
    for item in series:
        benchmark = item.benchmark
        subjects[benchmark.name] = Subject(
            benchmark=benchmark.name, unit=benchmark.unit, direction=benchmark.direction, href=history_href(benchmark)
        )
        where = benchmark.name, parameters(item)
        rows = zip(
            item.commits.tolist(), item.value.tolist(), item.low.tolist(), item.high.tolist(), item.state.tolist(), strict=True
        )  # fmt: skip
        for at, value, low, high, state in rows:
            column = columns.get((item.environment.key, at))
            if column is None:
                continue
            if state == states.OK:
                half = abs((high - low) / value) / 2 if value and math.isfinite(low) and math.isfinite(high) else 0.0
                column.points[where] = Point(value=value, error=half)
            elif state not in (states.NOT_RUN, states.SKIPPED):
                column.points[where] = Point(value=None, state=states.STATES[state])
    found = [column for column in columns.values() if column.points]
    found.sort(key=lambda column: (column.group, column.date, column.commit))
    swept = own.versions.get(machine.key)
    for item in swept.series if swept else ():
        for row in item.rows:
            _swept(item.library, cell(item), row, found, subjects, machine)
    return Sheet(machine=machine, subjects=subjects, columns=found)


def _column(run: Run, site: Site) -> Column:
    commit = site.history.commits[run.commit]
    cpu = run.host.get("cpu", {}).get("model") or run.params.get("cpu", "")
    threads = run.host.get("thread_budget") or run.params.get("num_cpu", "")
    return Column(
        key=short_hash(run.machine.key, run.environment.key, commit.hash),
        group=run.environment.label,
        label=f"{commit_name(commit)} · {words.day(commit.date)}",
        date=commit.date,
        commit=commit.hash,
        facts=f"{cpu}, {threads} threads" if run.host else str(cpu),
    )


_METRICS: tuple[tuple[str, str, str, Direction], ...] = (
    ("images_per_second", "throughput", "images/s", "higher"),
    ("p50_ms", "latency", "ms", "lower"),
    ("top1_agreement", "top-1 agreement", "fraction", "higher"),
    ("sqnr_db", "SQNR", "dB", "higher"),
    ("peak_memory_mb", "peak memory", "MB", "lower"),
)


def _swept(library: str, name: str, row: Row, columns: list[Column], subjects: dict[str, Subject], machine: Machine) -> None:
    key = short_hash(machine.key, "version", library, row.version)
    column = next((item for item in columns if item.key == key), None)
    if column is None:
        label = f"{library} {row.version}" + (f" · {row.released}" if row.released else "")
        column = Column(
            key=key, group=f"versions of {library}", label=label, date=0, commit=row.commit, facts=f"sweep of {library}"
        )
        columns.append(column)
    for attribute, title, unit, better in _METRICS:
        benchmark = f"{name}: {title}"
        subjects.setdefault(benchmark, Subject(benchmark=benchmark, unit=unit, direction=better, href="versions.html"))
        value = getattr(row, attribute)
        if value is not None:
            column.points[benchmark, ""] = Point(value=float(value))
        elif row.status == "failed" and attribute == "images_per_second":
            column.points[benchmark, ""] = Point(value=None, state="failed")


def context(found: Sequence[Sheet]) -> dict[str, Any]:
    """Return what the page shows before anybody chooses: the two newest runs of each machine."""
    pairs = [pair for sheet in found if (pair := _pair(sheet))]
    return {
        "compare": {
            "machines": [{"key": sheet.machine.slug, "name": sheet.machine.name} for sheet in found if sheet.columns],
            "heading": "The newest run against the one before" if pairs else "Nothing to compare yet",
            "pairs": pairs,
        }
    }


def newest_pair(sheet: Sheet) -> tuple[Column, Column] | None:
    """Return the newest run and the one before it in the same environment that has most in common with it."""
    by_group: dict[str, list[Column]] = {}
    for column in sheet.columns:
        by_group.setdefault(column.group, []).append(column)
    best: tuple[tuple[int, int], Column, Column] | None = None
    for group in by_group.values():
        if len(group) < 2:
            continue
        head = group[-1]
        base = max(group[-6:-1], key=lambda column: len(column.points.keys() & head.points.keys()))
        claim = (min(len(base.points.keys() & head.points.keys()), 1), head.date)
        if best is None or claim > best[0]:
            best = claim, base, head
    return (best[1], best[2]) if best else None


def _pair(sheet: Sheet) -> dict[str, Any] | None:
    sides = newest_pair(sheet)
    if sides is None:
        return None
    base, head = sides
    rows = []
    for where in sorted(base.points.keys() | head.points.keys()):
        subject = sheet.subjects[where[0]]
        before, after = base.points.get(where, ABSENT), head.points.get(where, ABSENT)
        verdict, effect = judge(before, after, subject.direction)
        rows.append(
            {
                "verdict": verdict,
                "effect": effect,
                "benchmark": where[0],
                "params": where[1],
                "before": before.value,
                "after": after.value,
                "unit": subject.unit,
                "href": subject.href,
            }
        )
    same = base.facts == head.facts
    if not same:
        for row in rows:
            row["effect"] = None
            if row["verdict"] in ("regression", "improvement", "change"):
                row["verdict"] = "same"
    rows.sort(key=lambda row: (ORDER.index(row["verdict"]), -abs(row["effect"] or 0.0), row["benchmark"], row["params"]))
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in ORDER}
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    summary = f"{len(rows)} numbers: {said}."
    if not same:
        summary = f"Not comparable: {base.facts} and {head.facts}. " + summary
    return {
        "machine": sheet.machine.name,
        "base": f"{base.label} ({base.group})",
        "head": head.label,
        "summary": summary,
        "rows": [row for row in rows if row["verdict"] != "same"][:SHOWN],
    }


def data(sheet: Sheet) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the data files of a machine: what can be chosen, and the numbers of each run in the order of its rows."""
    rows = sheet.rows
    names = sorted({name for name, _ in rows})
    number = {name: place for place, name in enumerate(names)}
    yield (
        f"data/compare/{sheet.machine.slug}.json",
        {
            "schema": 1,
            "machine": sheet.machine.name,
            "benchmarks": [
                {
                    "name": name,
                    "unit": sheet.subjects[name].unit,
                    "direction": sheet.subjects[name].direction,
                    "href": sheet.subjects[name].href,
                }
                for name in names
            ],
            "rows": [[number[name], params] for name, params in rows],
            "runs": [
                {
                    "key": column.key,
                    "group": column.group,
                    "label": column.label,
                    "date": column.date,
                    "commit": column.commit,
                    "facts": column.facts,
                }
                for column in sheet.columns
            ],
        },
    )
    for column in sheet.columns:
        yield f"data/run/{column.key}.json", _numbers(column, rows)


def _numbers(column: Column, rows: Sequence[tuple[str, str]]) -> dict[str, Any]:
    values: list[float | None] = []
    errors: list[int] = []
    states_found: dict[str, list[int]] = {}
    for place, where in enumerate(rows):
        point = column.points.get(where)
        values.append(None if point is None or point.value is None else float(f"{point.value:.6g}"))
        errors.append(0 if point is None else min(round(1000 * point.error), 1000))
        if point is not None and point.value is None:
            states_found.setdefault(point.state, []).append(place)
    while values and values[-1] is None:
        values.pop()
    return {"value": values, "error": errors[: len(values)], "state": states_found}
