"""The tuning ladder on the page of a model: bars, a table of the rungs, and what became of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from machmeter.site import plots
from machmeter.site.pages import grid
from machmeter.site.pages.grid import Badge, Column, Entry, Grid
from machmeter.tables.ladder_table import LadderRow, LadderTable
from machmeter.text import numbers


@dataclass(frozen=True, kw_only=True)
class Other:
    """A rung without a number."""

    status: str
    title: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """What the page shows of a ladder."""

    svg: Markup
    rows: Grid[LadderRow]
    others: Sequence[Other]
    notes: Sequence[str]


def section(built: LadderTable) -> Ladder:
    """Return what the page shows of the ladder `built`."""
    measured = [row for row in built.rows if row.status == "ok"]
    titles = {row.rung: row.title for row in built.rows}
    fastest = max(measured, key=lambda row: row.images_per_second or 0.0, default=None)
    bars = [
        plots.Bar(
            name=row.title if len(row.title) <= 36 else row.rung,
            value=row.images_per_second or 0.0,
            shown=numbers.speed(row.images_per_second),
            gain=_gain(row, titles),
            kind="slower" if row.slower else "first" if row.on is None else "best" if row is fastest else "",
            title=f"{row.title}: {numbers.speed(row.images_per_second)} images/s {_gain(row, titles)}".strip(),
        )
        for row in measured
    ]
    return Ladder(
        svg=plots.ladder(bars, label=f"The tuning ladder of {built.model}: images per second of {len(bars)} rungs"),
        rows=grid.build(_columns(titles), "ladder", measured),
        others=[
            Other(status=row.status, title=row.title, reason=row.reason) for row in built.rows if row.status != "ok"
        ],
        notes=list(built.notes),
    )


def _columns(titles: dict[str, str]) -> list[Column[LadderRow]]:
    """Return the columns that are not of a metric alone; `titles` are those of the rungs, by name."""
    return [
        Column(heading="Rung", fill=lambda row: Entry(shown=row.title), order=1, number=False),
        Column(heading="stands on", fill=lambda row: grid.words(titles.get(row.on or "")), order=2, number=False),
        Column(heading="runs", fill=_runs, order=3, number=False),
        Column(heading="batch", fill=lambda row: grid.figure(row.batch, 0), order=4),
        Column(
            heading="images/s",
            fill=lambda row: Entry(shown=numbers.speed(row.images_per_second), value=row.images_per_second),
            order=30,
        ),
        Column(
            heading="× below",
            fill=lambda row: grid.figure(
                row.times_below, 2, before=Badge(text="slower", kind="failed") if row.slower else None
            ),
            order=50,
        ),
        Column(heading="× first", fill=lambda row: grid.figure(row.times_first, 2), order=55),
        Column(heading="p50 ms", fill=lambda row: grid.figure(row.p50_ms, 2), order=62),
        Column(heading="p95 ms", fill=lambda row: grid.figure(row.p95_ms, 2), order=64, extra=True),
    ]


def _runs(row: LadderRow) -> Entry:
    several = f", {row.instances} instances" if row.instances > 1 else ""
    return Entry(shown=f"{row.backend} {row.precision}{several}")


def _gain(row: LadderRow, titles: dict[str, str]) -> str:
    if row.times_below is None:
        return ""
    below = row.on if row.on and len(titles.get(row.on, "")) > 20 else titles.get(row.on or "", row.on or "")
    return f"×{row.times_below:.2f} on {below}"
