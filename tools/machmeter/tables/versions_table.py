"""How each cell moved over the versions of a library: what sweeps have left in the evidence of one machine.

All of a row is of one run. A change is a percentage only where both rows had the same artifact, CPU and
threads; where something else differs a note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from machmeter import asv_names, json_shape, metrics
from machmeter.machine.host import HostFacts
from machmeter.measure.evidence_shape import Run
from machmeter.store import evidence, reading_runs
from machmeter.store.runs import FolderOfRuns
from machmeter.tables import columns
from machmeter.tables.attempts import Attempt
from machmeter.tables.cell_found import Status
from machmeter.text.numbers import throughput_digits
from machmeter.text.release_order import in_order
from machmeter.workload import cells, models
from machmeter.workload.cells import Cell

# Artifacts that every version compiles for itself.
_COMPILED = ("aot", "torch-compile-cache")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One version of one cell. Numbers are rounded to what is shown."""

    version: str
    released: str | None
    status: Status
    reason: str = ""
    images_per_second: float | None = None
    change_percent: float | None = None  # of images/s, against the version before that has an undisturbed number
    against: str | None = None
    p50_ms: float | None = None
    facts: columns.Facts = field(default_factory=dict)  # what `metrics.py` has a column for
    samples: int | None = None
    artifact: str | None = None  # the digest's first digits
    commit: str = ""

    def as_json(self) -> dict[str, object]:
        """Return the row as plain data."""
        return columns.flat(self, "versions")


@dataclass(frozen=True, kw_only=True)
class Series:
    """One cell over the versions of a library, oldest first, and what a reader must know beside it."""

    library: str
    model: str
    backend: str
    precision: str
    options: str
    batch: int
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """Return the series as plain data."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**plain, "rows": [row.as_json() for row in self.rows]}


@dataclass(frozen=True, kw_only=True)
class Versions:
    """All series of one machine."""

    machine: str
    host: HostFacts | None  # as the newest run found it
    series: tuple[Series, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """Return the table as plain data."""
        return {
            "machine": self.machine,
            "host": json_shape.encode(self.host) if self.host else {},
            "series": [item.as_json() for item in self.series],
            "notes": list(self.notes),
        }


def build(
    results: Path,
    machine: str,
    libraries: Iterable[str] = (),
    wanted: Iterable[str] = (),
    evidence_folder: Path | None = None,
) -> Versions:
    """Return what was swept on `machine` of `libraries` and of the models `wanted` (all where none is named).

    The evidence is looked for beside `results` where `evidence_folder` does not say otherwise.
    """
    folder = (evidence_folder or asv_names.evidence_folder(results)) / machine
    return build_from(reading_runs.read_folder(folder), machine, libraries, wanted)


def build_from(read: FolderOfRuns, machine: str, libraries: Iterable[str] = (), wanted: Iterable[str] = ()) -> Versions:
    """Return what was swept on `machine`, of which the evidence was `read`, of `libraries` and the models `wanted`."""
    attempts: dict[tuple[str, str], dict[str, list[Attempt]]] = {}
    newest = Run()
    names, chosen = set(libraries), set(wanted)
    for place, run in read.runs:
        told = run.about.swept if run.glance.swept else None
        if not told or (names and told.library not in names):
            continue
        if run.glance.started >= newest.started:
            newest = run.about
        for key, processes in run.cells.items():
            cell = cells.parse(key)
            if cell is None or (chosen and cell.model not in chosen):
                continue
            attempt = Attempt(
                version=told.version,
                released=told.released,
                commit=place.commit,
                run=run.about,
                records=tuple(processes.values()),
            )
            attempts.setdefault((told.library, key), {}).setdefault(attempt.version, []).append(attempt)
    notes = read.notes()
    if newest.uncommitted_changes:
        notes.append("the newest run measured a working tree with uncommitted changes")
    series = [
        _series(library, key, [_decisive(tried) for tried in by_version.values()])
        for (library, key), by_version in attempts.items()
    ]
    return Versions(
        machine=machine, host=evidence.host(newest), series=tuple(sorted(series, key=_rank)), notes=tuple(notes)
    )


def _decisive(tried: list[Attempt]) -> Attempt:
    """Return the newest attempt that says something, of those known to be undisturbed where there are any."""
    return max(tried, key=lambda attempt: (attempt.telling, attempt.quiet, attempt.when))


def _series(library: str, key: str, attempts: list[Attempt]) -> Series:
    cell = cells.parse(key)
    assert cell is not None
    ordered = in_order(attempts)
    rows: list[Row] = []
    before: Attempt | None = None
    for attempt in ordered:
        rows.append(_row(cell, attempt, before))
        if attempt.seconds() is not None and not attempt.disturbed():
            before = attempt
    return Series(
        library=library,
        model=cell.model,
        backend=cell.backend,
        precision=cell.precision,
        options=", ".join(cell.options.values()),
        batch=cell.batch,
        rows=tuple(rows),
        notes=tuple(_notes([attempt for attempt in ordered if attempt.seconds() is not None])),
    )


def _row(cell: Cell, attempt: Attempt, before: Attempt | None) -> Row:
    status, reason = attempt.outcome()
    seconds = attempt.seconds()
    comparable = (
        seconds is not None
        and before is not None
        and not attempt.disturbed()
        and _conditions(attempt) == _conditions(before)
    )
    earlier = before.seconds() if before and comparable else None
    speed = metrics.images_per_second(seconds, cell.batch) if seconds else None
    digest = attempt.digest
    return Row(
        version=attempt.version,
        released=attempt.released,
        status=status,
        reason=reason or attempt.disturbed() or "",
        images_per_second=_rounded(speed, throughput_digits(speed or 0.0)),
        change_percent=_rounded(100.0 * (earlier / seconds - 1.0), 1) if earlier and seconds else None,
        against=before.version if before and earlier else None,
        p50_ms=_rounded(1e3 * seconds, 2) if seconds else None,
        facts=columns.facts("versions", attempt.measured),
        samples=attempt.samples(),
        artifact=digest[:12] if digest else None,
        commit=attempt.commit[:8],
    )


def _conditions(attempt: Attempt) -> tuple[Any, ...]:
    """Return what must be equal for a percentage between two rows."""
    same = None if attempt.artifact.kind in _COMPILED else attempt.digest
    return same, *(look(attempt) for look in (_cpu, _threads))


def _cpu(attempt: Attempt) -> Any:
    return attempt.run.host.cpu.model or None


def _threads(attempt: Attempt) -> Any:
    return attempt.first(lambda record: record.effective.threads if record.effective else None)


# What may differ between runs, how it is called, and where it is found.
_FACTS: tuple[tuple[str, Callable[[Attempt], Any]], ...] = (
    ("CPU", _cpu),
    ("threads", _threads),
    ("CPU quota", lambda attempt: attempt.run.host.limits.cpu_quota),
    ("kernel", lambda attempt: attempt.run.host.kernel or None),
    ("frequency governor", lambda attempt: attempt.run.host.governor),
    ("huge pages", lambda attempt: attempt.run.host.transparent_huge_pages),
    ("allocator", lambda attempt: attempt.first(lambda record: record.allocator)),
    ("NumPy", lambda attempt: attempt.run.versions.get("numpy")),
    ("commit", lambda attempt: attempt.commit[:8]),
)


def _notes(measured: list[Attempt]) -> list[str]:
    """Return what differs between the rows beside the version."""
    notes = []
    digests = _groups(measured, lambda attempt: (attempt.digest or "")[:12] or None)
    if any(attempt.artifact.kind in _COMPILED for attempt in measured):
        notes.append("each version compiled its own artifact")
    elif len(digests) > 1:
        notes.append(f"the artifact differs, so there is no change between them: {_listed(digests)}")
    for name, look in _FACTS:
        if len(found := _groups(measured, look)) > 1:
            notes.append(f"{name} differs: {_listed(found)}")
    return notes


def _groups(measured: list[Attempt], look: Callable[[Attempt], Any]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for attempt in measured:
        value = look(attempt)
        groups.setdefault("unknown" if value is None else str(value).strip(), []).append(attempt.version)
    return groups


def _listed(groups: Mapping[str, list[str]]) -> str:
    return "; ".join(f"{value} ({', '.join(versions)})" for value, versions in groups.items())


def _rounded(number: Any, digits: int) -> float | None:
    return None if number is None else round(float(number), digits)


def _rank(series: Series) -> tuple[Any, ...]:
    names = [model.name for model in models.MODELS]
    position = names.index(series.model) if series.model in names else len(names)
    return series.library, position, series.backend, series.precision, series.options, series.batch
