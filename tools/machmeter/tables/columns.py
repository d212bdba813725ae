"""The columns of tables: those of a table's own beside those that `metrics.py` declares, in one order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

from rich.table import Table as RichTable

from machmeter import metrics
from machmeter.metrics import Column, Metric, Table
from machmeter.text import table_width
from machmeter.text.numbers import throughput_digits

Facts = Mapping[str, float | None]  # what was measured once, by the key of its column, rounded to what is shown


class HasFacts(Protocol):
    """A row of a table."""

    @property
    def facts(self) -> Facts:
        """Return the numbers of the metrics that the table shows."""
        ...


Row = TypeVar("Row", bound=HasFacts)


@dataclass(frozen=True, kw_only=True)
class TextColumn(Generic[Row]):
    """A column in the terminal."""

    heading: str
    fill: Callable[[Row], str]
    order: int
    right: bool = True
    spare: int | None = None  # a narrow terminal leaves out the smallest first; None: it never does


def facts(table: Table, look: Callable[[Metric], float | None], *, whole: bool = False) -> dict[str, float | None]:
    """Return the facts of a row of `table`: what `look` finds of each of its metrics, None for nothing.

    Where `whole`, numbers without digits behind the point are integers.
    """
    found = {column.key: (rounded(look(metric), column), column) for metric, column in metrics.in_table(table)}
    return {
        key: int(number) if whole and column.digits == 0 and number is not None else number
        for key, (number, column) in found.items()
    }


def rounded(value: float | None, column: Column) -> float | None:
    """Return a value of the metric as its column shows it: in the column's unit, with its digits."""
    if value is None:
        return None
    number = float(value) / column.one
    return round(number, _digits(number, column))


def shown(number: float | None, column: Column) -> str:
    """Return a rounded number as text, a dash where there is none."""
    return "–" if number is None else f"{number:.{_digits(number, column)}f}"


def _digits(number: float, column: Column) -> int:
    return throughput_digits(number) if column.digits is None else column.digits


def in_words(found: Facts, table: Table) -> list[str]:
    """Return the numbers that sentences name, such as "top-1 0.984" and "SQNR 18.0 dB"."""
    return [
        column.words.format(number)
        for _, column in metrics.in_table(table)
        if column.words and (number := found.get(column.key)) is not None
    ]


def flat(row: Any, table: Table, before: Mapping[str, int] = MappingProxyType({})) -> dict[str, object]:
    """Return a row (a dataclass) as plain data, the facts among the other fields.

    Those of a lower order stand before the field that `before` names with it, the rest at the place of `facts`.
    """
    pending = list(metrics.in_table(table))
    plain: dict[str, object] = {}

    def take(below: float) -> None:
        while pending and pending[0][1].order < below:
            key = pending.pop(0)[1].key
            plain[key] = row.facts.get(key)

    for field in fields(row):
        take(before.get(field.name, 0))
        if field.name == "facts":
            take(float("inf"))
        else:
            plain[field.name] = getattr(row, field.name)
    return plain


def in_terminal(own: Iterable[TextColumn[Row]], table: Table, rows: Sequence[Row]) -> list[TextColumn[Row]]:
    """Return the columns of `table` in the terminal: its `own`, and those of the metrics."""
    found = list(own)
    for _, column in metrics.in_table(table):
        if column.terminal and is_shown(column, rows):
            found.append(
                TextColumn(heading=column.heading, fill=_filling(column), order=column.order, spare=column.spare)
            )
    return sorted(found, key=lambda column: column.order)


def is_shown(column: Column, rows: Sequence[HasFacts]) -> bool:
    """Return whether a table of `rows` has the column: some are only where there is a number."""
    return not column.only_where_measured or any(row.facts.get(column.key) is not None for row in rows)


def terminal_width(own: int, table: Table) -> int:
    """Return the characters that the widest row needs: `own` for the table's own columns, and those of the metrics."""
    return own + sum(1 + max(len(column.heading), 7) for _, column in metrics.in_table(table) if column.terminal)


def _filling(column: Column) -> Callable[[Row], str]:
    return lambda row: shown(row.facts.get(column.key), column)


def fit(columns: Sequence[TextColumn[Row]], rows: Sequence[Row], width: int) -> tuple[list[TextColumn[Row]], list[str]]:
    """Return those of `columns` that fit into `width` characters (0 has room for all), and the headings of the others.

    What is missed least is left out first.
    """
    ranked = sorted((column for column in columns if column.spare is not None), key=lambda column: column.spare or 0)
    shown_ones, left_out = table_width.fit(
        [(column.heading, column.fill, column.right) for column in columns],
        rows,
        width,
        [column.heading for column in ranked],
    )
    kept = {heading for heading, _, _ in shown_ones}
    return [column for column in columns if column.heading in kept], left_out


def grid(columns: Sequence[TextColumn[Row]], rows: Iterable[Row]) -> RichTable:
    """Return rows as a table for the terminal."""
    found = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for column in columns:
        found.add_column(column.heading, justify="right" if column.right else "left", no_wrap=True)
    for row in rows:
        found.add_row(*(column.fill(row) for column in columns))
    return found
