"""Which benchmarks measure the machine, so that a change of theirs is none of the code's."""

from __future__ import annotations

FOLDER = "control."


def is_control(benchmark: str) -> bool:
    """Return whether the asv benchmark `benchmark` ("control.Machine.time_matrix_product") times the machine alone.

    What calls a backend (`time_forward`, as of the null backend) measures our own harness, which a change may well make
    slower; peaks are found by a search, whose outcome is a result and no fixed work.
    """
    owner, _, method = benchmark.rpartition(".")
    return f"{owner}.".startswith(FOLDER) and method.startswith("time_") and method != "time_forward"
