"""What one call of asv found: read from asv's results file and from the evidence right after it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from machmeter.compare.documents import Status
from machmeter.history import environment_changes
from machmeter.machine import host
from machmeter.measure import dead_processes
from machmeter.measure.evidence_shape import Record, Run
from machmeter.pull_request.checkouts import Built, Place
from machmeter.pull_request.plan import TIMING_METRIC, Item, Key
from machmeter.store import asv_files, evidence, values
from machmeter.store.columns import FAILED
from machmeter.store.values import Value
from machmeter.workload import names

Cells = Mapping[str, Mapping[str, Record]]  # the records of a run, by cell and process


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one process found of one metric, or why it found nothing."""

    status: Status
    value: float = 0.0
    samples: int = 1
    disturbed: float | None = None
    reason: str = ""


def counts(place: Place, items: Iterable[Item]) -> dict[Key, int]:
    """Return how many samples asv has of each of `items`: it appends those of the next process to them."""
    measured = _measured(place)
    return {item.key: len(found.samples) if (found := _value(measured, item)) else 0 for item in items}


def outcomes(
    place: Place, items: Iterable[Item], before: Mapping[Key, int], run_name: str, said: str, around: float | None
) -> dict[Key, Outcome]:
    """Return what the last call found of `items`; `said` is why it failed where the evidence does not know.

    `around` is the share of the CPUs that others had during the whole call, for what has no share on record.
    """
    measured, cells = _measured(place), run(place, run_name).cells
    return {
        item.key: _outcome(item, _value(measured, item), cells, before.get(item.key, 0), said, around) for item in items
    }


def openings(place: Place, items: Iterable[Item], run_name: str, around: float | None) -> dict[Key, Outcome]:
    """Return how long the processes that timed `items` took to load and to call for the first time."""
    cells = run(place, run_name).cells
    return {
        (item.cell, name): Outcome(status="ok", value=seconds, disturbed=None if around is None else min(1.0, around))
        for item in items
        if item.metric == TIMING_METRIC
        for name, seconds in _openings(_own(item, cells)).items()
    }


def seconds(place: Place, item: Item) -> float:
    """Return the seconds that asv's last call took for the benchmark of `item`, 0 where it does not tell."""
    found = _value(_measured(place), item)
    return found.ended - found.started if found else 0.0


def _outcome(
    item: Item,
    found: Value | None,
    cells: Cells,
    before: int,
    said: str,
    around: float | None,
) -> Outcome:
    told = evidence.outcome(_records(item, cells), item.metric, found.state if found else FAILED)
    if told.status == "failed":
        return Outcome(status="failed", reason=(told.reason or said or "the process failed and did not say why")[:1000])
    if told.status != "ok" or found is None or found.number is None:  # asv was asked for it, and skipped it
        return Outcome(status="n/a", reason=(told.reason or "the benchmark skips it")[:1000])
    new = found.samples[before:] if len(found.samples) > before else found.samples
    record = _own(item, cells)
    share = record.disturbed_share if record else None
    share = around if share is None else share
    return Outcome(
        status="ok",
        value=statistics.median(new) if new else found.number,
        samples=len(new) or 1,
        disturbed=None if share is None else min(1.0, share),
    )


def _records(item: Item, cells: Cells) -> list[Record]:
    return list(cells.get(names.in_evidence(item.cell, item.metric), {}).values())


def _own(item: Item, cells: Cells) -> Record | None:
    """Return the newest record of the process that measured `item`, None where there is none."""
    own = [record for record in _records(item, cells) if record.benchmark == item.metric]
    return max(own, key=lambda record: record.order, default=None)


def _openings(record: Record | None) -> Mapping[str, float]:
    return (record.opening_seconds if record else None) or {}


def _value(measured: Mapping[str, Sequence[Value]], item: Item) -> Value | None:
    values = measured.get(item.benchmark, ())
    return values[item.place] if item.place < len(values) else None


def _measured(place: Place) -> dict[str, list[Value]]:
    """Return the values in the side's results file by benchmark, in asv's order.

    A file that was cut off while it was written is put aside, where nothing reads it: asv would stop at it.
    """
    found: dict[str, list[Value]] = {}
    for path in _files(place):
        try:
            file = values.parse(path.read_bytes(), place.results, f"{path.parent.name}/{path.name}")
        except asv_files.Unusable:
            path.rename(path.with_name(f"{path.name}.unreadable"))
            continue
        for (benchmark, _), value in file.values.items():
            found.setdefault(benchmark, []).append(value)
        break
    return found


def _files(place: Place) -> list[Path]:
    return sorted(place.results.glob(f"*/{place.commit[:8]}-*.json"))


def environment(place: Place) -> str:
    """Return asv's name for the side's environment, "" where nothing was measured."""
    for path in _files(place):
        return asv_files.look_at(path).environment[:1000]
    return ""


def run(place: Place, run_name: str) -> Run:
    """Return what the evidence has of a run, an empty one where there is none: not every benchmark keeps it."""
    for path in sorted((place.kept / "evidence").glob(f"*/{place.commit[:8]}-*.json")):
        dead_processes.settle_file(path)
        file = evidence.read(path, samples=False)
        if file and run_name in file.runs:
            return file.runs[run_name]
    return Run()


def facts(built: Built, run_name: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the facts of the machine and the installed versions, from the evidence, or as they are seen from here."""
    known = run(built.place, run_name)
    if told := evidence.host(known):
        return environment_changes.recorded(told), dict(known.versions)
    folders = [*(built.place.work / "env").glob("*/lib/python*/site-packages")]
    installed = _installed([*folders, *([built.libraries] if built.libraries else [])])
    return environment_changes.recorded(host.facts()), installed


def _installed(folders: Iterable[Path]) -> dict[str, str]:
    paths = [str(folder) for folder in folders]
    return {
        str(item.metadata["Name"]).lower().replace("_", "-"): item.version
        for item in metadata.distributions(path=paths)
        if item.metadata["Name"]
    }
