"""The data page: which files there are, badges, and what this build read and left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from machmeter.site.data import badges
from machmeter.site.pages.shared import Site
from machmeter.text import numbers

# File, what it holds, and the JSON Schema of it in static/schema.
FILES = (
    ("index.json", "Machines, environments, commits, benchmarks, events, and what was left out.", "index.schema.json"),
    ("runs.json", "What each run ran on: host and installed packages.", "runs.schema.json"),
    ("series/<key>.json", "All points of one series, with its changes. History pages link them.", "series.schema.json"),
    ("columns/<machine>/<environment>/<n>.json", "All series at each commit, to compare two.", "columns.schema.json"),
    ("columns/<machine>/<environment>/scale.json", "Which series those columns have.", "scale.schema.json"),
    ("changes.json", "Every change, most important first.", "changes.schema.json"),
    ("timeline.json", "Commits and events, shortened: what the plots stand on.", "timeline.schema.json"),
    ("versions.json", "The versions of libraries that sweeps measured.", "versions.schema.json"),
    ("badges/<key>.json", "Badge endpoints in the form of shields.io: the images/s of a cell.", "badge.schema.json"),
    ("badges/<key>-trend.json", "The same for its trend over the last 20 points.", "badge.schema.json"),
)


@dataclass(frozen=True, kw_only=True)
class File:
    """A data file, or many of one kind."""

    name: str
    href: str
    content: str
    schema: str


@dataclass(frozen=True, kw_only=True)
class Badge:
    """The badges of one cell."""

    name: str
    machine: str
    environment: str
    speed: str
    trend: str


@dataclass(frozen=True, kw_only=True)
class Data:
    """What there is, and what this build read."""

    files: Sequence[File]
    badges: Sequence[Badge]
    build: Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the template of the data page is given."""

    data: Data


def context(site: Site) -> Context:
    """Return what the data page shows."""
    history = site.history
    found = [
        Badge(
            name=label,
            machine=item.machine.name,
            environment=item.environment.label,
            speed=badges.speed_path(item),
            trend=badges.trend_path(item),
        )
        for item, label in badges.cells_of(history)
    ]
    return Context(
        data=Data(
            files=[
                File(name=name, href=f"data/{name}" if "<" not in name else "", content=content, schema=schema)
                for name, content, schema in FILES
                if found or not name.startswith("badges/")
            ],
            badges=found,
            build=[
                ("result files read", numbers.plural(history.files, "file")),
                ("left out", numbers.plural(len({item.path for item in history.left_out}), "file")),
                ("commits", numbers.plural(len(history.commits), "commit")),
                ("orphans", numbers.plural(history.orphans, "commit")),
                ("benchmarks", numbers.plural(len(history.benchmarks), "benchmark")),
                ("series", numbers.plural(len(history.series), "series", "series")),
                ("order of commits", "from the repository" if history.has_repository else "by date"),
                ("newest result", numbers.minute(site.newest)),
            ],
        )
    )
