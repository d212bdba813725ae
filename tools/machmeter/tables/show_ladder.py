"""The ladder as text for a terminal."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from machmeter.tables.ladder_table import LadderRow, LadderTable
from machmeter.tables.show_cells import machine_lines, number
from machmeter.text import table_width
from machmeter.text.numbers import throughput_digits

WIDTH = 118  # characters that the widest row needs

_COLUMNS: tuple[tuple[str, Callable[[LadderRow], str], bool], ...] = (
    ("rung", lambda row: row.rung, False),
    ("on", lambda row: row.on or "", False),
    ("runs", lambda row: f"{row.backend} {row.precision}", False),
    ("batch", lambda row: str(row.batch), True),
    ("images/s", lambda row: number(row.images_per_second, throughput_digits(row.images_per_second or 0)), True),
    ("× on", lambda row: number(row.times_below, 2) + (" slower" if row.slower else ""), True),
    ("× first", lambda row: number(row.times_first, 2), True),
    ("p50 ms", lambda row: number(row.p50_ms, 2), True),
    ("top-1", lambda row: number(row.top1_agreement, 3), True),
    ("SQNR dB", lambda row: number(row.sqnr_db, 1), True),
    ("peak MB", lambda row: number(row.peak_memory_mb, 0), True),
)
# What a narrow terminal has no room for, first what is missed least.
_SPARE = ("p50 ms", "peak MB", "SQNR dB", "runs", "batch")


def print_ladder(table: LadderTable, console: Console, width: int = 0) -> None:
    """Print the measured rungs in their order, then the others with their reasons, then what to know.

    In a terminal of `width` characters the columns that matter least are left out; 0 has room for all.
    """
    measured = [row for row in table.rows if row.status == "ok"]
    columns, left_out = table_width.fit(_COLUMNS, measured, width, _SPARE)
    for line in machine_lines(table.machine, table.host):
        console.print(line, highlight=False, soft_wrap=True)
    console.print(
        "× on: images/s over the rung named under 'on'. × first: over the first rung, at its own batch.",
        highlight=False,
        soft_wrap=True,
    )
    grid = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for title, _, right in columns:
        grid.add_column(title, justify="right" if right else "left", no_wrap=True)
    for row in measured:
        grid.add_row(*(fill(row) for _, fill, _ in columns))
    console.print(Text(f"\n{table.model}", style="bold"))
    console.print(grid)
    for row in table.rows:
        if row.status != "ok":
            style = "red" if row.status == "failed" else "dim"
            console.print(Text(f"{row.status:<7} {row.rung}: {row.reason}", style=style), soft_wrap=True)
        elif row.reason:
            console.print(Text(f"note    {row.rung}: {row.reason}", style="yellow"), soft_wrap=True)
    for note in [*table_width.told(left_out), *_proofs(table), *table.notes]:
        console.print(f"note: {note}", style="yellow", highlight=False, soft_wrap=True, markup=False)


def _proofs(table: LadderTable) -> list[str]:
    """Say what a reader could take for granted and should not."""
    notes = []
    measured = [row for row in table.rows if row.status == "ok"]
    stacks = sorted({row.torch for row in measured if row.torch})
    if len(stacks) > 1:
        by = "; ".join(
            f"torch {version}: {', '.join(row.rung for row in measured if row.torch == version)}" for version in stacks
        )
        notes.append(f"the rungs ran on different stacks: {by}")
    unbound = [row.rung for row in measured if (row.launch or {}).get("launcher") == "run_cpu" and not row.memory_bound]
    if unbound:
        notes.append(f"run_cpu bound cores but no memory ({', '.join(unbound)}): numactl is missing or had no effect")
    for row in measured:
        if (row.launch or {}).get("huge_pages"):
            notes.append(f"{row.rung}: {row.huge_pages_mb:.0f} MB were in huge pages")
    return notes
