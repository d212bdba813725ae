"""A candidate: one measured configuration, whatever it was measured by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from machmeter import metrics
from machmeter.errors import NoResults, NothingSelected
from machmeter.metrics import Table
from machmeter.tables.cells_table import Row
from machmeter.tables.cells_table import Table as CellsTable
from machmeter.tables.columns import Facts
from machmeter.tables.ladder_table import LadderRow, LadderTable

TABLE: Table = "ladder"  # a candidate has the facts that rungs have as well as cells


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One configuration with its numbers, rounded as the table shows them."""

    name: str  # such as "openvino int8 batch 8"
    model: str
    backend: str
    precision: str
    options: tuple[str, ...]  # values, in the order of the backend's options
    batch: int
    images_per_second: float
    p50_ms: float
    p95_ms: float | None = None  # None where there are too few samples
    facts: Facts = field(default_factory=dict)  # what `metrics.py` has a column for
    commit: str = ""
    threads: int | None = None
    artifact: str = ""  # kind and key in the store
    launch: str = ""  # the shell command that starts program.py, where it is more than `python program.py`

    @property
    def top1_agreement(self) -> float | None:
        """Return the share of images with the first class of fp32."""
        return self.facts.get("top1_agreement")

    @property
    def latency_ms(self) -> float:
        """Return what a limit on latency is applied to: p95 where there is one, else p50."""
        return self.p50_ms if self.p95_ms is None else self.p95_ms

    @property
    def latency_is(self) -> str:
        """Return which of the two it is."""
        return "p50" if self.p95_ms is None else "p95"


def measured(table: CellsTable, ladder: LadderTable) -> list[Candidate]:
    """Return the configurations of the ladder's model that were measured, as cells and as rungs.

    Raises NoResults where there are none.
    """
    model = ladder.model
    found = [candidate for row in table.rows if row.model == model and (candidate := _from_row(row))]
    found += [candidate for rung in ladder.rows if (candidate := _from_rung(model, rung))]
    if not found:
        raise NoResults(
            f"no configuration of {model} was measured on {table.machine} yet: run 'machmeter bench --model {model}'"
        )
    return found


def _from_rung(model: str, row: LadderRow) -> Candidate | None:
    return _candidate(
        row,
        name=f"rung {row.rung} ({row.backend} {row.precision}) batch {row.batch}",
        model=model,
        precision=row.requested,
        options=row.options,
        batch=row.batch or 1,
        launch=row.command,
    )


def _from_row(row: Row) -> Candidate | None:
    return _candidate(
        row,
        name=" ".join(part for part in (row.backend, row.precision, row.options, f"batch {row.batch}") if part),
        model=row.model,
        precision=row.precision,
        options=tuple(row.options.split(", ")) if row.options else (),
        batch=row.batch,
    )


def _candidate(row: Row | LadderRow, **named: Any) -> Candidate | None:
    """Return the candidate with the numbers of `row`, or None where it has none."""
    if row.status != "ok" or row.images_per_second is None or row.p50_ms is None:
        return None
    return Candidate(
        **named,
        backend=row.backend,
        images_per_second=row.images_per_second,
        p50_ms=row.p50_ms,
        p95_ms=row.p95_ms,
        facts={column.key: row.facts.get(column.key) for _, column in metrics.in_table(TABLE)},
        commit=row.commit,
        threads=row.threads,
        artifact=row.artifact,
    )


def at_batch(candidates: Iterable[Candidate], batch: int | None) -> list[Candidate]:
    """Return the candidates of `batch`, all where it is None. Raises NothingSelected where there are none."""
    known = list(candidates)
    chosen = [candidate for candidate in known if batch in (None, candidate.batch)]
    if not chosen:
        measured = ", ".join(str(number) for number in sorted({candidate.batch for candidate in known}))
        raise NothingSelected(f"nothing was measured at batch {batch}: measured batches are {measured}")
    return chosen
