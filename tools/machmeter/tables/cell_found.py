"""What is on record of one cell: asv's numbers, and what the evidence says beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from machmeter import metrics
from machmeter.machine import disturbance
from machmeter.measure.evidence_shape import Record, Summary
from machmeter.metrics import Metric
from machmeter.store import evidence
from machmeter.store.values import Value
from machmeter.workload.cells import Cell

Status = Literal["ok", "failed", "n/a", "running", "not run"]


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


def images_per_second(item: Found) -> float | None:
    """Return the throughput of a cell, None where it has none."""
    seconds = item.speed.seconds
    return metrics.images_per_second(seconds, item.cell.batch) if seconds else None
