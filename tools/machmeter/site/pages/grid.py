"""Tables of pages as columns and entries: what is shown at first, and what only where a reader asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from machmeter import metrics
from machmeter.metrics import Table
from machmeter.tables import columns
from machmeter.tables.columns import HasFacts

Row = TypeVar("Row", bound=HasFacts)


@dataclass(frozen=True, kw_only=True)
class Badge:
    """A word beside a number."""

    text: str
    kind: str = ""
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What stands in one row and column."""

    shown: str
    value: float | None = None  # what a column is sorted by, where it is not the text
    number: bool = False
    extra: bool = False
    href: str = ""
    before: Badge | None = None
    after: Badge | None = None


@dataclass(frozen=True, kw_only=True)
class Column(Generic[Row]):
    """One column: its head, and how a row fills it. The first of a table names its rows."""

    heading: str
    fill: Callable[[Row], Entry]
    order: int
    title: str = ""  # a longer name
    number: bool = True
    extra: bool = False  # shown on request
    filter: bool = False  # a reader can choose one of its values
    sorted: str = ""  # how the rows are ordered by it already


@dataclass(frozen=True, kw_only=True)
class Grid(Generic[Row]):
    """A table: its columns, its rows, and the headings of the columns that are shown on request."""

    columns: Sequence[Column[Row]]
    rows: Sequence[Sequence[Entry]]
    extra: Sequence[str]


def words(text: str | None, *, after: Badge | None = None) -> Entry:
    """Return an entry of words, a dash where there are none."""
    return Entry(shown=text or "–", after=after)


def figure(value: float | None, digits: int, *, before: Badge | None = None) -> Entry:
    """Return a number with `digits` behind the point, a dash where there is none."""
    return Entry(shown="–" if value is None else f"{value:.{digits}f}", value=value, before=before)


def build(own: Iterable[Column[Row]], table: Table, rows: Sequence[Row], *, extra: bool = True) -> Grid[Row]:
    """Return `rows` in the columns that `table` has on a page: its `own`, and those that `metrics.py` declares.

    Without `extra` there are none that are shown on request.
    """
    every = [column for column in (*own, *_of_metrics(table, rows)) if extra or not column.extra]
    ordered = sorted(every, key=lambda column: column.order)
    return Grid(
        columns=ordered,
        rows=[
            [replace(column.fill(row), number=column.number, extra=column.extra) for column in ordered] for row in rows
        ],
        extra=[column.heading for column in ordered if column.extra],
    )


def _of_metrics(table: Table, rows: Sequence[Row]) -> list[Column[Row]]:
    return [
        Column(
            heading=column.heading,
            fill=_filling(column),
            order=column.order,
            title=f"{column.title or metric.title}, {column.unit}",
            extra=column.page == "on request",
        )
        for metric, column in metrics.in_table(table)
        if column.page and columns.is_shown(column, rows)
    ]


def _filling(column: metrics.Column) -> Callable[[Row], Entry]:
    def fill(row: Row) -> Entry:
        number = row.facts.get(column.key)
        return Entry(shown=columns.shown(number, column), value=number)

    return fill
