"""Which benchmarks measure the machine, so that a change of theirs is none of the code's."""

from __future__ import annotations

FOLDER = "control."

_NULL = f"{FOLDER}Null("


def is_control(benchmark: str) -> bool:
    """Return whether the asv benchmark `benchmark` ("control.Machine.time_matrix_product") times the machine alone.

    A control runs none of our code, so no change can move it. What calls a backend, even the null backend, measures our
    harness, which a change may well make slower; peaks are found by a search, whose outcome is a result.
    """
    owner, _, method = benchmark.rpartition(".")
    return owner == f"{FOLDER}Machine" and method.startswith("time_")


def in_evidence(cell: str, metric: str) -> str:
    """Return under which name the evidence has `metric` of what asv calls `cell`."""
    if metric.endswith("_offline"):
        return f"offline.{cell.partition('.')[2]}"
    if cell.startswith(_NULL):  # its class is called Null, and its cell by backend and model
        return f"{FOLDER}null.ResNet50({cell.removeprefix(_NULL)}"
    return cell
