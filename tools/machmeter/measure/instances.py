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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machmeter import json_shape
from machmeter.backends import name_of
from machmeter.backends.base import Backend
from machmeter.errors import CellFailed, Unsupported
from machmeter.machine import disturbance
from machmeter.measure import starting, throughput
from machmeter.workload.cells import Cell
from machmeter.workload.launch import Launch

SECONDS = 10.0
LEAST_CALLS = 5  # of each instance, however long they take
_MOST_SAMPLES = 1000  # of single calls, kept in the evidence
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


@dataclass(frozen=True, kw_only=True)
class Done:
    """What the instances of a configuration did."""

    rates: tuple[float, ...]  # images per second of all together, in slices of their common time
    window_seconds: float
    workers: tuple[dict[str, Any], ...]  # what each said of itself
    calls: tuple[tuple[float, ...], ...]  # seconds of every call of each
    disturbed_share: float | None = None  # of the CPUs' time that other programs had meanwhile

    @property
    def images_per_second(self) -> float:
        """Return the median over the slices."""
        return statistics.median(self.rates)

    def facts(self) -> dict[str, float]:
        """Return the fidelity of the least faithful instance, by benchmark name; nothing where none was judged."""
        names = ("track_top1_agreement", "track_sqnr")
        return {
            name: min(worker["facts"][name] for worker in self.workers)
            for name in names
            if all(name in worker["facts"] for worker in self.workers)
        }

    def evidence(self) -> dict[str, Any]:
        """Return what a record should keep. Memory is that of all instances together."""
        seconds = sorted(second for calls in self.calls for second in calls)
        step = -(-len(seconds) // _MOST_SAMPLES)
        peaks = [worker["peak_resident_bytes"] for worker in self.workers]
        return {
            "images_per_second": self.images_per_second,
            "rates": list(self.rates),
            "window_seconds": self.window_seconds,
            disturbance.SHARE: self.disturbed_share,
            "median_seconds": statistics.median(seconds),
            "call_seconds": seconds[::step],
            "instances_peak_resident_bytes": sum(peaks) if all(peaks) else None,
            "instances": [
                {**worker, "calls": len(calls), "median_seconds": statistics.median(calls)}
                for worker, calls in zip(self.workers, self.calls, strict=True)
            ],
        }


def run(configuration: Configuration) -> Done:
    """Run `configuration` and return what its instances did.

    Raises Unsupported where it is not possible here, CellFailed where an instance failed or was not started
    as it should be.
    """
    instances = configuration.launch.instances
    order = {
        "backend": configuration.name_of_backend(),
        "model": configuration.cell.model,
        "precision": configuration.cell.precision,
        "batch": configuration.cell.batch,
        "options": dict(configuration.cell.options),
        "parallel": configuration.parallel,
    }
    with _started(configuration.launch) as crew:
        crew.connect(instances)
        crew.tell(order)
        ready = crew.answers("ready")
        watch = disturbance.Watch()
        begin = time.perf_counter_ns() + int(1e9 * _LEAD_SECONDS)
        crew.tell({"begin": begin, "seconds": configuration.seconds, "least_calls": LEAST_CALLS})
        finished = crew.answers("finished")
        disturbed = watch.share(children=sum(answer["cpu_seconds"] for answer in finished))
    if problem := starting.falsehood(
        configuration.launch, [json_shape.decode(starting.Proof, answer["proof"]) for answer in finished]
    ):
        raise CellFailed(problem)
    intervals = [[(start, end) for start, end in answer["intervals"]] for answer in finished]
    first, last = throughput.common_window(intervals)
    return Done(
        rates=tuple(throughput.rates(intervals, configuration.cell.batch)),
        window_seconds=(last - first) / 1e9,
        workers=tuple(
            {
                **before["record"],
                "facts": before["facts"],
                **{name: value for name, value in after.items() if name not in ("event", "intervals")},
            }
            for before, after in zip(ready, finished, strict=True)
        ),
        disturbed_share=disturbed,
        calls=tuple(tuple((end - start) / 1e9 for start, end in calls) for calls in intervals),
    )


class _Crew:
    """The processes of one configuration, seen from the one that waits for them."""

    def __init__(self, listener: socket.socket, processes: list[subprocess.Popen[bytes]], log: Path) -> None:
        self._listener, self._processes, self._log = listener, processes, log
        self._connections: list[socket.socket] = []
        self._streams: list[Any] = []  # what each sends, by lines

    def connect(self, count: int) -> None:
        """Wait until `count` processes have connected, or one of those that were started has ended."""
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

    def tell(self, message: dict[str, Any]) -> None:
        """Send `message` to every instance."""
        for number, connection in enumerate(self._connections, 1):
            try:
                connection.sendall(json.dumps(message).encode() + b"\n")
            except OSError:
                raise self._lost(number) from None

    def answers(self, event: str) -> list[dict[str, Any]]:
        """Wait for the next message of every instance; the first failure ends the waiting."""
        answers: dict[int, dict[str, Any]] = {}
        with selectors.DefaultSelector() as selector:
            for number, connection in enumerate(self._connections, 1):
                selector.register(connection, selectors.EVENT_READ, number)
            while len(answers) < len(self._streams):
                for key, _ in selector.select():
                    answers[key.data] = self._answer(key.data, event)
                    selector.unregister(key.fileobj)
        return [answers[number] for number in sorted(answers)]

    def _answer(self, number: int, event: str) -> dict[str, Any]:
        try:
            line = self._streams[number - 1].readline()
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            raise self._lost(number)
        message: dict[str, Any] = json.loads(line)
        if message["event"] == event:
            return message
        raise (Unsupported if message.get("status") == "n/a" else CellFailed)(message["reason"])

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
