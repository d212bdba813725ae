"""The versions table as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from rich.console import Console, Group
from rich.text import Text

from machmeter.tables import columns
from machmeter.tables.columns import TextColumn
from machmeter.tables.show_cells import number, speed
from machmeter.tables.versions_table import Row, Series, Versions
from machmeter.text import table_width

_COLUMNS: tuple[TextColumn[Row], ...] = (
    TextColumn(heading="version", fill=lambda row: row.version, order=1, right=False),
    TextColumn(heading="released", fill=lambda row: row.released or "–", order=2, right=False, spare=80),
    TextColumn(heading="images/s", fill=lambda row: _speed(row), order=30),
    TextColumn(
        heading="change",
        fill=lambda row: "–" if row.change_percent is None else f"{row.change_percent:+.1f} %",
        order=50,
    ),
    TextColumn(heading="p50 ms", fill=lambda row: number(row.p50_ms, 2), order=60),
    TextColumn(
        heading="samples", fill=lambda row: "–" if row.samples is None else str(row.samples), order=900, spare=5
    ),
)
_OWN_WIDTH = 76  # characters that the widest row needs for these


def least_width() -> int:
    """Return the characters that the widest row needs."""
    return columns.terminal_width(_OWN_WIDTH, "versions")


def print_versions(versions: Versions, console: Console, width: int = 0) -> None:
    """Print one table per cell, oldest version first, with the reasons of those without a number beneath it.

    In a terminal of `width` characters the columns that matter least are left out; 0 has room for all.
    """
    rows = [row for item in versions.series for row in item.rows]
    chosen, left_out = columns.fit(columns.in_terminal(_COLUMNS, "versions", rows), rows, width)
    host = versions.host
    processor = f": {host.cpu.model}, {host.thread_budget} threads" if host else ""
    console.print(f"machine {versions.machine}{processor}", highlight=False, soft_wrap=True, markup=False)
    console.print(
        "change: of images/s, against the version above it that has an undisturbed number.",
        highlight=False,
        soft_wrap=True,
    )
    for library, series in groupby(versions.series, key=lambda item: item.library):
        console.print(Text(f"\nversions of {library}", style="bold underline"))
        for item in series:
            console.print(_block(item, chosen))
    for note in [*table_width.told(left_out), *versions.notes]:
        console.print(f"note: {note}", style="yellow", highlight=False, soft_wrap=True, markup=False)


def _block(series: Series, chosen: Sequence[TextColumn[Row]]) -> Group:
    parts = (series.model, series.backend, series.precision, series.options, f"batch {series.batch}")
    lines: list[Any] = [
        Text("\n" + " ".join(part for part in parts if part), style="bold"),
        columns.grid(chosen, series.rows),
    ]
    for row in series.rows:
        if row.status != "ok":
            style = "red" if row.status == "failed" else "dim"
            lines.append(Text(f"{row.status:<7} {row.version}: {row.reason}", style=style))
        elif row.reason:
            lines.append(Text(f"note    {row.version}: {row.reason}", style="yellow"))
    lines += [Text(f"note    {note}", style="yellow") for note in series.notes]
    return Group(*lines)


def _speed(row: Row) -> str:
    return row.status if row.images_per_second is None else speed(row.images_per_second)
