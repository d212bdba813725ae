"""Offline throughput: the most images per second that the machine gives when nobody waits for one answer.

A runtime that can keep several requests in flight does so itself (`Backend.load_parallel`); the others run
as instances, one for each physical core. It is measured, never derived from a latency.
"""

from __future__ import annotations

from machmeter.backends.base import Backend
from machmeter.machine import host
from machmeter.measure.instances import Configuration
from machmeter.workload.cells import Cell
from machmeter.workload.launch import Launch

BENCHMARK = "track_throughput_offline"

MOST_INSTANCES = 16  # more of them only multiply the memory


def configuration(backend: Backend, cell: Cell) -> Configuration:
    """Return how `cell` is run for offline throughput."""
    parallel = hasattr(backend, "load_parallel")
    cores = 1 if parallel else min(host.thread_budget(), MOST_INSTANCES)
    return Configuration(backend=backend, cell=cell, launch=Launch(instances=cores), parallel=parallel)


def key(cell: Cell) -> str:
    """Return the name of its record in the evidence, such as `offline.openvino.ResNet50(int8, 8)`."""
    return f"offline.{cell.key().split('.', 1)[1]}"
