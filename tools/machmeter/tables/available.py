"""What can be measured here: one line per model, backend, precision and options, with the reason where it cannot."""

from __future__ import annotations

from machmeter import backends
from machmeter.backends import grid
from machmeter.backends.base import Backend
from machmeter.workload import cells, models


def lines() -> list[str]:
    """Return the lines of every backend. One that has no cell at all here, for one reason, is one line."""
    found = []
    for backend in map(backends.get, backends.names()):
        if backend.answers:
            found += _of_backend(backend)
    return found


def _of_backend(backend: Backend) -> list[str]:
    rows = [
        (model.name, " ".join([cell.precision, *cell.options.values()]), _reason(backend, model, cell))
        for model in models.MODELS
        if model.benchmarked
        for cell in grid.all_cells(backend, model)
        if cell.batch == 1
    ]
    name = backends.name_of(backend)
    reasons = {reason for _, _, reason in rows}
    if len(reasons) == 1 and (reason := reasons.pop()):
        return [f"{'every model':<18} {name:<16} {f'{len(rows)} configurations':<22} n/a: {reason}"]
    return [f"{model:<18} {name:<16} {label:<22} {'n/a: ' + why if why else 'ok'}" for model, label, why in rows]


def _reason(backend: Backend, model: models.Model, cell: cells.Cell) -> str | None:
    return backends.unsupported(backend, model, cell.precision, **cell.options)
