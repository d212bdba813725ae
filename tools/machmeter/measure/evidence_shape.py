"""The shape of the evidence, what really ran: one JSON file per machine, commit and environment, beside asv's results.

    {"schema": 1, "machine": ..., "commit": ..., "environment": ..., "stack": ...,
     "runs": {RUN: {"host": ..., "versions": ..., "stack_mismatches": ..., "cells": {CELL: {PROCESS: RECORD}}}}}

A record is begun before anything risky happens, with `status` "running", and grows until the process ends. A process
that dies cannot write; whoever reads or writes next finds its record still "running" with nobody behind it, and
`dead_processes` turns that into a failure with what is known of the death.

`EvidenceFile` and what is inside are what a reader finds: older files lack fields, which then have their defaults. The
other classes are what is put on record at one go, and their fields are those of `Record`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from machmeter.json_shape import optional
from machmeter.machine.host import HostFacts
from machmeter.machine.nvml import GpuState
from machmeter.workload.fidelity import Fidelity
from machmeter.workload.launch import Proof
from machmeter.workload.manifest import UsedArtifact
from machmeter.workload.pinned import Swept
from machmeter.workload.read_back import DeviceFacts, Effective, Executed
from machmeter.workload.rungs import Settings

SCHEMA = 1

Status = Literal["running", "ok", "n/a", "failed", "interrupted"]
Facts = dict[str, int | float | list[float]]  # what is measured once, by benchmark name; several are samples


# ---------------------------------------------------------------------- parts of a record


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a reader puts in the place of many calls. It is never written."""

    count: int = 0
    tail_seconds: float | None = None  # the 95th percentile, None where they are too few


@dataclass(frozen=True, kw_only=True)
class WarmUp:
    """How long a session was warmed up."""

    calls: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The batches that were timed."""

    source: str = ""  # photographs or noise
    buffers: int = 0
    rotating: bool = True
    includes_transfer: bool = False
    resident: str = "host"  # or "device"
    layout: str = ""


@dataclass(frozen=True, kw_only=True)
class MeasuredRung:
    """A rung of the ladder, and the one that it stands on."""

    name: str = ""
    on: str | None = None
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class InstanceRecord:
    """What one of several worker processes left."""

    artifact: UsedArtifact | None = optional()
    weights: str | None = optional()
    warm_up: WarmUp | None = optional()
    effective: Effective | None = optional()
    threads: int | None = optional()
    allocator: str | None = optional()
    precision: str | None = optional()  # that the runtime chose
    fidelity: Fidelity | None = optional()
    operations_per_image: float | None = optional()
    inputs: Inputs | None = optional()
    device: DeviceFacts | None = optional()
    facts: Facts = field(default_factory=dict)
    proof: Proof = Proof()
    cpu_seconds: float = 0.0
    peak_resident_bytes: int | None = None
    throttled_periods: int | None = None
    calls: int = 0
    median_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Record:
    """What one process left of one cell, rung or peak of the machine."""

    # Every process.
    benchmark: str = ""
    status: Status = "running"
    reason: str | None = optional()
    pid: int | None = optional()
    process: str | None = optional()
    order: int = 0  # among the records of the run, from 1
    started: str = ""
    started_at: float = 0.0  # seconds since 1970
    timeout: float | None = optional()  # seconds
    trace: str | None = optional()  # the file that the fault handler writes into
    peak_resident_bytes: int | None = optional()
    facts: Facts | None = optional()
    # Who opened a cell.
    artifact: UsedArtifact | None = optional()
    weights: str | None = optional()  # seeded or pretrained
    warm_up: WarmUp | None = optional()
    effective: Effective | None = optional()
    threads: int | None = optional()  # the budget; a peak's are its own
    allocator: str | None = optional()
    precision: str | None = optional()  # that the runtime chose
    fidelity: Fidelity | None = optional()
    operations_per_image: float | None = optional()
    inputs: Inputs | None = optional()
    device: DeviceFacts | None = optional()
    # Who timed calls.
    samples: int | None = optional()
    sample_seconds: tuple[float, ...] | None = optional()
    median_seconds: float | None = optional()
    throttled_periods: int | None = optional()
    disturbed_share: float | None = optional()
    opening_seconds: Mapping[str, float] | None = optional()  # by benchmark name
    device_sample_seconds: tuple[float, ...] | None = optional()
    device_median_seconds: float | None = optional()
    device_states: tuple[GpuState, ...] | None = optional()
    # Who had instances run.
    images_per_second: float | None = optional()
    rates: tuple[float, ...] | None = optional()
    window_seconds: float | None = optional()
    call_seconds: tuple[float, ...] | None = optional()  # 1000 at most
    instances_peak_resident_bytes: int | None = optional()
    instances: tuple[InstanceRecord, ...] | None = optional()
    rung: MeasuredRung | None = optional()
    settings: Settings | None = optional()
    # Who reads a store of years.
    sample_summary: Summary | None = optional()  # in the place of `sample_seconds`
    call_summary: Summary | None = optional()  # in the place of `call_seconds`
    # Who measured the machine's peak.
    kernel: str | None = optional()
    size: int | None = optional()  # rows of a matrix, or bytes of an array
    tried: Mapping[str, float] | None = optional()  # the best rate of each kernel and size
    left_out: tuple[str, ...] | None = optional()
    executed: Executed | None = optional()


@dataclass(frozen=True, kw_only=True)
class Run:
    """One invocation of asv, or of the ladder: the conditions, and the records by cell and process."""

    started: str = ""
    host: HostFacts = HostFacts()
    versions: Mapping[str, str] = field(default_factory=dict)  # of every installed distribution
    stack: str | None = None  # the label
    stack_mismatches: tuple[str, ...] | None = None  # None: there are no pins to compare with
    swept: Swept | None = optional()
    uncommitted_changes: bool | None = None
    asv: Mapping[str, str] = field(default_factory=dict)  # asv's variables
    cells: Mapping[str, Mapping[str, Record]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EvidenceFile:
    """The evidence of one machine, commit and environment."""

    schema: int
    runs: Mapping[str, Run]
    machine: str = ""
    commit: str = ""
    environment: str = ""
    stack: str | None = None
