"""What every page needs to know: where it lies, and what is the same on all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from markupsafe import Markup

from machmeter.history.data import Commit, History, Series
from machmeter.site.links import Link, ModelLink
from machmeter.text import numbers, two_numbers


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page: where it lies, what it is called, and where that is in the site."""

    href: str
    template: str
    title: str
    nav: str
    description: str = ""
    crumbs: tuple[Link, ...] = ()
    crumb: str = ""

    @property
    def root(self) -> str:
        """Return the relative path from the page to the site's top folder."""
        return "../" * self.href.count("/")


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A line of a legend."""

    name: str
    swatch: Markup


@dataclass(frozen=True, kw_only=True)
class Change:
    """A step in a series, judged: what the pages show of one."""

    series: Series
    point: int  # index into the series' points: the first of the new level
    previous: int  # index of the last point of the old level
    before: float
    after: float
    verdict: str  # regression, improvement or change
    importance: float = 0.0
    words: str = ""  # how large it is: "+20.0 %", "× 12.0", "from 0 ns to 5.000 s"
    libraries: str = ""  # what else changed between the two points

    @property
    def size(self) -> float:
        """Return how large the change is, whichever way: the logarithm of the factor, or infinity."""
        return two_numbers.size(self.before, self.after)


@dataclass(frozen=True, kw_only=True)
class Site:
    """What is the same on every page."""

    name: str
    history: History
    changes: tuple[Change, ...] = ()
    models: tuple[ModelLink, ...] = ()
    has_versions: bool = False
    interactive: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def newest(self) -> int | None:
        """Return when the newest result was made, in milliseconds; the commit's date where asv did not say."""
        run = self.history.newest
        if run is None:
            return None
        return run.started or self.history.commits[run.commit].date

    @property
    def several_machines(self) -> bool:
        """Return whether a page must say of which machine a number is."""
        return len(self.history.machines) > 1

    @cached_property
    def counted(self) -> str:
        """Return what was read, in one line."""
        history = self.history
        return (
            f"{numbers.plural(history.files, 'result file')}, {numbers.plural(len(history.commits), 'commit')}, "
            f"{numbers.plural(len(history.series), 'series', 'series')}."
        )

    @cached_property
    def changes_of(self) -> Mapping[str, Sequence[Change]]:
        """Return the changes by the key of their benchmark, most important first."""
        found: dict[str, list[Change]] = {}
        for change in self.changes:
            found.setdefault(change.series.benchmark.key, []).append(change)
        return found

    def commit(self, change: Change) -> Commit:
        """Return the commit with which a change came."""
        return self.history.commits[int(change.series.commits[change.point])]

    @cached_property
    def days(self) -> Sequence[str]:
        """Return the day of each commit."""
        return [numbers.day(commit.date) for commit in self.history.commits]

    @cached_property
    def swept_environments(self) -> frozenset[str]:
        """Return the keys of the environments in which sweeps measured single versions of a library."""
        return frozenset(run.environment.key for run in self.history.runs if run.swept)

    @cached_property
    def nav(self) -> list[Link]:
        """Return the links at the top of every page."""
        links = [
            Link(title="Overview", href="index.html", key="home"),
            Link(title="Models", href=self.models[0].href, key="model") if self.models else None,
            Link(title="History", href="benchmarks.html", key="history"),
            Link(title="Versions", href="versions.html", key="versions") if self.has_versions else None,
            Link(title="Compare", href="compare.html", key="compare"),
            Link(title="Changes", href="changes.html", key="changes"),
            Link(title="Machines", href="machines.html", key="machines"),
            Link(title="Failures", href="failures.html", key="failures"),
            Link(title="Method", href="method.html", key="method"),
            Link(title="Data", href="data.html", key="data"),
        ]
        return [link for link in links if link]
