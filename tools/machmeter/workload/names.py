"""How whatever is measured is called, in asv's results and in the evidence: rungs, offline cells, peaks, controls.

Cells themselves are in `cells`. The first part of a name is the module in `benchmarks/`.
"""

from __future__ import annotations

LADDER = "tuning"  # modules in benchmarks/
CONTROL = "control"
PEAK = f"{CONTROL}.MachinePeak"  # asv's name of the class

_OFFLINE = "offline"
_NULL = f"{CONTROL}.Null("


def rung_key(model: str, rung: str) -> str:
    """Return the name of a rung's record in the evidence, such as `tuning.ResNet50(tcmalloc)`."""
    return f"{LADDER}.{model}({rung})"


def parse_rung(key: str) -> tuple[str, str] | None:
    """Return the model and the rung that `rung_key` has made `key` of, or None where it is no rung's."""
    module, _, rest = key.partition(".")
    model, opened, rung = rest.partition("(")
    return (model, rung.removesuffix(")")) if module == LADDER and opened and rung.endswith(")") else None


def offline_key(cell: str) -> str:
    """Return the name of the offline record of a cell, such as `offline.openvino.ResNet50(int8, 8)`."""
    return f"{_OFFLINE}.{cell.partition('.')[2]}"


def peak_key(what: str) -> str:
    """Return the name under which the evidence keeps the peak of a precision, or of "memory"."""
    return f"{PEAK}({what})"


def is_of_machine(name: str) -> bool:
    """Return whether a cell or benchmark measures the machine or our harness, and no model."""
    return name.startswith(f"{CONTROL}.")


def is_control(benchmark: str) -> bool:
    """Return whether the asv benchmark `benchmark` ("control.Machine.time_matrix_product") times the machine alone.

    A control runs none of our code, so no change can move it. What calls a backend, even the null backend, measures our
    harness, which a change may well make slower; peaks are found by a search, whose outcome is a result.
    """
    owner, _, method = benchmark.rpartition(".")
    return owner == f"{CONTROL}.Machine" and method.startswith("time_")


def in_evidence(cell: str, metric: str) -> str:
    """Return under which name the evidence has `metric` of what asv calls `cell`."""
    if metric.endswith("_offline"):
        return offline_key(cell)
    if cell.startswith(_NULL):  # its class is called Null, and its cell by backend and model
        return f"{CONTROL}.null.ResNet50({cell.removeprefix(_NULL)}"
    return cell
