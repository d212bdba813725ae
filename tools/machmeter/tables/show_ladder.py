"""The ladder as text for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from machmeter.tables import columns
from machmeter.tables.columns import TextColumn
from machmeter.tables.ladder_table import LadderRow, LadderTable
from machmeter.tables.show_cells import machine_lines, number, speed
from machmeter.text import table_width

_COLUMNS: tuple[TextColumn[LadderRow], ...] = (
    TextColumn(heading="rung", fill=lambda row: row.rung, order=1, right=False),
    TextColumn(heading="on", fill=lambda row: row.on or "", order=2, right=False),
    TextColumn(heading="runs", fill=lambda row: f"{row.backend} {row.precision}", order=3, right=False, spare=80),
    TextColumn(heading="batch", fill=lambda row: str(row.batch), order=4, spare=90),
    TextColumn(heading="images/s", fill=lambda row: speed(row.images_per_second), order=30),
    TextColumn(
        heading="× on",
        fill=lambda row: number(row.times_below, 2) + (" slower" if row.slower else ""),
        order=50,
    ),
    TextColumn(heading="× first", fill=lambda row: number(row.times_first, 2), order=55),
    TextColumn(heading="p50 ms", fill=lambda row: number(row.p50_ms, 2), order=60, spare=25),
)
_OWN_WIDTH = 94  # characters that the widest row needs for these


def least_width() -> int:
    """Return the characters that the widest row needs."""
    return columns.terminal_width(_OWN_WIDTH, "ladder")


def print_ladder(table: LadderTable, console: Console, width: int = 0) -> None:
    """Print the measured rungs in their order, then the others with their reasons, then what to know.

    In a terminal of `width` characters the columns that matter least are left out; 0 has room for all.
    """
    measured = [row for row in table.rows if row.status == "ok"]
    every = columns.in_terminal(_COLUMNS, "ladder", measured)
    chosen, left_out = columns.fit(every, measured, width)
    for line in machine_lines(table.machine, table.host):
        console.print(line, highlight=False, soft_wrap=True)
    console.print(
        "× on: images/s over the rung named under 'on'. × first: over the first rung, at its own batch.",
        highlight=False,
        soft_wrap=True,
    )
    console.print(Text(f"\n{table.model}", style="bold"))
    console.print(columns.grid(chosen, measured))
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
