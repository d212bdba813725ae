"""Units of benchmarks: to the base unit, so that milliseconds and seconds are never compared as numbers."""

from __future__ import annotations

import re

from machmeter import metrics
from machmeter.metrics import Direction

# Only what cannot mean anything else is converted: "KB" is 1000 bytes to some and 1024 to others.
_TO_BASE: dict[str, tuple[float, str]] = {
    "s": (1.0, "seconds"),
    "sec": (1.0, "seconds"),
    "secs": (1.0, "seconds"),
    "second": (1.0, "seconds"),
    "ms": (1e-3, "seconds"),
    "msec": (1e-3, "seconds"),
    "millisecond": (1e-3, "seconds"),
    "milliseconds": (1e-3, "seconds"),
    "us": (1e-6, "seconds"),
    "usec": (1e-6, "seconds"),
    "µs": (1e-6, "seconds"),
    "μs": (1e-6, "seconds"),
    "microsecond": (1e-6, "seconds"),
    "microseconds": (1e-6, "seconds"),
    "ns": (1e-9, "seconds"),
    "nanosecond": (1e-9, "seconds"),
    "nanoseconds": (1e-9, "seconds"),
    "min": (60.0, "seconds"),
    "minutes": (60.0, "seconds"),
    "B": (1.0, "bytes"),
    "byte": (1.0, "bytes"),
    "kB": (1e3, "bytes"),
    "MB": (1e6, "bytes"),
    "GB": (1e9, "bytes"),
    "KiB": (2.0**10, "bytes"),
    "MiB": (2.0**20, "bytes"),
    "GiB": (2.0**30, "bytes"),
}

_PER_SECOND = re.compile(r"(?:/|\bper )\s*(?:s|sec|second)$")

_KINDS = {
    "time": ("time", "seconds"),
    "timeraw": ("time", "seconds"),
    "mem": ("memory", "bytes"),
    "peakmem": ("peakmemory", "bytes"),
    "track": ("track", ""),
}


def base(unit: str) -> tuple[float, str]:
    """Return what a number in `unit` is multiplied with, and the unit it then has: ("ms" is 0.001, "seconds").

    Units that are not known for certain stay what they are.
    """
    return _TO_BASE.get(unit.strip(), (1.0, unit.strip()))


def guess(benchmark: str) -> tuple[str, str]:
    """Return the kind and unit that asv gives a benchmark by its method's name: time_x is in seconds."""
    prefix = benchmark.rpartition(".")[2].partition("_")[0].lower()
    return _KINDS.get(prefix, ("unknown", ""))


def direction(benchmark: str, unit: str) -> Direction | None:
    """Return which way is better, where the base `unit` or our own table of metrics says so for certain."""
    try:
        ours = metrics.metric(benchmark.rpartition(".")[2])
    except KeyError:
        pass
    else:
        if ours.unit == unit:
            return ours.better
    if unit in ("seconds", "bytes"):
        return "lower"
    return "higher" if is_rate(unit) else None


def is_rate(unit: str) -> bool:
    """Return whether `unit` counts something per second."""
    return bool(_PER_SECOND.search(unit))
