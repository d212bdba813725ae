"""The table as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from rich.console import Console, Group
from rich.text import Text

from machmeter.machine.host import HostFacts
from machmeter.tables import columns
from machmeter.tables.cells_table import Row, Table
from machmeter.tables.columns import TextColumn
from machmeter.text import table_width
from machmeter.text.numbers import throughput_digits

_COLUMNS: tuple[TextColumn[Row], ...] = (
    TextColumn(heading="backend", fill=lambda row: row.backend, order=1, right=False),
    TextColumn(heading="precision", fill=lambda row: row.precision, order=2, right=False),
    TextColumn(heading="options", fill=lambda row: row.options, order=3, right=False),
    TextColumn(heading="batch", fill=lambda row: str(row.batch), order=4),
    TextColumn(heading="p50 ms", fill=lambda row: number(row.p50_ms, 2), order=10, spare=70),
    TextColumn(heading="p95 ms", fill=lambda row: number(row.p95_ms, 2), order=20, spare=10),
    TextColumn(heading="images/s", fill=lambda row: speed(row.images_per_second), order=30),
    TextColumn(heading="× eager", fill=lambda row: number(row.times_eager, 2), order=50),
    TextColumn(
        heading="× own fp32",
        fill=lambda row: number(row.times_own_fp32, 2) + (" no gain" if row.no_gain else ""),
        order=60,
        spare=40,
    ),
    TextColumn(heading="% peak", fill=lambda row: number(row.percent_of_peak, 1), order=70, spare=20),
)
_OWN_WIDTH = 109  # characters that the widest row needs for these


def number(value: float | None, digits: int) -> str:
    """Return `value` as it is shown, a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def speed(value: float | None) -> str:
    """Return images per second as they are shown, a dash where there are none."""
    return number(value, throughput_digits(value or 0.0))


def least_width() -> int:
    """Return the characters that the widest row needs."""
    return columns.terminal_width(_OWN_WIDTH, "cells")


def print_table(table: Table, console: Console, width: int = 0) -> None:
    """Print one table per model, then failed and n/a cells with their reasons, then what to know.

    In a terminal of `width` characters the columns that matter least are left out; 0 has room for all.
    """
    measured = [row for row in table.rows if row.status == "ok"]
    every = columns.in_terminal(_COLUMNS, "cells", measured)
    chosen, left_out = columns.fit(every, measured, width)
    for line in [*machine_lines(table.machine, table.host), *_legend(table)]:
        console.print(line, highlight=False, soft_wrap=True)
    for model, rows in groupby(table.rows, key=lambda row: row.model):
        console.print(_model_block(model, list(rows), chosen))
    for note in [*table_width.told(left_out), *table.notes]:
        console.print(f"note: {note}", style="yellow", highlight=False, soft_wrap=True, markup=False)


def _model_block(model: str, rows: list[Row], chosen: Sequence[TextColumn[Row]]) -> Group:
    measured = [row for row in rows if row.status == "ok"]
    grid = columns.grid(chosen, measured)
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
    return f" ({', '.join(columns.in_words(row.facts, 'cells'))})"


def machine_lines(machine: str, host: HostFacts | None) -> list[str]:
    """Return what a reader must know of the machine."""
    if host is None:
        return [f"machine {machine}"]
    quota = f", quota {host.limits.cpu_quota:g} CPUs" if host.limits.cpu_quota else ""
    return [
        f"machine {machine}: {host.cpu.model}, {host.cpu.physical_cores} cores{quota}, "
        f"{host.thread_budget} threads for every backend",
        f"CPU features: {' '.join(host.cpu.features)}",
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
