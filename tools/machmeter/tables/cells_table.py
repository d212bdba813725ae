"""The table of one machine: every cell that was tried, with its newest numbers or the reason it has none.

All numbers of a row are of one commit and environment (`cells_found` says which); ratios may be to a cell that was
last measured at another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from machmeter import asv_names, json_shape
from machmeter.machine.host import HostFacts
from machmeter.store import evidence
from machmeter.store import found as store
from machmeter.tables import cell_found, cells_found, columns, peaks
from machmeter.tables.cell_found import Found, Status
from machmeter.text.numbers import throughput_digits
from machmeter.workload import cells, models
from machmeter.workload.cells import Cell

_JSON_BEFORE = {"times_eager": 50, "device_p50_ms": 120}  # facts of a lower order than this stand before the field
BASELINE = {
    "backend": "eager",
    "precision": "fp32",
    "options": "contiguous",
}  # what every configuration of the same device is a multiple of


@dataclass(frozen=True, kw_only=True)
class Row:
    """One cell. Numbers are rounded to what is shown, so that every output has the same digits."""

    model: str
    backend: str
    precision: str
    options: str
    batch: int
    status: Status
    reason: str = ""
    p50_ms: float | None = None
    p95_ms: float | None = None
    images_per_second: float | None = None
    times_eager: float | None = None  # throughput over that of the fp32 eager baseline at the same batch
    times_own_fp32: float | None = None  # over the same backend, options and batch in fp32
    no_gain: bool = False  # a lower precision that is not faster than the same backend's fp32
    percent_of_peak: float | None = None  # arithmetic rate over this machine's peak for the precision
    device_p50_ms: float | None = None  # of a call by the GPU's own clock
    facts: columns.Facts = field(default_factory=dict)  # what `metrics.py` has a column for
    samples: int | None = None
    threads: int | None = None
    artifact: str = ""  # kind and key under which the store keeps what was measured
    commit: str = ""
    environment: str = ""
    stack: str = ""  # as the evidence names it, "" where there is none

    @property
    def top1_agreement(self) -> float | None:
        """Return the share of images with the first class of fp32: what decides whether answers count as the same."""
        return self.facts.get("top1_agreement")

    def as_json(self) -> dict[str, object]:
        """Return the row as plain data."""
        return columns.flat(self, "cells", _JSON_BEFORE)


@dataclass(frozen=True, kw_only=True)
class Table:
    """The rows of one machine, best first within each model, and what a reader must know beside them."""

    machine: str
    host: HostFacts | None
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    peaks: Mapping[str, float] = field(default_factory=dict)  # operations per second, by precision

    def as_json(self) -> dict[str, object]:
        """Return the table as plain data."""
        return {
            "machine": self.machine,
            "host": json_shape.encode(self.host) if self.host else {},
            "peaks": dict(self.peaks),
            "rows": [row.as_json() for row in self.rows],
            "notes": list(self.notes),
        }


def build(results: Path, machine: str, wanted: Iterable[str] = (), evidence_folder: Path | None = None) -> Table:
    """Return the table of `machine` for the models `wanted` (all where none is named).

    The evidence is looked for beside `results` where `evidence_folder` does not say otherwise.
    """
    folder = evidence_folder or asv_names.evidence_folder(results)
    return build_from(store.of_machine(results, machine, folder), wanted)


def build_from(read: store.Found, wanted: Iterable[str] = ()) -> Table:
    """Return the table of the machine of which everything was `read`, for the models `wanted` (all where none is)."""
    found = cells_found.find(read)
    models_wanted = set(wanted)
    chosen = [item for item in found.cells if not models_wanted or item.cell.model in models_wanted]
    speeds = _speeds(chosen)
    highest = peaks.newest(read.of_benchmarks(peaks.BENCHMARKS))
    rows = [_row(item, speeds, highest) for item in chosen]
    return Table(
        machine=read.machine,
        host=evidence.host(found.run),
        rows=tuple(sorted(rows, key=_rank)),
        notes=(*found.notes, *(f"left out: {what}" for what in read.left_out())),
        peaks={precision: highest[precision] for precision in peaks.PRECISIONS if precision in highest},
    )


def _speeds(items: Iterable[Found]) -> dict[tuple[str, ...], float]:
    """Return the images/s of every cell that can be compared, by what tells it from others.

    A number that other programs disturbed proves no gain, neither of it nor over it.
    """
    speeds = {}
    for item in items:
        speed = cell_found.images_per_second(item)
        if speed and not item.disturbed:
            speeds[_coordinates(item.cell)] = speed
    return speeds


def _coordinates(cell: Cell, **other: str) -> tuple[str, ...]:
    found = {"backend": cell.runtime, "precision": cell.precision, "options": ", ".join(cell.options.values())}
    return (cell.model, str(cell.batch), *(found | other).values())


def _row(item: Found, speeds: Mapping[tuple[str, ...], float], highest: Mapping[str, float]) -> Row:
    """Return the row of a cell, with its ratios to cells of the same model and batch and no others.

    `highest` is this machine's peak by precision, in operations per second.
    """
    cell = item.cell
    found, record = item.speed, item.record
    seconds = found.seconds
    speed = cell_found.images_per_second(item)
    comparable = speeds.get(_coordinates(cell))
    baseline = BASELINE | {"backend": cells.runtime(cell.device, BASELINE["backend"])}
    eager = speeds.get(_coordinates(cell, **baseline))
    own = speeds.get(_coordinates(cell, precision="fp32")) if cell.precision != "fp32" else None
    times_own = comparable / own if comparable and own else None
    on_device = record.device.peak_rate if record.device else None
    bound = highest.get(peaks.kind(cell.precision)) if cell.device == "cpu" else on_device
    share = peaks.share(record.operations_per_image, speed, bound)
    return Row(
        model=cell.model,
        backend=cell.runtime,
        precision=cell.precision,
        options=", ".join(cell.options.values()),
        batch=cell.batch,
        status=found.status,
        reason=found.reason,
        p50_ms=_rounded(_milliseconds(seconds), 2),
        p95_ms=_rounded(_milliseconds(found.tail), 2),
        images_per_second=_rounded(speed, throughput_digits(speed)) if speed else None,
        times_eager=_rounded(comparable / eager if comparable and eager else None, 2),
        times_own_fp32=_rounded(times_own, 2),
        no_gain=times_own is not None and times_own < 1.0,
        percent_of_peak=_rounded(None if share is None else 100.0 * share, 1),
        samples=found.samples or None,
        threads=record.threads,
        artifact=f"{record.artifact.kind}/{record.artifact.key}".strip("/") if record.artifact else "",
        commit=item.commit[:8],
        environment=item.environment,
        stack=item.stack,
        device_p50_ms=_rounded(_milliseconds(record.device_median_seconds), 3),
        facts=columns.facts("cells", item.fact),
    )


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds


def _rounded(number: float | None, digits: int) -> float | None:
    return None if number is None else round(number, digits)


def _rank(row: Row) -> tuple[Any, ...]:
    order = {"ok": 0, "running": 1, "failed": 2, "n/a": 3, "not run": 4}
    names = [model.name for model in models.MODELS]
    return (
        names.index(row.model) if row.model in names else len(names),
        row.model,
        order[row.status],
        -(row.images_per_second or 0.0),
        row.backend,
        row.precision,
        row.options,
        row.batch,
    )
