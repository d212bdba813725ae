"""One instance: load a cell as it is told over a socket, say when it is ready, run from a given moment on."""

from __future__ import annotations

import json
import os
import queue
import socket
import sys
import threading
import time
from typing import Any

from machmeter import backends
from machmeter.backends.base import Backend, Interval, Session
from machmeter.json_shape import Json, decode, encode
from machmeter.machine import host, process
from machmeter.measure import cell_record, starting
from machmeter.measure.evidence_shape import Facts
from machmeter.measure.instance_messages import Failed, Finished, Order, Ready, Start
from machmeter.measure.opening import Opened, open_cell
from machmeter.measure.record_parts import Part, merged
from machmeter.workload import models
from machmeter.workload.cells import Cell


class Instance:
    """The cell of this process."""

    def __init__(self, order: Order) -> None:
        self._backend: Backend = backends.get(order.backend)
        self._model = models.get(order.model)
        self._cell = Cell(
            device=self._backend.device,
            backend=self._backend.name,
            model=self._model.name,
            precision=order.precision,
            batch=order.batch,
            options=order.options,
        )
        self._parallel = order.parallel
        self._opened: Opened | None = None

    def get_ready(self) -> Ready:
        """Load, warm up, prove and judge the cell; return what was found."""
        parts: list[Part] = []
        facts: Facts = {}
        load = self._backend.load_parallel if self._parallel else None  # type: ignore[attr-defined]
        self._opened = open_cell(self._backend, self._model, self._cell, record=parts.append, facts=facts, load=load)
        return Ready(record=merged(*parts), facts=facts)

    def run(self, start: Start) -> Finished | Failed:
        """Call when and as long as `start` says."""
        assert self._opened is not None
        session, buffers = self._opened.session, self._opened.buffers
        throttled, cpu = host.limits().throttled_periods, time.process_time()
        end = start.begin + int(1e9 * start.seconds)
        time.sleep(max(0.0, (start.begin - time.perf_counter_ns()) / 1e9))
        if self._parallel:
            intervals = session.stream(buffers, end, start.least_calls)  # type: ignore[attr-defined]
            shortest = (max(stop for _, stop in intervals) - min(begin for begin, _ in intervals)) / len(intervals)
        else:
            intervals = _one_after_another(session, buffers, end, start.least_calls)
            shortest = min(stop - begin for begin, stop in intervals)
        if problem := self._opened.problem(shortest):
            return Failed(status="failed", reason=problem)
        after = host.limits().throttled_periods
        return Finished(
            intervals=intervals,
            proof=starting.proof(),
            cpu_seconds=time.process_time() - cpu,
            peak_resident_bytes=process.peak_resident_bytes(),
            throttled_periods=None if throttled is None or after is None else after - throttled,
        )


def _one_after_another(session: Session, buffers: list[Any], end: int, least_calls: int) -> list[Interval]:
    intervals: list[Interval] = []
    while (start := time.perf_counter_ns()) < end or len(intervals) < least_calls:
        session(buffers[len(intervals) % len(buffers)])
        intervals.append((start, time.perf_counter_ns()))
    return intervals


def main() -> None:
    """Serve the process that listens at the socket named by the first argument, and end with it."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        stream = connection.makefile("rb")
        orders: queue.SimpleQueue[Json] = queue.SimpleQueue()

        def listen() -> None:  # sleeps in a read until there is an order, or nobody to give one
            for line in stream:
                orders.put(json.loads(line))
            os._exit(1)

        threading.Thread(target=listen, daemon=True).start()

        def answer(message: Ready | Finished | Failed) -> None:
            connection.sendall(json.dumps(encode(message), allow_nan=False).encode() + b"\n")

        try:
            instance = Instance(decode(Order, orders.get()))
            answer(instance.get_ready())
            answer(instance.run(decode(Start, orders.get())))
        except BaseException as error:
            outcome = cell_record.failure(error)
            answer(Failed(status=outcome.status, reason=outcome.reason or ""))
    os._exit(0)  # nothing is left to tidy up, and a runtime that hangs at exit must not matter


if __name__ == "__main__":
    main()
