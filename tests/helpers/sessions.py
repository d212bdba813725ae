"""Sessions of real models on every backend."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from machmeter import backends
from machmeter.backends.base import Backend
from machmeter.machine import host
from machmeter.workload import models
from machmeter.workload.artifacts import Store


def every_cell() -> list[tuple[str, str, dict[str, str]]]:
    found = []
    for backend in map(backends.get, backends.names()):
        for precision in backend.precisions:
            for values in itertools.product(*backend.options.values()):
                if backend.answers:
                    found.append(
                        (backends.name_of(backend), precision, dict(zip(backend.options, values, strict=True)))
                    )
    return found


def skip_if_unsupported(backend: Backend, model: models.Model, precision: str, options: dict[str, str]) -> None:
    reason = backends.unsupported(backend, model, precision, **options)
    if reason:
        pytest.skip(reason)


def load(model: models.Model, name: str, precision: str, batch: int, options: dict[str, str], threads: int = 0) -> Any:
    backend, store = backends.get(name), Store()
    skip_if_unsupported(backend, model, precision, options)
    artifact = backend.prepare(model, precision, store, batch=batch, **options)
    threads = threads or host.thread_budget()
    return backend.load(model, artifact, precision, batch=batch, threads=threads, **options)
