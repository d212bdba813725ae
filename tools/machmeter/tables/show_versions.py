"""The versions table as text for a terminal."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

from rich.console import Console, Group
from rich.table import Table as RichTable
from rich.text import Text

from machmeter.tables.versions_table import Row, Series, Versions
from machmeter.text import table_width
from machmeter.text.numbers import throughput_digits

# Column title, how a row fills it, and whether the text is aligned right.
_Column = tuple[str, Callable[[Row], str], bool]
_COLUMNS: tuple[_Column, ...] = (
    ("version", lambda row: row.version, False),
    ("released", lambda row: row.released or "–", False),
    ("images/s", lambda row: _speed(row), True),
    ("change", lambda row: "–" if row.change_percent is None else f"{row.change_percent:+.1f} %", True),
    ("p50 ms", lambda row: _number(row.p50_ms, 2), True),
    ("top-1", lambda row: _number(row.top1_agreement, 3), True),
    ("SQNR dB", lambda row: _number(row.sqnr_db, 1), True),
    ("peak MB", lambda row: _number(row.peak_memory_mb, 0), True),
    ("samples", lambda row: "–" if row.samples is None else str(row.samples), True),
)

# What a narrow terminal has no room for, first what is missed least.
_SPARE = ("samples", "peak MB", "SQNR dB", "released")

WIDTH = 100  # characters that the widest row needs


def print_versions(versions: Versions, console: Console, width: int = 0) -> None:
    """Print one table per cell, oldest version first, with the reasons of those without a number beneath it.

    In a terminal of `width` characters the columns that matter least are left out; 0 has room for all.
    """
    columns, left_out = table_width.fit(_COLUMNS, [row for item in versions.series for row in item.rows], width, _SPARE)
    host = versions.host
    processor = f": {host['cpu']['model']}, {host.get('thread_budget')} threads" if host.get("cpu") else ""
    console.print(f"machine {versions.machine}{processor}", highlight=False, soft_wrap=True, markup=False)
    console.print(
        "change: of images/s, against the version above it that has an undisturbed number.",
        highlight=False,
        soft_wrap=True,
    )
    for library, series in groupby(versions.series, key=lambda item: item.library):
        console.print(Text(f"\nversions of {library}", style="bold underline"))
        for item in series:
            console.print(_block(item, columns))
    for note in [*table_width.told(left_out), *versions.notes]:
        console.print(f"note: {note}", style="yellow", highlight=False, soft_wrap=True, markup=False)


def _block(series: Series, columns: list[_Column]) -> Group:
    grid = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for title, _, right in columns:
        grid.add_column(title, justify="right" if right else "left", no_wrap=True)
    for row in series.rows:
        grid.add_row(*(fill(row) for _, fill, _ in columns))
    parts = (series.model, series.backend, series.precision, series.options, f"batch {series.batch}")
    lines: list[Any] = [Text("\n" + " ".join(part for part in parts if part), style="bold"), grid]
    for row in series.rows:
        if row.status != "ok":
            style = "red" if row.status == "failed" else "dim"
            lines.append(Text(f"{row.status:<7} {row.version}: {row.reason}", style=style))
        elif row.reason:
            lines.append(Text(f"note    {row.version}: {row.reason}", style="yellow"))
    lines += [Text(f"note    {note}", style="yellow") for note in series.notes]
    return Group(*lines)


def _speed(row: Row) -> str:
    if row.images_per_second is None:
        return row.status
    return _number(row.images_per_second, throughput_digits(row.images_per_second))


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
