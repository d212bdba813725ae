"""What is on record of each cell of one machine: asv's numbers, and what the evidence says beside them.

Numbers come from asv's result files. The evidence says why there is none, and stands in for cells that were
measured in a run that ended before asv could write its file.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from machmeter import asv_names, metrics
from machmeter.machine import disturbance
from machmeter.measure.evidence_shape import Record, Run, Summary
from machmeter.metrics import Metric
from machmeter.store import evidence, runs, values
from machmeter.store import found as store
from machmeter.store.values import Value
from machmeter.workload import cells
from machmeter.workload.cells import Cell

Status = Literal["ok", "failed", "n/a", "running", "not run"]

DEVICES = ("cpu", "cuda")
NOT_A_MODEL = ("cuda.transfer",)  # backends of which a throughput says nothing of a model


@dataclass(frozen=True, kw_only=True)
class Speed:
    """What became of a cell: seconds per call where it has a number, of how many samples, and what to say of it."""

    status: Status
    reason: str = ""
    seconds: float | None = None
    samples: int = 0
    tail: float | None = None  # the 95th percentile in seconds


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
            recorded = self.record.sample_summary or Summary()
            by_asv = timing is not None and timing.calls > 0
            return Speed(
                status="ok",
                reason="; ".join([*notes, *([self.disturbed] if self.disturbed else [])]),
                seconds=seconds,
                samples=timing.calls if timing and by_asv else recorded.count,
                tail=timing.tail if timing and by_asv else recorded.tail_seconds,
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
        sample_summary=timed.sample_summary,
        device_median_seconds=timed.device_median_seconds,
        disturbed_share=timed.disturbed_share,
    )


@dataclass(frozen=True, kw_only=True)
class OnRecord:
    """The cells of one machine, its newest run, and what a reader must know beside them."""

    cells: tuple[Found, ...]
    run: Run
    notes: tuple[str, ...]


def find(read: store.Found) -> OnRecord:
    """Return what asv's files of a machine and its evidence say of its cells.

    A sweep measures one version of a library among many; what it finds has a table of its own.
    """
    notes = read.runs.notes()
    swept = {(place.commit[:8], place.environment) for place, run in read.runs.runs if run.glance.swept}
    ran = [run for _, run in read.runs.runs if not run.glance.swept]
    newest_run = max(reversed(ran), key=lambda run: run.glance.started).about if ran else Run()
    if newest_run.uncommitted_changes:
        notes.append("the newest run measured a working tree with uncommitted changes")
    if mismatches := newest_run.stack_mismatches:
        notes.append(f"the installed packages are not those of stack {newest_run.stack}: " + "; ".join(mismatches))
    kept = newest(place for where, place in _places(read).items() if where not in swept)
    return OnRecord(cells=tuple(kept), run=newest_run, notes=tuple(notes))


def newest(places: Iterable[_Place]) -> list[Found]:
    """Choose one commit and environment for each cell, so that all numbers of a row belong together.

    It is the newest that was timed or failed: what another environment lacks (n/a), or has not timed, does
    not hide what this one measured. The places are taken out one by one, the latest first, as long as they can matter.
    """
    chosen: dict[str, Found] = {}
    claims: dict[str, tuple[bool, float, int]] = {}

    def is_settled(cell: str, place: _Place, telling: frozenset[str]) -> bool:
        decided, when, _ = claims.get(cell, (False, -1.0, 0))
        return when > place.latest and (decided or cell not in telling)

    for place in sorted(places, key=lambda place: -place.latest):
        telling = place.telling()
        if all(is_settled(cell, place, telling) for cell in place.cells()):
            continue
        for key, item in place.take().items():
            claim = (*item.claim, -place.order)  # of equal ones the first
            if key not in claims or claim > claims[key]:
                chosen[key], claims[key] = item, claim
    return list(chosen.values())


@dataclass(kw_only=True)
class _Place:
    """What there is of one commit in one environment, not taken out yet."""

    order: int  # among the places of the machine, as they were met
    files: list[store.FoundFile] = field(default_factory=list)
    evidence: list[runs.Place] = field(default_factory=list)
    latest: float = 0.0  # no cell of it was tried later

    def _runs(self) -> Iterator[runs.Run]:
        return (run for place in self.evidence for run in place.runs if not run.glance.swept)

    def cells(self) -> frozenset[str]:
        """Return the cells that are on record here."""
        named = (_cells_named(run.glance.cells) for run in self._runs())
        return frozenset[str]().union(*(_cells_tried(file.tried) for file in self.files), *named)

    def telling(self) -> frozenset[str]:
        """Return the cells that may have a number or a failure here, rather than only a reason why there is none."""
        found = [_cells_tried(file.tried) for file in self.files]
        for run in self._runs():
            silent = {
                cell
                for cell, told in run.glance.trouble.items()
                if all(record.status in runs.SAYS_NOTHING for record in told)
            }
            named = run.glance.cells
            found.append(_cells_named(tuple(cell for cell in named if cell not in silent) if silent else named))
        return frozenset[str]().union(*found)

    def take(self) -> dict[str, Found]:
        """Return what is on record of each cell."""
        found: dict[str, Found] = {}
        for file in values.joined(file.values() for file in self.files):
            for (benchmark, parameters), value in file.tried:
                item = _entry(_key(benchmark, parameters), file.commit, file.environment, found)
                if item is not None:
                    item.values[benchmark.rpartition(".")[2]] = value
        for place in self.evidence:
            for run in place.runs:
                for key, processes in run.cells.items() if not run.glance.swept else ():
                    if item := _entry(key, place.commit, place.environment, found):
                        item.stack = place.stack or ""
                        item.take(list(processes.values()))
        return found


def _places(read: store.Found) -> dict[tuple[str, str], _Place]:
    """Return what there is by commit (eight digits) and environment, those of the result files first."""
    places: dict[tuple[str, str], _Place] = {}

    def at(commit: str, environment: str) -> _Place:
        return places.setdefault((commit[:8], environment), _Place(order=len(places)))

    for file in read.files:
        place = at(file.commit, file.environment)
        place.files.append(file)
        place.latest = max(place.latest, file.latest)
    for recorded in read.runs.places:
        place = at(recorded.commit, recorded.environment)
        place.evidence.append(recorded)
        place.latest = max([place.latest, *(run.glance.latest for run in recorded.runs)])
    return places


def _entry(key: str, commit: str, environment: str, found: dict[str, Found]) -> Found | None:
    """Return what is found so far of the cell called `key`, or None where `key` is not an inference cell."""
    cell = _cell(key)
    if cell is None:
        return None
    return found.setdefault(cell.key(), Found(cell=cell, commit=commit, environment=environment))


@functools.cache
def _cell(key: str) -> Cell | None:
    """Return the inference cell called `key`, or None where it is none."""
    cell = cells.parse(key)
    return None if cell is None or cell.device not in DEVICES or cell.runtime in NOT_A_MODEL else cell


@functools.cache
def _cells_tried(tried: tuple[values.Key, ...]) -> frozenset[str]:
    """Return the names of the inference cells among what a result file has."""
    return _cells_named(tuple(_key(benchmark, parameters) for benchmark, parameters in tried))


@functools.cache
def _cells_named(keys: tuple[str, ...]) -> frozenset[str]:
    return frozenset(cell.key() for key in keys if (cell := _cell(key)))


def _key(benchmark: str, parameters: tuple[str, ...]) -> str:
    return f"{benchmark.rpartition('.')[0]}({', '.join(parameters)})"


def images_per_second(item: Found) -> float | None:
    """Return the throughput of a cell, None where it has none."""
    seconds = item.speed.seconds
    return metrics.images_per_second(seconds, item.cell.batch) if seconds else None


def machines(results: Path) -> list[str]:
    """Return the machines that have results or evidence, by name."""
    folders = [*results.glob("*/"), *asv_names.evidence_folder(results).glob("*/")]
    return sorted({folder.name for folder in folders if folder.is_dir()})
