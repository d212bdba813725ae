"""The evidence by its one reader: what really ran, typed, and what became of each cell.

`parse` is a function of a file's bytes alone. A process that died left its record "running": only `settled`, which asks
this machine, tells. Samples are read where somebody asks for them: a file may hold millions.
"""

from __future__ import annotations

import dataclasses
import glob
import re
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from machmeter import asv_names
from machmeter.machine import disturbance
from machmeter.machine.host import HostFacts
from machmeter.measure import dead_processes
from machmeter.measure.evidence_shape import SCHEMA, EvidenceFile, Record, Run
from machmeter.store import copies
from machmeter.store.columns import FAILED, OK, SKIPPED

Status = Literal["ok", "failed", "n/a", "running", "interrupted", "not run"]

_PULLED = re.compile(r"\.[0-9a-f]{16}\.json$")  # how the name of a file of the results branch ends
_SAMPLES = ("sample_seconds", "device_sample_seconds", "call_seconds")


# ---------------------------------------------------------------------- one file


def _without(names: Iterable[str], shape: type, **changed: Any) -> type:
    """Return a dataclass like `shape` without the fields `names`, and with others of the types `changed`."""
    types = typing.get_type_hints(shape) | changed
    kept = []
    for item in dataclasses.fields(shape):
        if item.name not in names:
            default = {"default": item.default} if item.default is not dataclasses.MISSING else {}
            if item.default_factory is not dataclasses.MISSING:
                default = {"default_factory": item.default_factory}
            kept.append((item.name, types[item.name], dataclasses.field(**default)))
    return dataclasses.make_dataclass(shape.__name__, kept, kw_only=True)


_LeanRecord = _without(_SAMPLES, Record)
_LeanRun = _without((), Run, cells=dict[str, dict[str, _LeanRecord]])  # type: ignore[valid-type]
_whole = msgspec.json.Decoder(EvidenceFile)
_lean: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_without((), EvidenceFile, runs=dict[str, _LeanRun]))  # type: ignore[valid-type]


def parse(content: bytes, *, samples: bool = True) -> EvidenceFile | None:
    """Return the evidence whose bytes are `content`, None where it is unreadable; without samples where not wanted."""
    try:
        file = _whole.decode(content) if samples else _completed(_lean.decode(content))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return file if file.schema == SCHEMA else None


def _completed(lean: Any) -> EvidenceFile:
    """Return what was decoded without samples in its public shape."""
    runs = {
        name: Run(
            **{
                **vars(run),
                "cells": {
                    cell: {process: Record(**vars(record)) for process, record in processes.items()}
                    for cell, processes in run.cells.items()
                },
            }
        )
        for name, run in lean.runs.items()
    }
    return EvidenceFile(**{**vars(lean), "runs": runs})


def settled(file: EvidenceFile) -> EvidenceFile:
    """Return `file` with every record of a dead process turned into what became of it. It asks this machine."""
    runs = {name: _settled(run) for name, run in file.runs.items()}
    return file if all(runs[name] is run for name, run in file.runs.items()) else replace(file, runs=runs)


def _settled(run: Run) -> Run:
    if not is_running(run):
        return run
    last = max(record.order for processes in run.cells.values() for record in processes.values())
    return replace(
        run,
        cells={
            cell: {process: _ended(record, last) for process, record in processes.items()}
            for cell, processes in run.cells.items()
        },
    )


def _ended(record: Record, last: int) -> Record:
    outcome = dead_processes.death(record, last=last) if record.status == "running" else None
    return replace(record, status=outcome.status, reason=outcome.reason) if outcome else record


def read(path: Path, *, samples: bool = True) -> EvidenceFile | None:
    """Return the evidence in `path` with dead processes settled, or None where there is none or it is unreadable."""
    try:
        file = parse(path.read_bytes(), samples=samples)
        return settled(file) if file else None
    except (OSError, ValueError, KeyError, TypeError):  # a running process that is not described
        return None


# ---------------------------------------------------------------------- several files


def read_folder(results: Path, machine: str) -> list[EvidenceFile]:
    """Return the readable evidence of `machine`, beside asv's folder `results`."""
    return read_all(asv_names.evidence_folder(results) / machine)[0]


def read_all(folder: Path, *, samples: bool = True) -> tuple[list[EvidenceFile], list[str]]:
    """Return the evidence in one machine's `folder`, and a note about each file that had to be left out."""
    found = [(path, read(path, samples=samples)) for path in sorted(folder.glob("*.json"))]
    notes = [f"left out: {path} is unreadable" for path, file in found if file is None]
    return join(file for _, file in found if file is not None), notes


def files_at(path: Path) -> list[Path]:
    """Return the evidence file `path`, where it exists, and those of the same that were pulled beside it."""
    stem = _PULLED.sub("", path.name).removesuffix(".json")
    beside = sorted(path.parent.glob(f"{glob.escape(stem)}.*.json"))
    own = path.with_name(f"{stem}.json")
    return [*([own] if own.is_file() else []), *(item for item in beside if _PULLED.sub("", item.name) == stem)]


def read_at(path: Path, *, samples: bool = True) -> EvidenceFile | None:
    """Return the evidence in the files at `path` as one; None where nothing can be read."""
    found = [file for item in files_at(path) if (file := read(item, samples=samples)) is not None]
    if not found:
        return None
    return replace(found[-1], runs={name: run for file in join(found) for name, run in file.runs.items()})


def runs_at(path: Path) -> dict[str, Run]:
    """Return the runs, by name, in the files at `path`."""
    file = read_at(path)
    return dict(file.runs) if file else {}


def join(files: Iterable[EvidenceFile]) -> list[EvidenceFile]:
    """Return one file for each machine, commit and environment, with the runs of all files of these.

    The results branch has a file for each run, and what was pulled lies beside the file that it came from.
    """
    joined: dict[tuple[str, str, str], tuple[EvidenceFile, dict[str, Run]]] = {}
    for file in files:
        _, runs = joined.setdefault((file.machine, file.commit, file.environment), (file, {}))
        for name, run in file.runs.items():
            runs[name] = max(runs[name], run, key=copies.progress) if name in runs else run
    return [replace(file, runs=runs) for file, runs in joined.values()]


def is_pulled(path: Path) -> bool:
    """Return whether an evidence file came from the results branch: nothing is ever added to it."""
    return _PULLED.search(path.name) is not None


# ---------------------------------------------------------------------- runs and cells


def is_running(run: Run) -> bool:
    """Return whether a process of `run` is at work, as far as is on record."""
    return any(record.status == "running" for processes in run.cells.values() for record in processes.values())


def host(run: Run) -> HostFacts | None:
    """Return what is on record of the machine of `run`, None where nothing is."""
    return None if run.host == HostFacts() else run.host


def alike(file: EvidenceFile) -> list[Run]:
    """Return the newest run and those earlier ones that were made under the same conditions, in order of time."""
    runs = sorted(file.runs.values(), key=lambda run: run.started)
    return [run for run in runs if _conditions(run) == _conditions(runs[-1])]


def _conditions(run: Run) -> Any:
    limits = replace(run.host.limits, throttled_periods=None)
    return replace(run.host, limits=limits), dict(run.versions), run.swept


def records(runs: Iterable[Run], cell: str) -> list[Record]:
    """Return what is on record of the cell called `cell`, in order of time."""
    found = [record for run in runs for record in run.cells.get(cell, {}).values()]
    return sorted(found, key=_when)


def _when(record: Record) -> tuple[float, int]:
    return record.started_at, record.order


def disturbed_cells(runs: Iterable[Run]) -> set[str]:
    """Return the names of the cells (and rungs) in `runs` during which other programs had the CPUs."""
    return {
        name
        for run in runs
        for name, processes in run.cells.items()
        if any(disturbance.note(record.disturbed_share) for record in processes.values())
    }


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a cell, or of one metric of it, and why it has no number."""

    status: Status
    reason: str = ""


# What says nothing where something else was said comes last. A failure and n/a are both the end: the newest counts.
_TELLING: tuple[tuple[str, ...], ...] = (("failed", "n/a"), ("running",), ("ok",), ("interrupted",))


def outcome(records: Iterable[Record], metric: str = "", state: int | None = None) -> Outcome:
    """Return what became of a cell that has `records`: the only place that says so.

    With `metric` (a benchmark's method), of that metric: what is on record of the very metric counts before what is
    on record of others. `state` is what asv has of it (`store.columns`), None where asv has nothing: asv's number is
    one, asv's null is a failure, and what asv skipped is what the evidence says.
    """
    if metric and state == OK:
        return Outcome(status="ok")
    every = sorted(records, key=_when)
    own = [record for record in every if record.benchmark == metric] or every
    by_rank = ([record for record in own if record.status in statuses] for statuses in _TELLING)
    telling = next(filter(None, by_rank), [])
    status: Status = telling[-1].status if telling else "not run"
    reason = (telling[-1].reason or "") if telling and status != "ok" else ""
    if state is None or state == OK:
        return Outcome(status=status, reason=reason)
    if state == SKIPPED:
        return Outcome(status="not run" if status == "ok" else status, reason=reason)
    explained = reason if status in ("failed", "interrupted") else ""
    return Outcome(
        status="failed", reason=explained or ("" if state == FAILED else "asv has no number that could be read")
    )


def by_cell(runs: Iterable[Run]) -> Mapping[str, list[Record]]:
    """Return the records of `runs` by the name of their cell, rung or peak."""
    found: dict[str, list[Record]] = {}
    for run in runs:
        for name, processes in run.cells.items():
            found.setdefault(name, []).extend(processes.values())
    return found
