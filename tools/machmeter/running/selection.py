"""Which cells a command measures: models, backends, batches and patterns, as asv selects them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from machmeter import backends, metrics
from machmeter.backends import grid
from machmeter.backends.base import Backend
from machmeter.errors import NoDevice, NothingSelected, UnknownName
from machmeter.machine import gpu
from machmeter.running.waiting import Measured
from machmeter.workload import models
from machmeter.workload.cells import Cell
from machmeter.workload.models import Model

DEFAULT_BATCHES = (1, 8)  # on a CPU

DEVICES = ("cpu", "cuda")

STACK = "cpu"  # what `make setup` installs; other stacks have environments of their own

ANY = r"\w+"  # every benchmark of a cell, as a regular expression

LATENCY = rf"(?!{metrics.OFFLINE}\b)\w+"  # all but offline throughput


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one call of asv measures."""

    title: str
    patterns: tuple[str, ...]  # asv's, one for each of the cells
    cells: Sequence[Measured]


def select_models(names: Iterable[str]) -> list[Model]:
    """Return the models called `names`; "all" stands for every benchmarked one. Raises UnknownName."""
    chosen: list[Model] = []
    for name in names:
        chosen += (
            [model for model in models.MODELS if model.benchmarked] if name.lower() == "all" else [models.get(name)]
        )
    return list(dict.fromkeys(chosen))


def plan(
    chosen: list[Model],
    names: list[str],
    batches: list[int] | None,
    pattern: str | None,
    *,
    device: str | None = None,
    all_options: bool = False,
    with_offline: bool = False,
) -> list[Part]:
    """Return the parts that measure `chosen` on the backends `names`, or on all of `device` (see `_backends`).

    Where no `batches` are named, those of DEFAULT_BATCHES, on a GPU all that it has.
    `pattern` is a regular expression over cell names. Option values that take long to prepare are measured
    with `all_options` or a pattern, offline throughput only `with_offline`. Raises UnknownName, or NothingSelected
    where nothing is left.
    """
    try:
        wanted = re.compile(pattern or "")
    except re.error as error:
        raise NothingSelected(f"--filter {pattern!r} is not a regular expression: {error}") from error
    check_benchmarked(chosen)
    parts = []
    for model in chosen:
        for backend in _backends(names, device):
            picked = tuple(
                cell
                for cell in grid.all_cells(backend, model)
                if (cell.batch in batches if batches else cell.device != "cpu" or cell.batch in DEFAULT_BATCHES)
                and wanted.search(cell.key())
                and (all_options or pattern or not set(cell.options.values()) & set(backend.on_request))
            )
            if picked:
                patterns = tuple(pattern_of(cell, ANY if with_offline else LATENCY) for cell in picked)
                name = backends.name_of(backend)
                parts.append(Part(title=f"{model.name} on {name}", patterns=patterns, cells=picked))
    if not parts:
        raise NothingSelected(
            f"nothing matches: models {', '.join(item.name for item in chosen)}, "
            f"backends {', '.join(names) or 'all'}, "
            f"batches {', '.join(map(str, batches or DEFAULT_BATCHES))}" + (f", filter {pattern!r}" if pattern else "")
        )
    return parts


def check_benchmarked(chosen: Iterable[Model]) -> None:
    """Raise UnknownName where a model has no benchmarks, BadSetting where its weights cannot be chosen."""
    for model in chosen:
        if not model.benchmarked:
            raise UnknownName(f"{model.name} is only for tests: choose from {benchmarked()}")
        model.weights()


def _backends(names: list[str], device: str | None) -> list[Backend]:
    """Return the backends called `names`. Raises UnknownName.

    Where none is named, those of `device`: of "cpu" those of the stack `cpu`, of "cuda" all. Without a device, those
    of the CPU, and those of the GPU too where there is one.
    """
    if device not in (None, *DEVICES):
        raise UnknownName(f"unknown device {device!r}: known devices are {', '.join(DEVICES)}")
    known = [backend for backend in map(backends.get, backends.names()) if backend.answers]
    for name in names:
        if name not in [backends.name_of(backend) for backend in known]:
            listed = ", ".join(backends.name_of(backend) for backend in known)
            raise UnknownName(f"unknown backend {name!r}: known backends are {listed}")
    if names:
        return [backend for backend in known if backends.name_of(backend) in names]
    wanted = [device] if device else ["cpu", *(["cuda"] if isinstance(gpu.find(), gpu.Gpu) else [])]
    stacks = {"cpu": STACK, "cuda": "cuda"}
    return [item for item in known if item.device in wanted and item.stack == stacks[item.device]]


def check_devices(parts: Iterable[Part]) -> None:
    """Raise NoDevice where `parts` measure on a GPU and there is none: every cell would be n/a for that reason."""
    found = gpu.find()
    if isinstance(found, str) and any(cell.key().startswith("cuda.") for part in parts for cell in part.cells):
        raise NoDevice(f"there is no GPU to measure on: {found}")


def benchmarked() -> str:
    """Return the names of the models that are measured, for a message."""
    return ", ".join(model.name for model in models.MODELS if model.benchmarked)


def pattern_of(cell: Cell, methods: str = ANY) -> str:
    """Return the regular expression with which asv selects the `methods` of `cell` (all of them) and no others."""
    values = [*(repr(text) for text in (cell.precision, *cell.options.values())), str(cell.batch)]
    return rf"^{re.escape(cell.series)}\.{methods}\({re.escape(', '.join(values))}\)$"
