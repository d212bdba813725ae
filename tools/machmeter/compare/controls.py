"""Which benchmarks tell a slow machine from slow code."""

from __future__ import annotations


def is_control(benchmark: str) -> bool:
    """Return whether `benchmark`, by asv's name ("control.Machine.time_matrix_product"), measures the machine.

    A control runs none of our code, so no change can move it. The null backend's time is that of our harness, and
    the machine's peaks are those of its libraries: they are none.
    """
    owner, _, method = benchmark.rpartition(".")
    return owner == "control.Machine" and method.startswith("time_")
