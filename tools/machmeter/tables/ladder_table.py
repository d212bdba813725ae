"""The tuning ladder of one model on one machine: every rung with its newest number, or the reason it has none.

asv's files hold the same samples; what a ladder shows beside them (fidelity, precision, memory, proof of how
the processes were started) is in the evidence, so that is what is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from machmeter import asv_names, json_shape
from machmeter.machine import disturbance
from machmeter.machine.host import HostFacts
from machmeter.measure.evidence_shape import Record, Run
from machmeter.metrics import Metric
from machmeter.store import evidence, reading_runs
from machmeter.store.runs import FolderOfRuns
from machmeter.tables import columns
from machmeter.tables.cell_found import Status
from machmeter.text.numbers import throughput_digits
from machmeter.workload import launch
from machmeter.workload.launch import Launch
from machmeter.workload.names import parse_rung
from machmeter.workload.rungs import LAUNCH_KEYS, Rung, Settings, settings


@dataclass(frozen=True, kw_only=True)
class LadderRow:
    """One rung. Numbers are rounded to what is shown."""

    rung: str
    title: str
    on: str | None
    status: Status
    reason: str = ""
    batch: int | None = None
    backend: str = ""
    precision: str = ""  # what really ran, where the runtime chose
    requested: str = ""  # what it was asked for
    options: tuple[str, ...] = ()  # values, in the order of the backend's options
    threads: int | None = None  # of each instance
    artifact: str = ""  # kind and key in the store
    command: str = ""  # how a program is started like this, "" for plainly
    images_per_second: float | None = None
    times_below: float | None = None  # over the rung it stands on
    times_first: float | None = None  # over the first rung of the ladder, whatever its batch
    p50_ms: float | None = None
    p95_ms: float | None = None
    facts: columns.Facts = field(default_factory=dict)  # what `metrics.py` has a column for
    instances: int = 1
    launch: Mapping[str, Any] | None = None
    huge_pages_mb: float | None = None
    memory_bound: bool | None = None
    torch: str | None = None  # the installed version, as stacks differ in it
    commit: str = ""
    environment: str = ""

    @property
    def top1_agreement(self) -> float | None:
        """Return the share of images with the first class of fp32."""
        return self.facts.get("top1_agreement")

    def as_json(self) -> dict[str, object]:
        """Return the row as plain data."""
        return {**columns.flat(self, "ladder"), "slower": self.slower}

    @property
    def slower(self) -> bool:
        """Return whether it is slower than the rung it stands on: steps interfere."""
        return self.times_below is not None and self.times_below < 1.0


@dataclass(frozen=True, kw_only=True)
class LadderTable:
    """The rungs of one model on one machine, in their order."""

    machine: str
    model: str
    host: HostFacts | None
    rows: tuple[LadderRow, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """Return the ladder as plain data."""
        return {
            "machine": self.machine,
            "model": self.model,
            "host": json_shape.encode(self.host) if self.host else {},
            "rows": [row.as_json() for row in self.rows],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, kw_only=True)
class _Found:
    """The record of one rung, and the run it is from."""

    record: Record
    run: Run
    commit: str
    environment: str

    @property
    def claim(self) -> tuple[bool, bool, float]:
        """Return what decides between records.

        What could not run elsewhere hides nothing that was measured, and what was disturbed nothing that was not.
        """
        decided = self.record.status in ("ok", "failed")
        return decided, disturbance.known_quiet(self.record.disturbed_share), self.record.started_at

    def is_of(self, rung: Rung, rungs: Mapping[str, Rung]) -> bool:
        """Return whether the record is of the rung as it is defined now, and not of another of the same name."""
        return self.record.settings in (None, settings(rung, rungs))


def build(
    results: Path, machine: str, model: str, rungs: Iterable[Rung], evidence_folder: Path | None = None
) -> LadderTable:
    """Return the ladder of `model` on `machine`: the rows of `rungs`, in their order, measured or not.

    The evidence is looked for beside `results` where `evidence_folder` does not say otherwise.
    """
    folder = (evidence_folder or asv_names.evidence_folder(results)) / machine
    return build_from(reading_runs.read_folder(folder), machine, model, rungs)


def build_from(read: FolderOfRuns, machine: str, model: str, rungs: Iterable[Rung]) -> LadderTable:
    """Return the ladder of `model` on `machine`, of which the evidence was `read`: the rows of `rungs`."""
    listed = list(rungs)
    found = _newest(read, model, {rung.name: rung for rung in listed})
    notes = read.notes()
    speeds = {name: speed for name, item in found.items() if (speed := item.record.images_per_second) and _ok(item)}
    comparable = {
        name: speed for name, speed in speeds.items() if not disturbance.note(found[name].record.disturbed_share)
    }
    rows = tuple(_row(rung, found.get(rung.name), speeds, comparable, listed[0].name) for rung in listed)
    newest = max((item.run for item in found.values()), key=lambda run: run.started, default=Run())
    if len({item.run.host.cpu.model for item in found.values() if _ok(item)}) > 1:
        notes.append("the rungs were measured on different CPU models: their ratios mean nothing")
    if len({item.run.host.thread_budget for item in found.values() if _ok(item)}) > 1:
        notes.append("the rungs were measured with different numbers of threads")
    return LadderTable(machine=machine, model=model, host=evidence.host(newest), rows=rows, notes=tuple(notes))


def _ok(item: _Found) -> bool:
    return item.record.status == "ok"


def climbed(read: FolderOfRuns) -> list[str]:
    """Return the models of which any rung is on record, in alphabetical order."""
    return sorted({rung[0] for _, run in read.runs for cell in run.glance.cells if (rung := parse_rung(cell))})


def _newest(read: FolderOfRuns, model: str, rungs: Mapping[str, Rung]) -> dict[str, _Found]:
    """Return the record that decides for each rung of `model`, by the rung's name."""
    found: dict[str, _Found] = {}
    for place, run in read.runs:
        for key in run.glance.cells:
            of_model, name = parse_rung(key) or ("", "")
            if of_model != model or name not in rungs:
                continue
            for record in run.cells[key].values():
                item = _Found(record=record, run=run.about, commit=place.commit, environment=place.environment)
                if record.status == "interrupted" or not item.is_of(rungs[name], rungs):
                    continue
                if name not in found or item.claim > found[name].claim:
                    found[name] = item
    return found


def _row(
    rung: Rung, item: _Found | None, speeds: Mapping[str, float], comparable: Mapping[str, float], first: str
) -> LadderRow:
    """Return the row of a rung. A gain is over a rung that is `comparable`: measured, and not disturbed."""
    if item is None:
        return LadderRow(rung=rung.name, title=rung.title, on=rung.on, status="not run", reason="not measured yet")
    record = item.record
    recorded = record.settings or Settings()
    row = LadderRow(
        rung=rung.name,
        title=rung.title,
        on=rung.on,
        status="not run" if record.status == "interrupted" else record.status,
        reason=record.reason or disturbance.note(record.disturbed_share) or "",
        batch=recorded.batch or None,
        backend=recorded.backend,
        commit=item.commit[:8],
        environment=item.environment,
    )
    instances = record.instances or ()
    if record.status != "ok" or not instances:
        return row
    speed, first_one = speeds[rung.name], instances[0]
    tail = record.call_summary.tail_seconds if record.call_summary else None
    huge = [one.proof.huge_page_bytes for one in instances]
    started = {name: value for name in sorted(LAUNCH_KEYS) if (value := getattr(recorded, name)) is not None}
    artifact = first_one.artifact
    return replace(
        row,
        precision=first_one.precision or recorded.precision,
        requested=recorded.precision,
        options=tuple((recorded.options or {}).values()),
        threads=first_one.threads,
        artifact=f"{artifact.kind}/{artifact.key}" if artifact else "",
        command=launch.shell(
            Launch(**started), [list(one.proof.cpus) for one in instances], dict(first_one.proof.variables)
        ),
        images_per_second=round(speed, throughput_digits(speed)),
        times_below=_ratio(comparable.get(rung.name), comparable.get(rung.on or "")),
        times_first=_ratio(comparable.get(rung.name), comparable.get(first)),
        p50_ms=round(1e3 * (record.median_seconds or 0.0), 2),
        p95_ms=None if tail is None else round(1e3 * tail, 2),
        facts=columns.facts("ladder", partial(_fact, record), whole=True),
        instances=len(instances),
        launch=started,
        huge_pages_mb=None if None in huge else _megabytes(sum(size or 0 for size in huge)),
        memory_bound=all(one.proof.memory_binding.bound for one in instances),
        torch=item.run.versions.get("torch"),
    )


def _ratio(speed: float | None, base: float | None) -> float | None:
    return round(speed / base, 2) if speed and base else None


def _fact(record: Record, metric: Metric) -> float | None:
    """Return what a record says of a metric; memory is that of all instances together."""
    if metric.evidence == "peak_resident_bytes":
        return record.instances_peak_resident_bytes
    return metric.recorded(record)


def _megabytes(count: float | None) -> float | None:
    return None if count is None else round(count / 1e6)
