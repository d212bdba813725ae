"""What a command that waits for asv says meanwhile: a line for each process that ends."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from machmeter import asv_names, metrics
from machmeter.errors import RunFailed
from machmeter.json_shape import decode
from machmeter.measure import dead_processes, tell
from machmeter.measure.evidence_shape import Record
from machmeter.store import evidence
from machmeter.workload.names import is_of_machine

RUN = "MACHMETER_RUN"  # the variable with the name of a run

Say = Callable[[str], None]


class Measured(Protocol):
    """What the evidence has a record of: a cell, or a rung."""

    @property
    def batch(self) -> int:
        """Return the images per call."""
        ...

    def key(self) -> str:
        """Return the name of its record."""
        ...


def new_run() -> str:
    """Return a name for a run that no other has."""
    return uuid.uuid4().hex[:16]


@contextlib.contextmanager
def hear(say: Say, total: int) -> Iterator[tuple[Listener, dict[str, str]]]:
    """Say what measuring processes finish, of `total` cells.

    Yields the listener and the variables that asv must be given: where to report to, and the name of the run.
    """
    with tempfile.TemporaryDirectory(prefix="machmeter-") as folder:
        pipe = Path(folder) / "progress"
        os.mkfifo(pipe)
        listener = Listener(pipe, say, total)
        listener.start()
        try:
            yield listener, {tell.PIPE: str(pipe), RUN: new_run()}
        finally:
            listener.stop()


def endings(project: Path, run_name: str) -> dict[str, Record]:
    """Settle the evidence of a run, and return the record of each cell in which a process failed or died."""
    endings: dict[str, Record] = {}
    for cell, processes in _records(project, run_name):
        bad = [record for record in processes if record.status != "ok"]
        if bad:
            endings[cell] = bad[-1]
    return endings


def tally(project: Path, run_name: str, part: Iterable[Measured]) -> Counter[str]:
    """Return how many cells of `part` are "ok", "n/a" or "failed" in a run; one that never began is failed."""
    found: dict[str, list[Record]] = {}
    for cell, processes in _records(project, run_name):
        found.setdefault(cell, []).extend(processes)
    outcomes = (evidence.outcome(found.get(cell.key(), [])).status for cell in part)
    return Counter(status if status in ("ok", "n/a") else "failed" for status in outcomes)


def check_measured(counts: Counter[str]) -> None:
    """Raise RunFailed where everything failed that this machine could measure: a script must not take it for done."""
    if counts["failed"] and not counts["ok"]:
        others = f", {counts['n/a']} n/a" if counts["n/a"] else ""
        raise RunFailed(f"nothing could be measured: {counts['failed']} failed{others}; the reasons are above")


def _records(project: Path, run_name: str) -> Iterator[tuple[str, list[Record]]]:
    """Settle the evidence of a run, and yield each cell with the records of its processes."""
    folder = asv_names.evidence_folder(asv_names.results_folder(project)) / asv_names.machine_name()
    for path in folder.glob("*.json"):
        if evidence.is_pulled(path):
            continue
        dead_processes.settle_file(path)
        file = evidence.read(path, samples=False)
        for cell, processes in file.runs[run_name].cells.items() if file and run_name in file.runs else ():
            yield cell, list(processes.values())


class Listener(threading.Thread):
    """Says a line for each process that ends. It sleeps in a read until there is one."""

    def __init__(self, pipe: Path, say: Say, total: int) -> None:
        super().__init__(daemon=True)
        self._say, self._total, self._done = say, total, set[str]()
        self._descriptor = os.open(pipe, os.O_RDWR)  # a writer of its own: no end of file between processes

    def run(self) -> None:
        """Say what is told until there is no more."""
        with os.fdopen(self._descriptor, "r", encoding="utf-8") as stream:
            for line in stream:
                message = json.loads(line)
                if message.get("stop"):
                    return
                with contextlib.suppress(OSError):  # nobody reads our output any more: go on measuring
                    self._tell(decode(tell.Ending, message))

    def stop(self) -> None:
        """Read what has been written, then end."""
        os.write(self._descriptor, b'{"stop": true}\n')
        self.join()

    def conclude(self, project: Path, run_name: str, part: Sequence[Measured]) -> Counter[str]:
        """Say what became of the cells of `part` whose processes died without a word, and return `tally` of all."""
        bad = endings(project, run_name)
        for cell in part:
            record = bad.get(cell.key())
            if record and cell.key() not in self._done:
                self._tell(
                    tell.Ending(
                        cell=cell.key(),
                        benchmark=record.benchmark,
                        batch=cell.batch,
                        status=record.status,
                        reason=record.reason,
                    )
                )
        return tally(project, run_name, part)

    def _tell(self, ending: tell.Ending) -> None:
        cell, failed = ending.cell, ending.status != "ok"
        if is_of_machine(cell):
            return
        counted_by = ("time_forward", "track_throughput")
        if ending.benchmark in counted_by or (failed and ending.benchmark != metrics.OFFLINE):
            self._done.add(cell)
        counted = f"[{len(self._done):>3}/{self._total}]"
        if failed:
            self._say(f"{counted} {cell}: {ending.status}: {ending.reason}")
        elif ending.images_per_second is not None:
            self._say(f"{counted} {cell}: {ending.images_per_second:.1f} images/s{_answers(ending)}")
        elif (seconds := ending.median_seconds) is not None:
            self._say(f"{counted} {cell}: {1e3 * seconds:.2f} ms, {ending.batch / seconds:.1f} images/s")
        else:
            self._say(f"{counted} {cell}: loaded in {ending.track_load_time or 0:.2f} s{_answers(ending)}")


def _answers(ending: tell.Ending) -> str:
    agreement, decibels = ending.track_top1_agreement, ending.track_sqnr
    return "" if agreement is None or decibels is None else f", top-1 agreement {agreement:.3f}, {decibels:.1f} dB"
