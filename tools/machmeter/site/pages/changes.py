"""The steps in every series, most important first, and the same as an Atom feed."""

from __future__ import annotations

from typing import Any

from machmeter.history.model import Event
from machmeter.site.pages.common import Change, Site, commit_name, parameters, series_href

VERDICTS = ("regression", "improvement", "change")


def rows(site: Site) -> list[dict[str, Any]]:
    """Return every change as plain values, most important first, newest first among equals."""
    events = _events(site)
    found = [_row(change, site, events) for change in site.changes]
    return sorted(found, key=lambda row: (-row["importance"], -row["date"], row["key"], row["commit"]))


def _row(change: Change, site: Site, events: dict[tuple[str, str], list[Event]]) -> dict[str, Any]:
    series, commits = change.series, site.history.commits
    first, last = int(series.commits[change.previous]), int(series.commits[change.point])
    around = [
        event
        for event in events.get((series.machine.key, series.environment.key), [])
        if first < event.commit <= last
    ]
    return {
        "key": series.key,
        "verdict": change.verdict,
        "importance": change.importance,
        "effect": change.effect,
        "benchmark": series.benchmark.name,
        "params": parameters(series),
        "machine": series.machine.name,
        "environment": series.environment.label,
        "unit": series.benchmark.unit,
        "before": change.before,
        "after": change.after,
        "span": f"{commit_name(commits[first])} … {commit_name(commits[last])}",
        "first": commits[first].hash,
        "commit": commits[last].hash,
        "date": commits[last].date,
        "href": series_href(series),
        "libraries": "; ".join(event.text for event in around),
    }


def _events(site: Site) -> dict[tuple[str, str], list[Event]]:
    found: dict[tuple[str, str], list[Event]] = {}
    for event in site.history.events:
        found.setdefault((event.machine.key, event.environment.key), []).append(event)
    return found


def context(site: Site) -> dict[str, Any]:
    """Return what the page of changes shows."""
    listed = rows(site)
    counts = {verdict: sum(row["verdict"] == verdict for row in listed) for verdict in VERDICTS}
    return {
        "changes": {"rows": listed, "counts": counts},
        "changes_caption": "Changes, most important first",
    }
