"""Run a configuration in processes of its own and count the images that all of them finish.

The processes connect to a socket, say when they are ready, are told one moment at which to begin, and send
the begin and end of every call. While they run, this process sleeps in `select`. A process that dies closes
its socket, and that fails the cell: the sum of those left would be a number of another configuration. They
in turn end when this process's socket closes, so none is left behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from machmeter.backends import name_of
from machmeter.backends.base import Backend
from machmeter.errors import CellFailed, Unsupported
from machmeter.json_shape import decode, encode
from machmeter.machine import disturbance, host
from machmeter.measure import starting, throughput
from machmeter.measure.evidence_shape import Facts, InstanceRecord
from machmeter.measure.instance_messages import Failed, Finished, Order, Ready, Start
from machmeter.measure.record_parts import RanTogether
from machmeter.workload.cells import Cell
from machmeter.workload.launch import Launch

MOST_OFFLINE = 16  # instances: more of them only multiply the memory

SECONDS = 10.0
LEAST_CALLS = 5  # of each instance, however long they take
_MOST_SAMPLES = 1000  # of single calls, kept in the evidence
Answer = TypeVar("Answer", Ready, Finished)

_LEAD_SECONDS = 0.2  # from the order to begin until the beginning, so that it reaches everyone in time


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A cell, and how the processes that run it are started."""

    backend: Backend
    cell: Cell
    launch: Launch
    parallel: bool = False  # several requests in flight inside each process
    seconds: float = SECONDS  # of calls

    def name_of_backend(self) -> str:
        """Return the name under which another process finds the backend."""
        kind = type(self.backend)
        inside = kind.__module__.startswith("machmeter.backends.")
        return name_of(self.backend) if inside else f"{kind.__module__}:{self.backend.name}"


def offline(backend: Backend, cell: Cell) -> Configuration:
    """Return how `cell` is run for offline throughput, which is measured and never derived from a latency.

    A runtime that can keep several requests in flight does so itself (`Backend.load_parallel`); the others run as
    instances, one for each physical core.
    """
    parallel = hasattr(backend, "load_parallel")
    cores = 1 if parallel else min(host.thread_budget(), MOST_OFFLINE)
    return Configuration(backend=backend, cell=cell, launch=Launch(instances=cores), parallel=parallel)


@dataclass(frozen=True, kw_only=True)
class Done:
    """What the instances of a configuration did."""

    rates: tuple[float, ...]  # images per second of all together, in slices of their common time
    window_seconds: float
    workers: tuple[InstanceRecord, ...]  # what each said of itself
    calls: tuple[tuple[float, ...], ...]  # seconds of every call of each
    disturbed_share: float | None = None  # of the CPUs' time that other programs had meanwhile

    @property
    def images_per_second(self) -> float:
        """Return the median over the slices."""
        return statistics.median(self.rates)

    def facts(self) -> Facts:
        """Return the fidelity of the least faithful instance, by benchmark name; nothing where none was judged."""
        judged = [worker.fidelity for worker in self.workers if worker.fidelity]
        if len(judged) < len(self.workers):
            return {}
        return {
            "track_top1_agreement": min(fidelity.top1_agreement for fidelity in judged),
            "track_sqnr": min(fidelity.sqnr_db for fidelity in judged),
        }

    def evidence(self) -> RanTogether:
        """Return what a record should keep. Memory is that of all instances together."""
        seconds = sorted(second for calls in self.calls for second in calls)
        step = -(-len(seconds) // _MOST_SAMPLES)
        peaks = [worker.peak_resident_bytes for worker in self.workers]
        return RanTogether(
            images_per_second=self.images_per_second,
            rates=self.rates,
            window_seconds=self.window_seconds,
            disturbed_share=self.disturbed_share,
            median_seconds=statistics.median(seconds),
            call_seconds=seconds[::step],
            instances_peak_resident_bytes=sum(peak or 0 for peak in peaks) if all(peaks) else None,
            instances=self.workers,
        )


def run(configuration: Configuration) -> Done:
    """Run `configuration` and return what its instances did.

    Raises Unsupported where it is not possible here, CellFailed where an instance failed or was not started
    as it should be.
    """
    instances = configuration.launch.instances
    order = Order(
        backend=configuration.name_of_backend(),
        model=configuration.cell.model,
        precision=configuration.cell.precision,
        batch=configuration.cell.batch,
        options=configuration.cell.options,
        parallel=configuration.parallel,
    )
    with _started(configuration.launch) as crew:
        crew.connect(instances)
        crew.tell(order)
        ready = crew.answers(Ready)
        watch = disturbance.Watch()
        begin = time.perf_counter_ns() + int(1e9 * _LEAD_SECONDS)
        crew.tell(Start(begin=begin, seconds=configuration.seconds, least_calls=LEAST_CALLS))
        finished = crew.answers(Finished)
        disturbed = watch.share(children=sum(answer.cpu_seconds for answer in finished))
    if problem := starting.falsehood(configuration.launch, [answer.proof for answer in finished]):
        raise CellFailed(problem)
    intervals = [answer.intervals for answer in finished]
    first, last = throughput.common_window(intervals)
    return Done(
        rates=tuple(throughput.rates(intervals, configuration.cell.batch)),
        window_seconds=(last - first) / 1e9,
        workers=tuple(_record(before, after) for before, after in zip(ready, finished, strict=True)),
        disturbed_share=disturbed,
        calls=tuple(_seconds(answer) for answer in finished),
    )


def _record(ready: Ready, finished: Finished) -> InstanceRecord:
    """Return what an instance leaves in the evidence, from its two messages."""
    seconds = _seconds(finished)
    return replace(
        decode(InstanceRecord, ready.record),
        facts=ready.facts,
        proof=finished.proof,
        cpu_seconds=finished.cpu_seconds,
        peak_resident_bytes=finished.peak_resident_bytes,
        throttled_periods=finished.throttled_periods,
        calls=len(seconds),
        median_seconds=statistics.median(seconds),
    )


def _seconds(finished: Finished) -> tuple[float, ...]:
    return tuple((end - start) / 1e9 for start, end in finished.intervals)


class _Crew:
    """The processes of one configuration, seen from the one that waits for them."""

    def __init__(self, listener: socket.socket, processes: list[subprocess.Popen[bytes]], log: Path) -> None:
        self._listener, self._processes, self._log = listener, processes, log
        self._connections: list[socket.socket] = []
        self._streams: list[Any] = []  # what each sends, by lines

    def connect(self, count: int) -> None:
        """Wait until `count` processes have connected, or one of those that were started has ended.

        Raises CellFailed.
        """
        with selectors.DefaultSelector() as selector, contextlib.ExitStack() as pidfds:
            selector.register(self._listener, selectors.EVENT_READ)
            for process in self._processes:
                descriptor = _process_descriptor(process.pid)
                pidfds.callback(descriptor.close)
                selector.register(descriptor, selectors.EVENT_READ)
            while len(self._streams) < count:
                ready = [key.fileobj for key, _ in selector.select()]
                if self._listener not in ready:
                    raise CellFailed(f"{len(self._streams)} of {count} instances started: {self._cause_of_death()}")
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                self._streams.append(connection.makefile("rb"))

    def tell(self, message: Order | Start) -> None:
        """Send `message` to every instance."""
        for number, connection in enumerate(self._connections, 1):
            try:
                connection.sendall(json.dumps(encode(message)).encode() + b"\n")
            except OSError:
                raise self._lost(number) from None

    def answers(self, kind: type[Answer]) -> list[Answer]:
        """Wait for the next message, of `kind`, of every instance; the first failure ends the waiting."""
        answers: dict[int, Answer] = {}
        with selectors.DefaultSelector() as selector:
            for number, connection in enumerate(self._connections, 1):
                selector.register(connection, selectors.EVENT_READ, number)
            while len(answers) < len(self._streams):
                for key, _ in selector.select():
                    answers[key.data] = self._answer(key.data, kind)
                    selector.unregister(key.fileobj)
        return [answers[number] for number in sorted(answers)]

    def _answer(self, number: int, kind: type[Answer]) -> Answer:
        try:
            line = self._streams[number - 1].readline()
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            raise self._lost(number)
        message = json.loads(line)
        if message["event"] != "failed":
            return decode(kind, message)
        failed = decode(Failed, message)
        raise (Unsupported if failed.status == "n/a" else CellFailed)(failed.reason)

    def _lost(self, number: int) -> CellFailed:
        planned = len(self._streams)
        return CellFailed(f"instance {number} of {planned} ended without a result: {self._cause_of_death()}")

    def _cause_of_death(self) -> str:
        """Return how the process that ended did so, as far as the system and its own output tell."""
        deadline = time.monotonic() + 2.0  # a launcher needs a moment to notice
        while time.monotonic() < deadline and all(process.poll() is None for process in self._processes):
            time.sleep(0.02)
        codes = [code for process in self._processes if (code := process.poll())]
        told = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = f"; it said: {told[-1].strip()[:200]}" if told else ""
        if codes and codes[0] < 0:
            return f"killed by signal {-codes[0]}{last}"
        return (f"exit code {codes[0]}" if codes else "its connection closed") + last

    def dismiss(self) -> None:
        """Close every connection, at which the processes end, and wait for them."""
        for connection, stream in zip(self._connections, self._streams, strict=True):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            stream.close()
            connection.close()
        self._listener.close()
        for process in self._processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _process_descriptor(pid: int) -> Any:
    """Return a file that becomes readable when process `pid` ends."""
    return os.fdopen(os.pidfd_open(pid), "rb", buffering=0)


@contextlib.contextmanager
def _started(how: Launch) -> Iterator[_Crew]:
    """Start the processes of `how`; when the block is left, none of them is left."""
    cpus = starting.shares(how)
    variables = starting.environment(how, len(cpus[0]))
    with tempfile.TemporaryDirectory(prefix="machmeter-") as folder:
        path, log = Path(folder) / "socket", Path(folder) / "log"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        crew = _Crew(listener, processes := [], log)
        try:
            with log.open("wb") as output:
                for command, bound in starting.commands(
                    how, [sys.executable, "-m", "machmeter.measure.instance", str(path)]
                ):
                    processes.append(
                        subprocess.Popen(
                            ["taskset", "-c", ",".join(map(str, bound)), *command] if bound else command,
                            env={**variables, "TMPDIR": folder},  # what a killed process leaves there goes with it
                            cwd=folder,
                            stdin=subprocess.DEVNULL,
                            stdout=output,
                            stderr=output,
                        )
                    )
            yield crew
        finally:
            crew.dismiss()
