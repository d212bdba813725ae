"""A history becomes the files of a site: a pure function, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from machmeter.history.data import Benchmark, Series
from machmeter.site.data.shapes import Timeline
from machmeter.site.links import Link, ModelLink, history_href
from machmeter.site.pages import (
    benchmark,
    changes,
    compare,
    data,
    failures,
    feed,
    histories,
    home,
    machines,
    method,
    model,
    versions,
)
from machmeter.site.pages.machmeter_tables import Own
from machmeter.site.pages.shared import Page, Site
from machmeter.site.render import Context, Renderer
from machmeter.site.swap import as_json
from machmeter.site.writing import File, Job

HISTORY = Link(title="History", href="benchmarks.html")


def files(site: Site, own: Own, renderer: Renderer, base: str = "") -> Iterator[File]:
    """Yield name and content of every page and data file. `base` is the site's address, for the feed."""
    for job in jobs(site, own, renderer, base):
        yield from job()


def jobs(site: Site, own: Own, renderer: Renderer, base: str = "") -> list[Job]:
    """Return functions that make the files that `files` yields, each some of them, the long ones first."""

    def page(made: Page, context: Callable[[], Context | Mapping[str, object]]) -> Job:
        return lambda: [(made.href, renderer.page(made, site, context()))]

    def text(name: str, content: Callable[[], object]) -> Job:
        return lambda: [(name, as_json(content()))]

    title = f"{site.name}: fast, and still right" if own.tables else f"{site.name}: performance over its history"
    listed = Page(href="benchmarks.html", template="histories.html", title="History", nav="history")
    feed_page = Page(href="changes.atom", template="changes.atom", title="", nav="")
    found = [
        page(_top("compare.html", "Compare", "compare"), lambda: compare.context(site)),
        page(_top("changes.html", "Changes", "changes"), lambda: changes.context(site)),
        page(
            _top("index.html", title, "home", "What is fastest, what changed, what failed."),
            lambda: home.context(site, own),
        ),
        page(listed, lambda: histories.context(site)),
        page(_top("failures.html", "Failures", "failures"), lambda: failures.context(site, own)),
        page(_top("machines.html", "Machines", "machines"), lambda: machines.context(site)),
        page(_top("method.html", "Method", "method"), lambda: method.context(site, own)),
        page(_top("data.html", "Data", "data"), lambda: data.context(site)),
        page(feed_page, lambda: feed.context(site, base)),
        text("data/timeline.json", lambda: _timeline(site)),
        text("data/changes.json", lambda: changes.data(site)),
        text("data/versions.json", lambda: compare.versions(site, own)),
    ]
    if site.has_versions:
        found.append(page(_top("versions.html", "Versions", "versions"), lambda: versions.context(site, own)))
    found += [page(_model(link), partial(model.context, link, site, own)) for link in site.models]
    series: dict[str, list[Series]] = {}
    for one in site.history.series:
        series.setdefault(one.benchmark.key, []).append(one)
    for item in site.history.benchmarks:
        found.append(page(_history(item, site), partial(benchmark.context, item, series.get(item.key, []), site)))
    return found


def _history(item: Benchmark, site: Site) -> Page:
    return Page(
        href=history_href(item),
        template="history.html",
        title=item.name,
        nav="history",
        description=f"{item.name} over the history of {site.name}.",
        crumbs=(HISTORY,),
    )


def _model(link: ModelLink) -> Page:
    return Page(
        href=link.href,
        template="model.html",
        title=link.model,
        nav="model",
        description=f"{link.model} on {link.machine.name}: every configuration, its speed and its answers.",
        crumbs=(Link(title="Overview", href="index.html"),),
        crumb=f"{link.model} on {link.machine.name}",
    )


def _top(href: str, title: str, nav: str, description: str = "") -> Page:
    return Page(
        href=href, template=href, title=title, nav=nav, description=description or f"{title} of the benchmarks."
    )


def _timeline(site: Site) -> Timeline:
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
