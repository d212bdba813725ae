"""The evidence of one side, read fast: a file may hold millions of samples, of which a comparison needs none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from machmeter.measure import evidence_shape, settling
from machmeter.store import evidence

_NULL = "control.Null("

MEDIAN = "time_forward"  # the metric whose processes are on record each


class Record(msgspec.Struct):
    """What one process left on record of one cell; whatever else it left is skipped."""

    status: str = ""
    benchmark: str = ""
    reason: str = ""
    started_at: float = 0.0
    median_seconds: float | None = None
    samples: int | None = None
    disturbed_share: float | None = None
    facts: dict[str, Any] = {}


class Run(msgspec.Struct):
    """One call of asv."""

    started: str = ""
    host: dict[str, Any] = {}
    versions: dict[str, str] = {}
    swept: dict[str, Any] | None = None
    cells: dict[str, dict[str, Record]] = {}


class File(msgspec.Struct):
    """The evidence of one machine, commit and environment."""

    schema: int
    runs: dict[str, Run]
    stack: str | None = None


def read(path: Path) -> File | None:
    """Return the evidence in `path` with dead processes settled, or None where there is none or it is unreadable."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=File)
        running = any(
            record.status == "running"
            for run in found.runs.values()
            for processes in run.cells.values()
            for record in processes.values()
        )
        if running:
            found = msgspec.convert(settling.read(path), File)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None
    return found if found.schema == evidence_shape.SCHEMA else None


def read_at(path: Path) -> File | None:
    """Return the evidence at `path` and in what was pulled of the same beside it; None where nothing can be read.

    Of a run that is in several files the state with most records counts.
    """
    found = [file for file in map(read, evidence.files_at(path)) if file is not None]
    if not found:
        return None
    runs: dict[str, Run] = {}
    for file in found:
        for name, run in file.runs.items():
            if name not in runs or _count(run) > _count(runs[name]):
                runs[name] = run
    return File(schema=found[-1].schema, runs=runs, stack=found[-1].stack)


def _count(run: Run) -> int:
    return sum(map(len, run.cells.values()))


def alike(file: File) -> list[Run]:
    """Return the newest run and those earlier ones that were made under the same conditions, in order of time."""
    runs = sorted(file.runs.values(), key=lambda run: run.started)
    if not runs:
        return []
    return [run for run in runs if _conditions(run) == _conditions(runs[-1])]


def _conditions(run: Run) -> Any:
    return (
        {**run.host, "limits": {**(run.host.get("limits") or {}), "throttled_periods": None}},
        run.versions,
        run.swept,
    )


def name(cell: str, metric: str) -> str:
    """Return under which name the evidence has what asv calls `cell`."""
    if metric.endswith("_offline"):
        return f"offline.{cell.partition('.')[2]}"
    if cell.startswith(_NULL):  # its class is called Null, and its cell by backend and model
        return f"control.null.ResNet50({cell.removeprefix(_NULL)}"
    return cell


def records(runs: list[Run], cell: str) -> list[Record]:
    """Return what is on record of `cell`, in order of time."""
    found = [record for run in runs for record in run.cells.get(name(cell, ""), {}).values()]
    return sorted(found, key=lambda record: record.started_at)


def outcome(told: list[Record], metric: str) -> Record | None:
    """Return the newest record that says why `metric` has no number, None where there is none.

    What is on record of the very metric counts before what is on record of other metrics of the cell.
    """
    own = [record for record in told if record.benchmark == metric] or told
    telling = [record for record in own if record.status in ("failed", "n/a")] or own
    return telling[-1] if telling else None
