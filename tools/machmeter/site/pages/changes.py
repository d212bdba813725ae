"""The steps in every series, most important first, and the same as an Atom feed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from machmeter.site.data.shapes import AllChanges, ListedChange
from machmeter.site.links import commit_name, parameters, series_href
from machmeter.site.pages.shared import Change, Site

SHOWN = 400  # on the page
VERDICTS = ("regression", "improvement", "change")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A change as plain values."""

    key: str
    verdict: str
    importance: float
    size: float
    words: str
    benchmark: str
    params: str
    machine: str
    environment: str
    unit: str
    before: float
    after: float
    span: str
    first: str
    commit: str
    date: int
    href: str
    libraries: str


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The changes that are listed, and how many there are of each verdict."""

    rows: Sequence[Row]
    counts: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the template of the page of changes is given."""

    changes: Changes
    changes_caption: str


def row(change: Change, site: Site) -> Row:
    """Return a change as plain values."""
    series, commits = change.series, site.history.commits
    first, last = commits[int(series.commits[change.previous])], commits[int(series.commits[change.point])]
    return Row(
        key=series.key,
        verdict=change.verdict,
        importance=change.importance,
        size=change.size,
        words=change.words,
        benchmark=series.benchmark.name,
        params=parameters(series),
        machine=series.machine.name,
        environment=series.environment.label,
        unit=series.benchmark.unit,
        before=change.before,
        after=change.after,
        span=f"{commit_name(first)} … {commit_name(last)}",
        first=first.hash,
        commit=last.hash,
        date=last.date,
        href=series_href(series),
        libraries=change.libraries,
    )


def context(site: Site) -> Context:
    """Return what the page of changes shows."""
    listed = [row(change, site) for change in site.changes[:SHOWN]]
    counts = {verdict: sum(change.verdict == verdict for change in site.changes) for verdict in VERDICTS}
    return Context(
        changes=Changes(rows=listed, counts=counts),
        changes_caption="Changes, most important first"
        if len(site.changes) == len(listed)
        else f"The {len(listed)} most important of {len(site.changes)} changes; the data have all",
    )


def data(site: Site) -> AllChanges:
    """Return what `data/changes.json` holds."""
    commits = site.history.commits
    listed: list[ListedChange] = [
        {
            "key": change.series.key,
            "verdict": change.verdict,
            "importance": change.importance,
            "before": float(f"{change.before:.6g}"),
            "after": float(f"{change.after:.6g}"),
            "words": change.words,
            "first": commits[int(change.series.commits[change.previous])].hash[:12],
            "commit": commits[int(change.series.commits[change.point])].hash[:12],
            "libraries": change.libraries,
        }
        for change in site.changes
    ]
    return {"schema": 1, "changes": listed}
