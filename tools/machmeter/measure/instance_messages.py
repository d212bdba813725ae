"""What a process and its instances tell each other over their socket: one line of JSON a message, by its `event`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from machmeter.backends.base import Interval
from machmeter.json_shape import Json
from machmeter.measure.evidence_shape import Facts, Status
from machmeter.workload.launch import Proof


@dataclass(frozen=True, kw_only=True)
class Order:
    """To an instance: the cell to load. `parallel`: with several requests in flight."""

    backend: str
    model: str
    precision: str
    batch: int
    options: Mapping[str, str]
    parallel: bool


@dataclass(frozen=True, kw_only=True)
class Start:
    """To an instance: when to begin, in nanoseconds of the monotonic clock that all processes share, and how long."""

    begin: int
    seconds: float
    least_calls: int


@dataclass(frozen=True, kw_only=True)
class Ready:
    """From an instance: its cell is loaded, warmed up, proved and judged; `record` are the parts that it found."""

    record: Json
    facts: Facts
    event: Literal["ready"] = "ready"


@dataclass(frozen=True, kw_only=True)
class Finished:
    """From an instance: the begin and end of every call, and what the process says of itself."""

    intervals: Sequence[Interval]
    proof: Proof
    cpu_seconds: float
    peak_resident_bytes: int | None
    throttled_periods: int | None
    event: Literal["finished"] = "finished"


@dataclass(frozen=True, kw_only=True)
class Failed:
    """From an instance, in the place of any other: why it ends."""

    status: Status
    reason: str
    event: Literal["failed"] = "failed"
