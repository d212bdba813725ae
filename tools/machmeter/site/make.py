"""A history becomes the files of a site: a pure function, page by page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from machmeter.history.model import Series, short_hash
from machmeter.site import words
from machmeter.site.pages import benchmark, changes, compare, data, failures, home, machines, method, model, versions
from machmeter.site.pages.common import Link, Page, Site, history_href
from machmeter.site.pages.own import Own
from machmeter.site.render import Renderer
from machmeter.site.swap import as_json

HISTORY = Link(title="History", href="benchmarks.html")


def count(site: Site) -> int:
    """Return about how many files there will be, for a progress display."""
    return len(site.history.benchmarks) + len(site.models) + 40


def files(site: Site, own: Own, renderer: Renderer, base: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and content of every page and data file. `base` is the site's address, for the feed."""

    def page(made: Page, **context: Any) -> tuple[str, str]:
        return made.href, renderer.page(made, site, **context)

    title = f"{site.name}: fast, and still right" if own.tables else f"{site.name}: performance over its history"
    yield page(
        _top("index.html", title, "home", "What is fastest, what changed, what failed."), **home.context(site, own)
    )
    yield page(
        Page(href="benchmarks.html", template="histories.html", title="History", nav="history"),
        list=benchmark.listing(site),
    )
    series: dict[str, list[Series]] = {}
    for one in site.history.series:
        series.setdefault(one.benchmark.key, []).append(one)
    for item in site.history.benchmarks:
        made = Page(
            href=history_href(item),
            template="history.html",
            title=item.name,
            nav="history",
            description=f"{item.name} over the history of {site.name}.",
            crumbs=(HISTORY,),
        )
        yield page(made, **benchmark.context(item, series.get(item.key, []), site))
    for link in site.models:
        made = Page(
            href=link.href,
            template="model.html",
            title=link.model,
            nav="model",
            description=f"{link.model} on {link.machine.name}: every configuration, its speed and its answers.",
            crumbs=(Link(title="Overview", href="index.html"),),
            crumb=f"{link.model} on {link.machine.name}",
        )
        yield page(made, **model.context(link, site, own))
    if site.has_versions:
        yield page(_top("versions.html", "Versions", "versions"), **versions.context(site, own))
    yield page(_top("compare.html", "Compare", "compare"), **compare.context(site))
    yield page(_top("changes.html", "Changes", "changes"), **changes.context(site))
    yield page(_top("machines.html", "Machines", "machines"), **machines.context(site))
    yield page(_top("failures.html", "Failures", "failures"), **failures.context(site, own))
    yield page(_top("method.html", "Method", "method"), **method.context(site, own))
    yield page(_top("data.html", "Data", "data"), **data.context(site))
    yield page(Page(href="changes.atom", template="changes.atom", title="", nav=""), feed=_feed(site, base))
    yield "data/timeline.json", as_json(_timeline(site))
    yield "data/changes.json", as_json(changes.data(site))
    yield "data/versions.json", as_json(compare.versions(site, own))


def _top(href: str, title: str, nav: str, description: str = "") -> Page:
    return Page(
        href=href, template=href, title=title, nav=nav, description=description or f"{title} of the benchmarks."
    )


def _timeline(site: Site) -> dict[str, Any]:
    """Return what every plot stands on: the commits in order, shortened, and what changed around the measurements."""
    commits = site.history.commits
    return {
        "schema": 1,
        "hash": [commit.hash[:12] for commit in commits],
        "date": [commit.date for commit in commits],
        "tags": {str(at): list(commit.tags) for at, commit in enumerate(commits) if commit.tags},
        "orphans": [at for at, commit in enumerate(commits) if commit.orphan],
        "events": [
            {
                "machine": event.machine.slug,
                "environment": event.environment.slug,
                "commit": event.commit,
                "kind": event.kind,
                "text": event.text,
            }
            for event in site.history.events
        ],
    }


FEED = 100  # entries: the newest


# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def _plain(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _feed(site: Site, base: str) -> dict[str, Any]:
    entries = []
    for row in sorted(changes.rows(site), key=lambda row: (-row["date"], row["key"], row["commit"]))[:FEED]:
        name = " ".join(part for part in (row["benchmark"], row["params"]) if part)
        effect = f" {row['words']}"
        libraries = f" What else changed: {row['libraries']}." if row["libraries"] else ""
        before, after = words.value(row["before"], row["unit"]), words.value(row["after"], row["unit"])
        entries.append(
            {
                # The commit and the series name an entry, so it keeps its name when others join it.
                "id": f"change:{row['key']}:{row['commit'][:12]}",
                "title": _plain(f"{row['verdict']}{effect}: {name}"),
                "date": row["date"],
                "href": row["href"],
                "verdict": row["verdict"],
                "summary": _plain(
                    f"{before} to {after} between {row['span']} on {row['machine']} ({row['environment']}).{libraries}"
                ),
            }
        )
    return {
        "id": f"site:{short_hash(site.name)}",
        "base": base,
        "updated": max((entry["date"] for entry in entries), default=site.newest or 0),
        "entries": entries,
    }
