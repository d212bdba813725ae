"""What a GPU is doing, as NVIDIA's management library tells it: clocks, power, temperature, throttling, other programs.

A number that the driver does not tell is None, with its reason beside it; it is never 0. Reading takes a few
milliseconds and happens between timed calls, never during one.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PACKAGE = "pynvml"  # what nvidia-ml-py installs

BUSY_PERCENT = 5  # of the time that another program keeps the GPU at work
BUSY_LOOKS, BUSY_PAUSE_SECONDS = 5, 0.2  # NVML's own utilization is that of the last second at most

# Bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h): why the clock is not the highest.
REASONS = {
    0x1: "idle",
    0x2: "clocks set by an administrator",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "synchronised boost",
    0x20: "temperature (software)",
    0x40: "temperature (hardware)",
    0x80: "power brake",
    0x100: "display clocks",
}
SLOWING = {"power cap", "hardware slowdown", "temperature (software)", "temperature (hardware)", "power brake"}


@dataclass(frozen=True, kw_only=True)
class GpuProcess:
    """A process that computes on the GPU."""

    pid: int
    memory_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class GpuState:
    """What the GPU was doing at one moment. `missing` has the reason of each value that is None."""

    at: float = 0.0  # seconds since 1970
    driver: str | None = None
    sm_clock_mhz: int | None = None
    sm_clock_max_mhz: int | None = None
    memory_clock_mhz: int | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    temperature_celsius: int | None = None
    clock_reasons: tuple[str, ...] | None = None  # why the clock is not the highest
    utilization_percent: int | None = None
    memory_used_bytes: int | None = None
    processes: tuple[GpuProcess, ...] | None = None
    missing: Mapping[str, str] = field(default_factory=dict)


def open_library() -> Any | str:
    """Return NVML ready to be asked, or why it cannot be."""
    try:
        library = importlib.import_module(PACKAGE)
    except ImportError:
        return "nvidia-ml-py is not installed"
    try:
        library.nvmlInit()
    except Exception as error:  # the package makes an exception class of each error code
        return f"NVML cannot be used: {error}"
    return library


def snapshot(bus: str, library: Any | str | None = None) -> GpuState:
    """Return the state of the GPU at the PCI address `bus`."""
    library = open_library() if library is None else library
    now = time.time()
    if isinstance(library, str):
        return GpuState(at=now, missing=dict.fromkeys(_QUESTIONS, library))
    try:
        handle = library.nvmlDeviceGetHandleByPciBusId(bus.encode("ascii"))
    except Exception as error:
        reason = f"NVML does not know this GPU: {_message(error)}"
        return GpuState(at=now, missing=dict.fromkeys(_QUESTIONS, reason))
    answers: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for name, ask in _QUESTIONS.items():
        try:
            answers[name] = ask(library, handle)
        except Exception as error:
            missing[name] = _message(error)
    return GpuState(at=now, missing=missing, **answers)


def _message(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _reasons(library: Any, handle: Any) -> tuple[str, ...]:
    ask = getattr(library, "nvmlDeviceGetCurrentClocksEventReasons", None)  # its name before driver 535 was another
    bits = (ask or library.nvmlDeviceGetCurrentClocksThrottleReasons)(handle)
    return tuple(text for bit, text in REASONS.items() if bits & bit)


def _processes(library: Any, handle: Any) -> tuple[GpuProcess, ...]:
    running = library.nvmlDeviceGetComputeRunningProcesses(handle)
    return tuple(GpuProcess(pid=int(item.pid), memory_bytes=item.usedGpuMemory) for item in running)


_QUESTIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "driver": lambda library, handle: _text(library.nvmlSystemGetDriverVersion()),
    "sm_clock_mhz": lambda library, handle: library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_SM),
    "sm_clock_max_mhz": lambda library, handle: library.nvmlDeviceGetMaxClockInfo(handle, library.NVML_CLOCK_SM),
    "memory_clock_mhz": lambda library, handle: library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_MEM),
    "power_watts": lambda library, handle: library.nvmlDeviceGetPowerUsage(handle) / 1e3,
    "power_limit_watts": lambda library, handle: library.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3,
    "temperature_celsius": lambda library, handle: library.nvmlDeviceGetTemperature(
        handle, library.NVML_TEMPERATURE_GPU
    ),
    "clock_reasons": _reasons,
    "utilization_percent": lambda library, handle: library.nvmlDeviceGetUtilizationRates(handle).gpu,
    "memory_used_bytes": lambda library, handle: library.nvmlDeviceGetMemoryInfo(handle).used,
    "processes": _processes,
}


def others(state: GpuState, own: int | None = None) -> list[GpuProcess] | None:
    """Return the processes in `state` that are not process `own` (default: this one), None where it is not told."""
    pid = os.getpid() if own is None else own
    return None if state.processes is None else [item for item in state.processes if item.pid != pid]


def own_memory(state: GpuState, own: int | None = None) -> int | None:
    """Return the device memory of process `own` (default: this one), None where it is not told."""
    pid = os.getpid() if own is None else own
    found = [item.memory_bytes for item in state.processes or () if item.pid == pid]
    return found[0] if found and found[0] else None


def busy(states: Sequence[GpuState]) -> str | None:
    """Return why the GPU cannot be measured: in all of `states`, taken before we use it, somebody computes on it.

    Programs that only hold memory do not count. What is not told proves nothing.
    """
    shares = [state.utilization_percent for state in states if state.utilization_percent is not None]
    if not states or len(shares) < len(states) or min(shares) < BUSY_PERCENT:
        return None
    known = others(states[-1])
    holders = f"; {len(known)} other processes compute on it" if known else ""
    return (
        f"other programs use the GPU ({min(shares)} to {max(shares)} % of the time{holders}): measure when it is idle"
    )


def look(bus: str, library: Any | str | None = None) -> tuple[GpuState, ...]:
    """Return states of the GPU before it is used: one where it is idle, more over a second where it is not."""
    library = open_library() if library is None else library
    states = [snapshot(bus, library)]
    while busy(states) and len(states) < BUSY_LOOKS:
        time.sleep(BUSY_PAUSE_SECONDS)
        states.append(snapshot(bus, library))
    return tuple(states)


def slowed(states: Iterable[GpuState]) -> list[str]:
    """Return why the clock was held down in any of `states`: power, temperature or hardware."""
    return sorted({reason for state in states for reason in state.clock_reasons or () if reason in SLOWING})
