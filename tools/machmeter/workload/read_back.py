"""What is read back of a session that ran: what a backend answers, and what the evidence keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from machmeter.json_shape import Json, in_own_words, optional
from machmeter.machine import nvml


@dataclass(frozen=True, kw_only=True)
class Executed:
    """What oneDNN executed: its multiplying primitives by data type, and the most frequent implementations."""

    compute: Mapping[str, int] = field(default_factory=dict)
    kernels: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Effective:
    """What really runs, read back from a runtime.

    `compute` counts the multiplying operations (convolutions, matrix products) by data type, `threads` is the size
    of the runtime's pool. `kernels` and `operators` count the most frequent of what was executed.
    """

    compute: Mapping[str, int] = field(default_factory=dict)
    threads: int = 0
    kernels: Mapping[str, int] | None = optional()
    operators: Mapping[str, int] | None = optional()
    layout: str | None = optional()
    settings: Json = in_own_words()  # what else the runtime and the recipe say of themselves


@dataclass(frozen=True, kw_only=True)
class DeviceFacts:
    """Which device a session runs on, how busy it was before, and the highest memory of this process on it."""

    gpu: str = ""
    capability: str = ""
    cuda_of_driver: str = ""
    bus: str = ""
    memory_bytes: int | None = None
    before: tuple[nvml.GpuState, ...] = ()
    peak_rate: float | None = None  # operations per second of the measured peak by which the session is judged
    peak_rate_of: str | None = None
    peak_bytes: int | None = None
    peak_bytes_from: str = ""  # who told it, or why it is None
    torch_peak_bytes: int | None = None
