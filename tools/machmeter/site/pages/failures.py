"""Everything without a number: the newest state of each series with its reason, since when, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from machmeter.history.missing import Missing, missing
from machmeter.site.links import commit_name, parameters, series_href
from machmeter.site.pages.machmeter_tables import Own
from machmeter.site.pages.model_cards import configuration
from machmeter.site.pages.shared import Site
from machmeter.store import columns

_ORDER = (columns.FAILED, columns.UNREADABLE, columns.NOT_AVAILABLE, columns.SKIPPED, columns.NOT_RUN)
_WORDS = {
    "skipped": "n/a or not run: asv writes the same for both",
    "unreadable": "the result is no number",
    "not run": "left out of the newest run",
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A series whose newest result is no number."""

    order: int
    state: str
    benchmark: str
    params: str
    machine: str
    environment: str
    href: str
    reason: str
    since: int
    commit: str
    last: int | None


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A cell of our own tables without a number."""

    machine: str
    model: str
    name: str
    status: str
    reason: str
    commit: str


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A file that could not be used."""

    path: str
    reason: str
    count: int


@dataclass(frozen=True, kw_only=True)
class Failures:
    """Everything without a number."""

    rows: Sequence[Row]
    not_run: int
    counts: Mapping[str, int]
    cells: Sequence[Cell]
    left_out: Sequence[LeftOut]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the template of the page of failures is given."""

    failures: Failures


def context(site: Site, own: Own) -> Context:
    """Return what the page of failures shows."""
    rows = [_row(item, site) for item in missing(site.history)]
    rows.sort(key=lambda row: (row.order, row.benchmark, row.params, row.machine))
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.state] = counts.get(row.state, 0) + 1
    left: dict[tuple[str, str], int] = {}
    for item in site.history.left_out:
        left[item.path, item.reason] = left.get((item.path, item.reason), 0) + 1
    return Context(
        failures=Failures(
            rows=[row for row in rows if row.state != "not run"],
            not_run=counts.get("not run", 0),
            counts=counts,
            cells=_cells(site, own),
            left_out=[LeftOut(path=path, reason=reason, count=count) for (path, reason), count in left.items()],
        )
    )


def _row(item: Missing, site: Site) -> Row:
    commits, series = site.history.commits, item.series
    name = columns.STATES[item.state]
    return Row(
        order=_ORDER.index(item.state) if item.state in _ORDER else len(_ORDER),
        state=name,
        benchmark=series.benchmark.name,
        params=parameters(series),
        machine=series.machine.name,
        environment=series.environment.label,
        href=series_href(series),
        reason=item.reason or _WORDS.get(name, "asv keeps no reason"),
        since=commits[item.since].date,
        commit=commit_name(commits[item.since]),
        last=commits[item.last_number].date if item.last_number is not None else None,
    )


def _cells(site: Site, own: Own) -> list[Cell]:
    """Return the cells of our own tables without a number: one row where the history has one for each metric."""
    found = []
    for machine in site.history.machines:
        built = own.tables.get(machine.key)
        for row in built.rows if built else ():
            if row.status != "ok":
                found.append(
                    Cell(
                        machine=machine.name,
                        model=row.model,
                        name=configuration(row),
                        status=row.status,
                        reason=row.reason or "no reason on record",
                        commit=row.commit,
                    )
                )
    order = ("failed", "running", "n/a", "not run")
    return sorted(found, key=lambda row: (order.index(row.status), row.machine, row.model, row.name))
