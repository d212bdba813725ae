"""Which benchmarks measure the machine, so that a change of theirs is none of the code's."""

from __future__ import annotations

FOLDER = "control."


def is_control(benchmark: str) -> bool:
    """Return whether the asv benchmark `benchmark` ("control.Machine.time_matrix_product") times the machine alone.

    A control runs none of our code, so no change can move it. What calls a backend, even the null backend, measures our
    harness, which a change may well make slower; peaks are found by a search, whose outcome is a result.
    """
    owner, _, method = benchmark.rpartition(".")
    return owner == f"{FOLDER}Machine" and method.startswith("time_")
