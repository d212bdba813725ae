"""The table as text for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any

from rich.console import Console, Group
from rich.table import Table as RichTable
from rich.text import Text

from machmeter.tables.cells_table import Row, Table
from machmeter.text import table_width
from machmeter.text.numbers import throughput_digits

_OFFLINE = "offline"  # a column only where it was measured

# Column title, how a row fills it, and whether the text is aligned right.
_Column = tuple[str, Callable[[Row], str], bool]
_COLUMNS: tuple[_Column, ...] = (
    ("backend", lambda row: row.backend, False),
    ("precision", lambda row: row.precision, False),
    ("options", lambda row: row.options, False),
    ("batch", lambda row: str(row.batch), True),
    ("p50 ms", lambda row: number(row.p50_ms, 2), True),
    ("p95 ms", lambda row: number(row.p95_ms, 2), True),
    ("images/s", lambda row: number(row.images_per_second, throughput_digits(row.images_per_second or 0)), True),
    (
        _OFFLINE,
        lambda row: number(row.offline_images_per_second, throughput_digits(row.offline_images_per_second or 0)),
        True,
    ),
    ("× eager", lambda row: number(row.times_eager, 2), True),
    ("× own fp32", lambda row: number(row.times_own_fp32, 2) + (" no gain" if row.no_gain else ""), True),
    ("% peak", lambda row: number(row.percent_of_peak, 1), True),
    ("top-1", lambda row: number(row.top1_agreement, 3), True),
    ("SQNR dB", lambda row: number(row.sqnr_db, 1), True),
    ("peak MB", lambda row: number(row.peak_memory_mb, 0), True),
)
# What a narrow terminal has no room for, first what is missed least. Speed and agreement always stay together.
_SPARE = ("p95 ms", "% peak", "peak MB", "× own fp32", "SQNR dB", _OFFLINE, "p50 ms")

WIDTH = 141  # characters that the widest row needs


def number(value: float | None, digits: int) -> str:
    """Return `value` as it is shown, a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def print_table(table: Table, console: Console, width: int = 0) -> None:
    """Print one table per model, then failed and n/a cells with their reasons, then what to know.

    In a terminal of `width` characters the columns that matter least are left out; 0 has room for all.
    """
    measured = [row for row in table.rows if row.status == "ok"]
    offline = any(row.offline_images_per_second is not None for row in measured)
    shown = [column for column in _COLUMNS if column[0] != _OFFLINE or offline]
    columns, left_out = table_width.fit(shown, measured, width, _SPARE)
    for line in [*machine_lines(table.machine, table.host), *_legend(table)]:
        console.print(line, highlight=False, soft_wrap=True)
    for model, rows in groupby(table.rows, key=lambda row: row.model):
        console.print(_model_block(model, list(rows), columns))
    for note in [*table_width.told(left_out), *table.notes]:
        console.print(f"note: {note}", style="yellow", highlight=False, soft_wrap=True, markup=False)


def _model_block(model: str, rows: list[Row], columns: list[_Column]) -> Group:
    measured = [row for row in rows if row.status == "ok"]
    grid = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for title, _, right in columns:
        grid.add_column(title, justify="right" if right else "left", no_wrap=True)
    for row in measured:
        grid.add_row(*(fill(row) for _, fill, _ in columns))
    parts: list[Any] = [Text(f"\n{model}", style="bold"), grid] if measured else [Text(f"\n{model}", style="bold")]
    for row in rows:
        name = " ".join(part for part in (row.backend, row.precision, row.options, f"batch {row.batch}") if part)
        if row.status != "ok":
            style = "red" if row.status == "failed" else "dim"
            parts.append(Text(f"{row.status:<7} {name}: {row.reason}{_answers(row)}", style=style))
        elif row.reason:
            parts.append(Text(f"note    {name}: {row.reason}", style="yellow"))
    return Group(*parts)


def _answers(row: Row) -> str:
    if row.top1_agreement is None or "agreement" in row.reason:
        return ""
    return f" (top-1 {row.top1_agreement:.3f}, {row.sqnr_db} dB)"


def machine_lines(machine: str, host: Mapping[str, Any]) -> list[str]:
    """Return what a reader must know of the machine."""
    processor = host.get("cpu", {})
    if not processor:
        return [f"machine {machine}"]
    limits = host.get("limits", {})
    quota = f", quota {limits['cpu_quota']:g} CPUs" if limits.get("cpu_quota") else ""
    return [
        f"machine {machine}: {processor['model']}, {processor['physical_cores']} cores{quota}, "
        f"{host.get('thread_budget')} threads for every backend",
        f"CPU features: {' '.join(processor['features'])}",
    ]


def _legend(table: Table) -> tuple[str, ...]:
    return (
        "× eager: images/s over fp32 eager (contiguous) of the same device and batch. "
        "× own fp32: over the same backend in fp32.",
        f"% peak: operations per image × images/s, over the highest rate of this machine: {_peaks(table)}.",
    )


def _peaks(table: Table) -> str:
    """Return the peaks in words, or how to get them."""
    measured = ", ".join(f"{precision} {rate / 1e9:.0f} Gop/s" for precision, rate in table.peaks.items())
    return measured or "not measured yet, run 'machmeter peak'"
