"""What a GPU is doing, as NVIDIA's management library tells it: clocks, power, temperature, throttling, other programs.

A number that the driver does not tell is None, with its reason beside it; it is never 0. Reading takes a few
milliseconds and happens between timed calls, never during one.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Mapping
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


def snapshot(bus: str, library: Any | str | None = None) -> dict[str, Any]:
    """Return the state of the GPU at the PCI address `bus`.

    `missing` has the reason of each value that is None. `others` are the other processes that compute on it,
    each with its memory.
    """
    library = open_library() if library is None else library
    found: dict[str, Any] = dict.fromkeys(_QUESTIONS)
    found |= {"at": time.time(), "missing": {}}
    if isinstance(library, str):
        return found | {"missing": dict.fromkeys(_QUESTIONS, library)}
    try:
        handle = library.nvmlDeviceGetHandleByPciBusId(bus.encode("ascii"))
    except Exception as error:
        return found | {"missing": dict.fromkeys(_QUESTIONS, f"NVML does not know this GPU: {_told(error)}")}
    for name, ask in _QUESTIONS.items():
        try:
            found[name] = ask(library, handle)
        except Exception as error:
            found["missing"][name] = _told(error)
    return found


def _told(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _reasons(library: Any, handle: Any) -> list[str]:
    ask = getattr(library, "nvmlDeviceGetCurrentClocksEventReasons", None)  # its name before driver 535 was another
    bits = (ask or library.nvmlDeviceGetCurrentClocksThrottleReasons)(handle)
    return [text for bit, text in REASONS.items() if bits & bit]


def _processes(library: Any, handle: Any) -> list[dict[str, Any]]:
    running = library.nvmlDeviceGetComputeRunningProcesses(handle)
    return [{"pid": int(item.pid), "memory_bytes": item.usedGpuMemory} for item in running]


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


def others(state: Mapping[str, Any], own: int | None = None) -> list[dict[str, Any]] | None:
    """Return the processes in `state` that are not process `own` (default: this one), None where it is not told."""
    processes = state["processes"]
    pid = os.getpid() if own is None else own
    return None if processes is None else [item for item in processes if item["pid"] != pid]


def own_memory(state: Mapping[str, Any], own: int | None = None) -> int | None:
    """Return the device memory of process `own` (default: this one), None where it is not told."""
    pid = os.getpid() if own is None else own
    found = [item["memory_bytes"] for item in state["processes"] or () if item["pid"] == pid]
    return found[0] if found and found[0] else None


def busy(states: list[Mapping[str, Any]]) -> str | None:
    """Return why the GPU cannot be measured: in all of `states`, taken before we use it, somebody computes on it.

    Programs that only hold memory do not count. What is not told proves nothing.
    """
    shares = [state["utilization_percent"] for state in states]
    if not shares or any(share is None or share < BUSY_PERCENT for share in shares):
        return None
    known = others(states[-1])
    holders = f"; {len(known)} other processes compute on it" if known else ""
    return (
        f"other programs use the GPU ({min(shares)} to {max(shares)} % of the time{holders}): measure when it is idle"
    )


def look(bus: str, library: Any | str | None = None) -> list[Mapping[str, Any]]:
    """Return states of the GPU before it is used: one where it is idle, more over a second where it is not."""
    library = open_library() if library is None else library
    states: list[Mapping[str, Any]] = [snapshot(bus, library)]
    while busy(states) and len(states) < BUSY_LOOKS:
        time.sleep(BUSY_PAUSE_SECONDS)
        states.append(snapshot(bus, library))
    return states


def slowed(states: list[Mapping[str, Any]]) -> list[str]:
    """Return why the clock was held down in any of `states`: power, temperature or hardware."""
    return sorted({reason for state in states for reason in state["clock_reasons"] or () if reason in SLOWING})
