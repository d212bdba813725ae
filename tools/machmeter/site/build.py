"""`machmeter site build`: read a store, make the site beside the old one, swap it in, and say what was left out."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from machmeter.changes import judge, of_history
from machmeter.errors import NoResults
from machmeter.history import read as history_reader
from machmeter.history.data import History
from machmeter.history.read import Read
from machmeter.site import assets, file_list, swap, writing
from machmeter.site.data import export
from machmeter.site.pages import machmeter_tables as own_pages
from machmeter.site.pages.shared import Change, Site
from machmeter.site.render import Renderer, find_folder
from machmeter.store import settings
from machmeter.text import numbers

_WORTH_PROCESSES = 500  # pages and series


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to build, from what, and where to."""

    results: Path
    evidence: Path | None = None
    output: Path = Path("html")
    repository: Path | None = None
    settings: Path | None = None
    templates: Path | None = None
    title: str | None = None
    base: str = ""
    cache: Path | None = None
    jobs: int = 1


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What was read, what was written, what was left out and why."""

    output: Path
    files: int
    bytes: int
    seconds: float
    history: History
    changes: int
    interactive: bool

    def lines(self) -> list[str]:
        """Return the summary as lines of text."""
        history = self.history
        measured = int(sum(item.measured.sum() for item in history.series))
        found = [
            f"read {numbers.plural(history.files, 'result file')}: "
            f"{numbers.plural(len(history.benchmarks), 'benchmark')}, "
            f"{numbers.plural(len(history.series), 'series', 'series')}, {numbers.plural(measured, 'number')} over "
            f"{numbers.plural(len(history.commits), 'commit')}"
            + ("" if history.has_repository else " ordered by date, as there is no repository"),
            f"found {numbers.plural(self.changes, 'change')}",
        ]
        if history.orphans:
            found.append(f"{numbers.plural(history.orphans, 'commit')} not in the repository: shown by date")
        reasons = Counter(item.reason for item in history.left_out)
        first = {item.reason: item.path for item in reversed(history.left_out)}
        for reason, times in sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))[:12]:
            more = f" and {times - 1} more" if times > 1 else ""
            found.append(f"left out: {first[reason]}{more}: {reason}")
        if len(reasons) > 12:
            found.append(f"left out: {len(reasons) - 12} further reasons, on the page of failures")
        if not self.interactive:
            found.append("plots are static: uPlot is not installed ('make site' installs it, or run 'npm ci')")
        found.append(
            f"wrote {self.output}: {numbers.plural(self.files, 'file')}, {self.bytes / 1e6:.1f} MB, "
            f"in {self.seconds:.1f} s"
        )
        return [line.replace("\N{NO-BREAK SPACE}", " ") for line in found]


def run(request: Request, say: Callable[[str, int, int], None]) -> Summary:
    """Build the site. `say` is told a step, how far it is, and how far it goes.

    Raises NoResults where there is nothing to show, and SiteUnbuildable.
    """
    began = time.monotonic()
    folder = find_folder(request.templates)
    swap.check(request.output)
    evidence = request.evidence or request.results.parent / "evidence"
    say("reading", 0, 1)
    found = read(request, evidence if evidence.is_dir() else None, lambda done, of: say("reading", done, of))
    history = found.history
    if not history.series:
        raise NoResults(_nothing(request.results, history))
    say("looking for changes", 0, 1)
    changes = of_history.find(history, cache=request.cache, processes=request.jobs)
    own = own_pages.build(history, found.machines)
    library = assets.find_library(folder)
    site = Site(
        name=request.title or project_name(request),
        history=history,
        changes=shown(history, changes),
        models=own_pages.model_links(own, history),
        has_versions=bool(own.versions),
        interactive=library is not None,
    )
    jobs: list[writing.Job] = [
        *file_list.jobs(site, own, Renderer(folder), request.base),
        *export.jobs(history, changes),
        lambda: assets.own(folder),
        lambda: assets.library(library) if library else (),
    ]
    with swap.beside(request.output) as new:
        processes = request.jobs if len(jobs) >= _WORTH_PROCESSES else 1
        written = writing.write(new, jobs, processes, lambda done: say("writing", done, len(jobs)))
    return Summary(
        output=request.output,
        files=written.files + 1,  # and the mark of a site
        bytes=written.bytes,
        seconds=time.monotonic() - began,
        history=history,
        changes=len(site.changes),
        interactive=library is not None,
    )


def _nothing(results: Path, history: History) -> str:
    if not results.is_dir():
        return f"there is no folder {results}: name asv's results folder with --results"
    if history.left_out:
        first = history.left_out[0]
        return f"no result in {results} can be used; the first that cannot: {first.path} {first.reason}"
    return f"there are no results in {results} yet: run 'make bench' or 'asv run'"


def project_name(request: Request) -> str:
    """Return the project's name: asv's configuration says it, beside the results or in the repository."""
    for folder in filter(None, (request.repository, request.results.resolve().parent)):
        try:
            found = json.loads((folder / "asv.conf.json").read_text(encoding="utf-8")).get("project")
        except (OSError, ValueError, AttributeError):
            continue
        if isinstance(found, str) and found:
            return found
    parent = request.results.resolve()
    return parent.parent.name if parent.name == "results" else parent.name


def read(request: Request, evidence: Path | None, progress: Callable[[int, int], None] | None = None) -> Read:
    """Read what is asked for."""
    place = request.settings or request.results.resolve().parent / settings.FILE
    return history_reader.read_once(
        request.results,
        evidence,
        repository(request),
        settings.load(place),
        cache=request.cache,
        jobs=request.jobs,
        progress=progress,
    )


def repository(request: Request) -> Path | None:
    """Return the repository that has the commits: the one given, else the clone that the results lie in."""
    if request.repository:
        return request.repository
    around = request.results.resolve().parent
    return around if (around / ".git").exists() else None


def shown(history: History, changes: Mapping[str, Sequence[judge.Change]]) -> tuple[Change, ...]:
    """Return the changes of the present versions as the pages show them, most important first."""
    return tuple(
        Change(
            series=found.series,
            point=found.change.index,
            previous=found.change.last_before,
            before=found.change.before,
            after=found.change.after,
            verdict=found.change.verdict,
            importance=round(found.change.importance, 6),
            words=found.change.words,
            libraries="; ".join(event.text for event in found.events),
        )
        for found in of_history.listed(history, changes)
    )
