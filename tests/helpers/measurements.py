"""Measurements for the tests of comparisons, made by hand: what each side of a cell found, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from machmeter.compare.documents import Measurements, Process, Row, Side

# What eight processes of identical code found, in turn: base first, head first, base first ...
BASE = (1.000, 1.004, 0.997, 1.002, 0.999, 1.003, 0.998, 1.001)
SAME = (1.002, 0.999, 1.001, 0.998, 1.003, 0.997, 1.000, 1.004)

CELL = "cpu.openvino.ResNet50(int8, 8)"


def row(
    values: Sequence[float],
    *,
    cell: str = CELL,
    metric: str = "time_forward",
    unit: str = "seconds",
    better: str = "lower",
    side: str = "base",
    disturbed: Sequence[float | None] | None = None,
    base_always_first: bool = False,
    **more: Any,
) -> Row:
    """Return a row with one process for each of `values`, in balanced order."""
    processes = [
        Process(
            round=number,
            order=2 * number + ((number % 2 == 0 or base_always_first) == (side == "head")),
            value=value,
            samples=100,
            disturbed=disturbed[number] if disturbed else None,
        )
        for number, value in enumerate(values)
    ]
    return Row(cell=cell, metric=metric, unit=unit, better=better, processes=processes, **more)  # type: ignore[arg-type]


def failed(reason: str = "killed (signal 9)", *, cell: str = CELL, status: str = "failed") -> Row:
    """Return a row without a number."""
    return Row(
        cell=cell,
        metric="time_forward",
        unit="seconds",
        better="lower",
        status=status,  # type: ignore[arg-type]
        reason=reason,
    )


def measured(
    base: Sequence[Row],
    head: Sequence[Row],
    *,
    interleaved: bool = True,
    of_base: dict[str, Any] | None = None,
    of_head: dict[str, Any] | None = None,
) -> Measurements:
    """Return both sides as one document."""
    return Measurements(
        machine="box",
        base=Side(label="main", rows=list(base), **(of_base or {})),
        head=Side(label="change", rows=list(head), **(of_head or {})),
        rounds=8,
        interleaved=interleaved,
    )


def timed(factor: float = 1.0, **more: Any) -> Measurements:
    """Return a latency of eight rounds, in head `factor` times that of base."""
    return measured(
        [row([0.01 * value for value in BASE], **more)],
        [row([0.01 * value * factor for value in SAME], side="head", **more)],
    )
