"""The runs of the evidence, read once: what each is at a glance, and its records when somebody asks for them.

A file holds thousands of samples, of which a table shows two numbers: they are put in the samples' place when the file
is read, and what is left is kept between builds (`reading_runs`). The records of a cell are decoded only where they are
shown or judged: of a store of years that is the newest few.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from machmeter.measure import evidence_shape as shape
from machmeter.measure.evidence_shape import EvidenceFile, Record, Summary
from machmeter.store import copies, evidence
from machmeter.store.asv_rows import tail

# Fields of a record that hold a number for every call, and what stands in their place.
_CALLS = {"sample_seconds": "sample_summary", "call_seconds": "call_summary"}
_DROPPED = (*_CALLS, "device_sample_seconds", "device_states", "rates")
SAYS_NOTHING = ("n/a", "interrupted")  # of how fast a cell is


class Trouble(msgspec.Struct, array_like=True, frozen=True):
    """One record of a cell that not all processes ended well: enough to say why there is no number."""

    benchmark: str
    status: shape.Status
    reason: str | None
    started_at: float
    order: int

    def record(self) -> Record:
        """Return as much of the record as says what became of the cell."""
        return Record(
            benchmark=self.benchmark,
            status=self.status,
            reason=self.reason,
            started_at=self.started_at,
            order=self.order,
        )


class Glance(msgspec.Struct, array_like=True, frozen=True):
    """What a run is without decoding its records. `about` and `records` are MessagePack of their own."""

    name: str
    started: str
    swept: bool
    latest: float  # when the newest of its records was begun, seconds since 1970
    count: int  # of its records
    ended: int  # how many of them are not running
    cells: tuple[str, ...]
    trouble: dict[str, tuple[Trouble, ...]]  # by cell, where any record is not "ok"
    about: msgspec.Raw
    records: tuple[int, int]  # where they begin and end in the bytes beside


class GlancedFile(msgspec.Struct, array_like=True, frozen=True):
    """One file of evidence at a glance."""

    machine: str
    commit: str
    environment: str
    stack: str | None
    runs: tuple[Glance, ...]


_about = msgspec.msgpack.Decoder(shape.Run)
_records = msgspec.msgpack.Decoder(dict[str, dict[str, Record]])


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One call of asv, or of the ladder."""

    glance: Glance
    records: memoryview

    @cached_property
    def about(self) -> shape.Run:
        """Return everything that the run says but its cells: host, versions, ..."""
        return _about.decode(self.glance.about)

    @cached_property
    def cells(self) -> Mapping[str, Mapping[str, Record]]:
        """Return its records, by cell and process, summaries in the place of samples."""
        return _records.decode(self.records)


@dataclass(frozen=True, kw_only=True)
class Place:
    """The evidence of one machine, commit and environment, from however many files."""

    machine: str
    commit: str
    environment: str
    stack: str | None
    runs: tuple[Run, ...]


@dataclass(frozen=True, kw_only=True)
class FolderOfRuns:
    """The evidence of one machine, and the files of it that cannot be read."""

    places: tuple[Place, ...] = ()
    unreadable: tuple[Path, ...] = ()

    @property
    def runs(self) -> Iterator[tuple[Place, Run]]:
        """Yield every run, with its place."""
        return ((place, run) for place in self.places for run in place.runs)

    def notes(self) -> list[str]:
        """Return a note about each file that had to be left out."""
        return [f"left out: {path} is unreadable" for path in self.unreadable]


def glance(file: EvidenceFile) -> tuple[bytes, bytes]:
    """Return `file` at a glance, and its records beside it."""
    blob = bytearray()
    glances = []
    for name, run in file.runs.items():
        records = [record for processes in run.cells.values() for record in processes.values()]
        begin = len(blob)
        blob += msgspec.msgpack.encode(
            {
                cell: {process: _kept(record) for process, record in processes.items()}
                for cell, processes in run.cells.items()
            }
        )
        count, ended = copies.progress(run)
        glances.append(
            Glance(
                name=name,
                started=run.started,
                swept=run.swept is not None,
                latest=max((record.started_at for record in records), default=0.0),
                count=count,
                ended=ended,
                cells=tuple(run.cells),
                trouble={
                    cell: tuple(map(trouble, processes.values()))
                    for cell, processes in run.cells.items()
                    if any(record.status != "ok" for record in processes.values())
                },
                about=msgspec.Raw(msgspec.msgpack.encode(_written(run, ("cells",)))),
                records=(begin, len(blob)),
            )
        )
    told = GlancedFile(
        machine=file.machine,
        commit=file.commit,
        environment=file.environment,
        stack=file.stack,
        runs=tuple(glances),
    )
    return msgspec.msgpack.encode(told), bytes(blob)


def trouble(record: Record) -> Trouble:
    """Return what `record` says of what became of its cell."""
    return Trouble(
        benchmark=record.benchmark,
        status=record.status,
        reason=record.reason,
        started_at=record.started_at,
        order=record.order,
    )


def _kept(record: Record) -> dict[str, Any]:
    kept = _written(record, _DROPPED)
    for calls, summary in _CALLS.items():
        if found := getattr(record, calls):
            count, slow = tail(list(found))
            kept[summary] = Summary(count=count, tail_seconds=None if math.isnan(slow) else slow)
    return kept


def _written(what: Any, without: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a dataclass that are not None: a default of None need not be kept."""
    return {name: value for name, value in vars(what).items() if value is not None and name not in without}


def parse(content: bytes) -> tuple[bytes, bytes, bool] | None:
    """Return what `glance` does of a file, and whether it will read the same next time; None where it is unreadable.

    What is running now is judged by who is alive: the next reader may find otherwise.
    """
    try:
        file = evidence.parse(content)
        if file is None:
            return None
        settled = evidence.settled(file)
        return *glance(settled), not any(map(evidence.is_running, file.runs.values()))
    except (ValueError, KeyError, TypeError):  # a running process that is not described
        return None


def opened(glanced: bytes, blob: memoryview) -> Place:
    """Return the evidence of one file from what `glance` made of it."""
    file = msgspec.msgpack.decode(glanced, type=GlancedFile)
    return Place(
        machine=file.machine,
        commit=file.commit,
        environment=file.environment,
        stack=file.stack,
        runs=tuple(Run(glance=run, records=blob[slice(*run.records)]) for run in file.runs),
    )


def joined(places: Iterable[Place]) -> tuple[Place, ...]:
    """Return one place for each machine, commit and environment, with the runs of all files of these.

    Of a run that is in several files, as the results branch has them beside the file that they came from, the state
    counts that has more records, or more of them at their end.
    """
    found: dict[tuple[str, str, str], Place] = {}
    runs: dict[tuple[str, str, str], dict[str, Run]] = {}
    for place in places:
        where = (place.machine, place.commit, place.environment)
        found.setdefault(where, place)
        known = runs.setdefault(where, {})
        for run in place.runs:
            name = run.glance.name
            known[name] = max(known[name], run, key=_progress) if name in known else run
    return tuple(replace(place, runs=tuple(runs[where].values())) for where, place in found.items())


def _progress(run: Run) -> tuple[int, int]:
    return run.glance.count, run.glance.ended
