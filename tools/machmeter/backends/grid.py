"""Every cell that a backend can measure of a model, as asv's parameters."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from machmeter.backends.base import Backend
from machmeter.workload.cells import Cell
from machmeter.workload.models import Model


def all_cells(backend: Backend, model: Model) -> Iterator[Cell]:
    """Yield every cell of `backend` and `model`, whether or not it is possible here."""
    _, values = parameters(backend, model)
    for combination in itertools.product(*values):
        yield from_parameters(backend, model, combination)


def parameters(backend: Backend, model: Model) -> tuple[list[str], list[list[object]]]:
    """Return asv's `param_names` and `params` for `backend` and `model`: precision, options, batch."""
    names = ["precision", *backend.options, "batch"]
    values: list[list[object]] = [[*backend.precisions]]
    values += [[*choices] for choices in backend.options.values()]
    values.append([*getattr(backend, "batches", model.batches)])
    return names, values


def from_parameters(backend: Backend, model: Model, values: tuple[object, ...]) -> Cell:
    """Return the cell that asv's parameter `values` stand for."""
    precision, *options, batch = values
    return Cell(
        device=backend.device,
        backend=backend.name,
        model=model.name,
        precision=str(precision),
        batch=int(str(batch)),
        options=dict(zip(backend.options, map(str, options), strict=True)),
    )
