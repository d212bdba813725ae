"""The newest changes as an Atom feed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from machmeter.history.data import short_hash
from machmeter.site.pages import changes
from machmeter.site.pages.shared import Change, Site
from machmeter.text import numbers

FEED = 100  # entries: the newest


# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def _plain(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A change in the feed."""

    id: str
    title: str
    date: int
    href: str
    verdict: str
    summary: str


@dataclass(frozen=True, kw_only=True)
class Feed:
    """The newest changes."""

    id: str
    base: str
    updated: int
    entries: Sequence[Entry]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the template of the feed is given."""

    feed: Feed


def context(site: Site, base: str) -> Context:
    """Return the feed of `site`, whose address is `base`."""

    def newest_first(change: Change) -> tuple[int, str, str]:
        commit = site.commit(change)
        return -commit.date, change.series.key, commit.hash

    entries = []
    for change in sorted(site.changes, key=newest_first)[:FEED]:
        row = changes.row(change, site)
        name = " ".join(part for part in (row.benchmark, row.params) if part)
        effect = f" {row.words}"
        libraries = f" What else changed: {row.libraries}." if row.libraries else ""
        before, after = numbers.value(row.before, row.unit), numbers.value(row.after, row.unit)
        entries.append(
            Entry(
                # The commit and the series name an entry, so it keeps its name when others join it.
                id=f"change:{row.key}:{row.commit[:12]}",
                title=_plain(f"{row.verdict}{effect}: {name}"),
                date=row.date,
                href=row.href,
                verdict=row.verdict,
                summary=_plain(
                    f"{before} to {after} between {row.span} on {row.machine} ({row.environment}).{libraries}"
                ),
            )
        )
    return Context(
        feed=Feed(
            id=f"site:{short_hash(site.name)}",
            base=base,
            updated=max((entry.date for entry in entries), default=site.newest or 0),
            entries=entries,
        )
    )
