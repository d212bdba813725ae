"""What is put on record at one go: the parts of which a `Record` is made, each with all that it must say.

A `Record` may lack anything, because it may be read before its process ends, or be of an older version. Who writes says
everything of a part: the fields here have no defaults, but for what may not be said at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from machmeter.json_shape import Json, encode, optional
from machmeter.machine.nvml import GpuState
from machmeter.measure.evidence_shape import Facts, Inputs, InstanceRecord, MeasuredRung, Status, WarmUp
from machmeter.workload.fidelity import Fidelity
from machmeter.workload.manifest import UsedArtifact
from machmeter.workload.read_back import DeviceFacts, Effective, Executed
from machmeter.workload.rungs import Settings


@dataclass(frozen=True, kw_only=True)
class Part:
    """Fields of a record, written together."""


def merged(*parts: Part) -> Json:
    """Return the fields of `parts`, as JSON can hold them; later parts replace what earlier ones say."""
    return {name: value for part in parts for name, value in encode(part).items()}


@dataclass(frozen=True, kw_only=True)
class Outcome(Part):
    """What became of a process, and why where it did not end well."""

    status: Status
    reason: str | None = optional()


@dataclass(frozen=True, kw_only=True)
class Begun(Outcome):
    """A process starts on a benchmark."""

    benchmark: str
    pid: int
    process: str
    order: int
    started: str
    started_at: float
    timeout: float
    trace: str


@dataclass(frozen=True, kw_only=True)
class NeverBegun(Outcome):
    """No process could be started."""

    benchmark: str
    order: int
    started: str
    started_at: float


@dataclass(frozen=True, kw_only=True)
class Resident(Part):
    """The highest memory of the process, None where the kernel does not tell."""

    peak_resident_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class Surveyed(Part):
    """What is measured once."""

    facts: Facts


@dataclass(frozen=True, kw_only=True)
class WarmedUp(Part):
    """What was loaded, and how long it ran before anything counted."""

    artifact: UsedArtifact
    weights: str
    warm_up: WarmUp


@dataclass(frozen=True, kw_only=True)
class ReadBack(Part):
    """What really runs; `threads` is the budget."""

    effective: Effective
    threads: int
    allocator: str


@dataclass(frozen=True, kw_only=True)
class Chosen(Part):
    """The precision that a runtime chose which was left to choose."""

    precision: str


@dataclass(frozen=True, kw_only=True)
class Judged(Part):
    """How far the answers are from the reference."""

    fidelity: Fidelity
    operations_per_image: float


@dataclass(frozen=True, kw_only=True)
class Fed(Part):
    """The batches that are timed."""

    inputs: Inputs


@dataclass(frozen=True, kw_only=True)
class Located(Part):
    """The device that it runs on."""

    device: DeviceFacts


@dataclass(frozen=True, kw_only=True)
class Timed(Part):
    """What only the end of a timing process knows. None: the kernel does not tell."""

    samples: int
    median_seconds: float
    sample_seconds: Sequence[float]
    throttled_periods: int | None
    disturbed_share: float | None
    opening_seconds: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class TimedOnDevice(Part):
    """What a device's own clock and its management library said while calls were timed."""

    device_sample_seconds: Sequence[float]
    device_median_seconds: float | None
    device_states: Sequence[GpuState]
    device: DeviceFacts


@dataclass(frozen=True, kw_only=True)
class Climbed(Part):
    """The rung that is measured, and everything that holds on it."""

    rung: MeasuredRung
    settings: Settings


@dataclass(frozen=True, kw_only=True)
class Speed(Part):
    """The throughput of all instances together: the median over slices of their common time."""

    images_per_second: float


@dataclass(frozen=True, kw_only=True)
class RanTogether(Speed):
    """What instances did. Memory is that of all together, None where one does not tell."""

    rates: Sequence[float]
    window_seconds: float
    disturbed_share: float | None
    median_seconds: float
    call_seconds: Sequence[float]
    instances_peak_resident_bytes: int | None
    instances: Sequence[InstanceRecord]


@dataclass(frozen=True, kw_only=True)
class PeakFound(Part):
    """The best kernel and size, and the rate of each that was tried."""

    kernel: str
    size: int
    tried: Mapping[str, float]
    threads: int
    left_out: Sequence[str] | None = optional()
    executed: Executed | None = optional()
