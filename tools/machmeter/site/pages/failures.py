"""Everything without a number: the newest state of each series with its reason, since when, and what was left out."""

from __future__ import annotations

from typing import Any

from machmeter.history.missing import Missing, missing
from machmeter.site.links import commit_name, parameters, series_href
from machmeter.site.pages.home import configuration
from machmeter.site.pages.machmeter_tables import Own
from machmeter.site.pages.shared import Site
from machmeter.store import columns

_ORDER = (columns.FAILED, columns.UNREADABLE, columns.NOT_AVAILABLE, columns.SKIPPED, columns.NOT_RUN)
_WORDS = {
    "skipped": "n/a or not run: asv writes the same for both",
    "unreadable": "the result is no number",
    "not run": "left out of the newest run",
}


def context(site: Site, own: Own) -> dict[str, Any]:
    """Return what the page of failures shows."""
    rows = [_row(item, site) for item in missing(site.history)]
    rows.sort(key=lambda row: (row["order"], row["benchmark"], row["params"], row["machine"]))
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["state"]] = counts.get(row["state"], 0) + 1
    left: dict[tuple[str, str], int] = {}
    for item in site.history.left_out:
        left[item.path, item.reason] = left.get((item.path, item.reason), 0) + 1
    return {
        "failures": {
            "rows": [row for row in rows if row["state"] != "not run"],
            "not_run": counts.get("not run", 0),
            "counts": counts,
            "cells": _cells(site, own),
            "left_out": [{"path": path, "reason": reason, "count": count} for (path, reason), count in left.items()],
        }
    }


def _row(item: Missing, site: Site) -> dict[str, Any]:
    commits, series = site.history.commits, item.series
    name = columns.STATES[item.state]
    return {
        "order": _ORDER.index(item.state) if item.state in _ORDER else len(_ORDER),
        "state": name,
        "benchmark": series.benchmark.name,
        "params": parameters(series),
        "machine": series.machine.name,
        "environment": series.environment.label,
        "href": series_href(series),
        "reason": item.reason or _WORDS.get(name, "asv keeps no reason"),
        "since": commits[item.since].date,
        "commit": commit_name(commits[item.since]),
        "last": commits[item.last_number].date if item.last_number is not None else None,
    }


def _cells(site: Site, own: Own) -> list[dict[str, Any]]:
    """Return the cells of our own tables without a number: one row where the history has one for each metric."""
    found = []
    for machine in site.history.machines:
        built = own.tables.get(machine.key)
        for row in built.rows if built else ():
            if row.status != "ok":
                found.append(
                    {
                        "machine": machine.name,
                        "model": row.model,
                        "name": configuration(row),
                        "status": row.status,
                        "reason": row.reason or "no reason on record",
                        "commit": row.commit,
                    }
                )
    order = ("failed", "running", "n/a", "not run")
    return sorted(found, key=lambda row: (order.index(row["status"]), row["machine"], row["model"], row["name"]))
