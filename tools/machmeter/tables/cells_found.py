"""What is on record of each cell of one machine: asv's numbers, and what the evidence says beside them.

Numbers come from asv's result files. The evidence says why there is none, and stands in for cells that were
measured in a run that ended before asv could write its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from machmeter import asv_names, metrics
from machmeter.machine import disturbance
from machmeter.measure.evidence_shape import EvidenceFile, Record, Run
from machmeter.metrics import Metric
from machmeter.store import evidence
from machmeter.store.values import ResultFile, Value
from machmeter.workload import cells
from machmeter.workload.cells import Cell

Status = Literal["ok", "failed", "n/a", "running", "not run"]

DEVICES = ("cpu", "cuda")
NOT_A_MODEL = ("cuda.transfer",)  # backends of which a throughput says nothing of a model


@dataclass(frozen=True, kw_only=True)
class Speed:
    """What became of a cell: seconds per call and samples where it has a number, and what to say of it."""

    status: Status
    reason: str = ""
    seconds: float | None = None
    samples: tuple[float, ...] = ()


_NOT_RUN = evidence.Outcome(status="not run")


@dataclass(kw_only=True)
class Found:
    """Everything on record of one cell at one commit in one environment."""

    cell: Cell
    commit: str
    environment: str
    stack: str = ""
    values: dict[str, Value] = field(default_factory=dict)  # asv's, by benchmark method
    record: Record = field(default_factory=Record)  # of the newest run that tried it, put together from its processes
    timed_at: float | None = None  # seconds since 1970
    outcome: evidence.Outcome = _NOT_RUN  # as the evidence has it

    @property
    def when(self) -> float:
        """Return when it was last tried.

        asv's own time is only the second choice: for all parameters of a benchmark it is that of the last
        run, even of those that the run left out.
        """
        return self.record.started_at or max((value.started for value in self.values.values()), default=0.0)

    @property
    def ahead_of_asv(self) -> bool:
        """Return whether the evidence has a timing that asv's files lack: its run ended before asv wrote."""
        timing = self.values.get("time_forward")
        # asv's times are those of all parameters of a benchmark together, to the millisecond.
        return self.timed_at is not None and (timing is None or self.timed_at > timing.ended + 1.0)

    @property
    def claim(self) -> tuple[bool, float]:
        """Return what decides between commits and environments: see `newest`."""
        return self.speed.status in ("ok", "failed"), self.when

    @property
    def disturbed(self) -> str | None:
        """Return what to say where other programs had the CPUs meanwhile: such a number proves no gain."""
        return disturbance.note(self.record.disturbed_share)

    @property
    def speed(self) -> Speed:
        """Return its status, and the number where it has one."""
        status, reason = self.outcome.status, self.outcome.reason
        if status == "failed" or status == "n/a":
            return Speed(status=status, reason=reason)
        timing = None if self.ahead_of_asv else self.values.get("time_forward")
        seconds = timing.number if timing else self.record.median_seconds
        if seconds is not None:
            late = "asv has no file of this measurement: its run was interrupted, or is not over"
            notes = [late] if self.ahead_of_asv else []
            samples = (timing.samples if timing else ()) or self.record.sample_seconds or ()
            return Speed(
                status="ok",
                reason="; ".join([*notes, *([self.disturbed] if self.disturbed else [])]),
                seconds=seconds,
                samples=samples,
            )
        if status == "running":
            return Speed(status="running", reason="is being measured right now")
        if any(value.number is None for value in self.values.values()):
            return Speed(status="failed", reason=reason or "no reason on record")
        return Speed(status="not run", reason=reason or "its latency was not timed")

    def fact(self, metric: Metric) -> float | None:
        """Return what was measured once: from asv's files, or from the evidence where asv has none."""
        value = None if self.ahead_of_asv else self.values.get(metric.benchmark)
        return value.number if value and value.number is not None else metric.recorded(self.record)

    def take(self, records: Sequence[Record]) -> None:
        """Let the newest run that says anything of a cell decide. What was only interrupted says nothing."""
        telling = [record for record in records if record.status != "interrupted"]
        if not telling:
            if not self.outcome.reason:
                self.outcome = replace(self.outcome, reason=evidence.outcome(records).reason)
            return
        started = max(record.started_at for record in telling)
        if started < self.record.started_at:
            return
        self.outcome = evidence.outcome(telling)
        self.record = replace(_together(telling), started_at=started)
        timed = [record for record in telling if record.samples]
        if timed:
            self.timed_at = timed[-1].started_at


def _together(records: Sequence[Record]) -> Record:
    """Return what the processes of one cell have on record, as if one had found it all: the last that timed counts."""
    surveyed = next((record for record in records if record.facts), Record())
    latest = list(reversed(records))
    found = replace(
        surveyed,
        artifact=next((record.artifact for record in latest if record.artifact), None),
        threads=next((record.threads for record in latest if record.threads), None),
        operations_per_image=next(
            (record.operations_per_image for record in latest if record.operations_per_image), None
        ),
        device=next((record.device for record in latest if record.device), None),
    )
    timed = next((record for record in latest if record.samples), None)
    if timed is None:
        return found
    return replace(
        found,
        median_seconds=timed.median_seconds,
        sample_seconds=timed.sample_seconds,
        device_median_seconds=timed.device_median_seconds,
        disturbed_share=timed.disturbed_share,
    )


@dataclass(frozen=True, kw_only=True)
class OnRecord:
    """The cells of one machine, its newest run, and what a reader must know beside them."""

    cells: tuple[Found, ...]
    run: Run
    notes: tuple[str, ...]


_ByPlace = dict[tuple[str, str, str], Found]  # by the cell's key, commit and environment


def find(files: Iterable[ResultFile], folder: Path) -> OnRecord:
    """Return what asv's `files` of a machine and the evidence in its `folder` say of its cells.

    A sweep measures one version of a library among many; what it finds has a table of its own.
    """
    found: _ByPlace = {}
    for file in files:
        for (benchmark, parameters), value in file.tried:
            series, _, method = benchmark.rpartition(".")
            item = _entry(f"{series}({', '.join(parameters)})", file.commit, file.environment, found)
            if item is not None:
                item.values[method] = value
    evidences, notes = evidence.read_all(folder)
    swept = {(file.commit[:8], file.environment) for file in evidences for run in file.runs.values() if run.swept}
    run = _take_evidence(evidences, found)
    if run.uncommitted_changes:
        notes.append("the newest run measured a working tree with uncommitted changes")
    if run.stack_mismatches:
        notes.append(f"the installed packages are not those of stack {run.stack}: " + "; ".join(run.stack_mismatches))
    kept = tuple(newest(item for where, item in found.items() if where[1:] not in swept))
    return OnRecord(cells=kept, run=run, notes=tuple(notes))


def _entry(key: str, commit: str, environment: str, found: _ByPlace) -> Found | None:
    """Return what is found so far of the cell called `key`, or None where `key` is not an inference cell."""
    cell = cells.parse(key)
    if cell is None or cell.device not in DEVICES or cell.runtime in NOT_A_MODEL:
        return None
    where = (cell.key(), commit[:8], environment)
    return found.setdefault(where, Found(cell=cell, commit=commit, environment=environment))


def _take_evidence(files: Iterable[EvidenceFile], found: _ByPlace) -> Run:
    """Add what the evidence says, and return the newest run."""
    latest = Run()
    for file in files:
        for run in file.runs.values():
            if run.swept:
                continue
            if run.started >= latest.started:
                latest = run
            for key, processes in run.cells.items():
                if item := _entry(key, file.commit, file.environment, found):
                    item.stack = file.stack or ""
                    item.take(list(processes.values()))
    return latest


def newest(found: Iterable[Found]) -> Iterator[Found]:
    """Choose one commit and environment for each cell, so that all numbers of a row belong together.

    It is the newest that was timed or failed: what another environment lacks (n/a), or has not timed, does
    not hide what this one measured.
    """
    chosen: dict[str, Found] = {}
    for item in found:
        rival = chosen.get(item.cell.key())
        if rival is None or item.claim > rival.claim:
            chosen[item.cell.key()] = item
    return iter(chosen.values())


def images_per_second(item: Found) -> float | None:
    """Return the throughput of a cell, None where it has none."""
    seconds = item.speed.seconds
    return metrics.images_per_second(seconds, item.cell.batch) if seconds else None


def machines(results: Path) -> list[str]:
    """Return the machines that have results or evidence, by name."""
    folders = [*results.glob("*/"), *asv_names.evidence_folder(results).glob("*/")]
    return sorted({folder.name for folder in folders if folder.is_dir()})
