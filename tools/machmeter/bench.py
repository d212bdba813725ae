"""Run the benchmarks of chosen models with asv, from one command, with progress.

asv is called once per model and backend, so that what is finished is in asv's files even if a later part is
killed. It runs with `--python=same`: the interpreter that runs this is the environment that is measured.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from machmeter import asvrun, backends, cells, derived, evidence, models, offline, peak, preparation, progress
from machmeter.artifacts import Store
from machmeter.backends.base import Backend
from machmeter.cells import Cell
from machmeter.errors import DiskFull, NothingSelected, RunFailed, UnknownName, Unsupported, from_os_error
from machmeter.isolation import in_child
from machmeter.models import Model

DEFAULT_BATCHES = (1, 8)
LEAST_FREE_BYTES = 2_000_000_000  # the artifacts of one model, with room for a quantizer's scratch files
STACK = "cpu"  # what `make setup` installs; other stacks have environments of their own
LOG = Path(".asv/bench.log")
RUN = "MACHMETER_RUN"  # the variable with the name of a run
RECORDING = ("--record-samples", "--show-stderr")
SUCCESS = (0, 2)  # asv's exit codes; 2: some benchmarks failed, and the evidence says why
ANY = r"\w+"  # every benchmark of a cell, as a regular expression
LATENCY = rf"(?!{offline.BENCHMARK}\b)\w+"  # all but offline throughput
INTERRUPTED_SECONDS = 2.0  # for asv to end by itself when it is interrupted

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


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one call of asv measures."""

    title: str
    patterns: tuple[str, ...]
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
    batches: list[int],
    pattern: str | None,
    *,
    all_options: bool = False,
    with_offline: bool = False,
) -> list[Part]:
    """Return the parts that measure `chosen` on the backends `names` (all where none is named).

    `pattern` is a regular expression over cell names. Option values that take long to prepare are measured
    with `all_options` or a pattern, offline throughput only `with_offline`. Raises NothingSelected where nothing
    is left.
    """
    try:
        wanted = re.compile(pattern or "")
    except re.error as error:
        raise NothingSelected(f"--filter {pattern!r} is not a regular expression: {error}") from error
    check_benchmarked(chosen)
    parts = []
    for model in chosen:
        for backend in _backends(names):
            picked = tuple(
                cell
                for cell in cells.all_cells(backend, model)
                if cell.batch in batches
                and wanted.search(cell.key())
                and (all_options or pattern or not set(cell.options.values()) & set(backend.on_request))
            )
            if picked:
                patterns = tuple(pattern_of(cell, ANY if with_offline else LATENCY) for cell in picked)
                parts.append(Part(title=f"{model.name} on {backend.name}", patterns=patterns, cells=picked))
    if not parts:
        raise NothingSelected(
            f"nothing matches: models {', '.join(item.name for item in chosen)}, "
            f"backends {', '.join(names) or 'all'}, "
            f"batches {', '.join(map(str, batches))}" + (f", filter {pattern!r}" if pattern else "")
        )
    return parts


def check_benchmarked(chosen: Iterable[Model]) -> None:
    """Raise UnknownName where a model has no benchmarks, BadSetting where its weights cannot be chosen."""
    for model in chosen:
        if not model.benchmarked:
            raise UnknownName(f"{model.name} is only for tests: choose from {benchmarked()}")
        model.weights()


def _backends(names: list[str]) -> list[Backend]:
    """Return the backends called `names`, those of the stack `cpu` where none is named. Raises UnknownName."""
    known = [backend for backend in map(backends.get, backends.names()) if backend.answers]
    for name in names:
        if name not in [backend.name for backend in known]:
            listed = ", ".join(backend.name for backend in known)
            raise UnknownName(f"unknown backend {name!r}: known backends are {listed}")
    return [backend for backend in known if (backend.name in names if names else backend.stack == STACK)]


def fetch_weights(chosen: list[Model]) -> None:
    """Get pretrained weights into the store before anything runs. Raises WeightsUnavailable."""
    for model in chosen:
        if model.weights() == "pretrained" and not model.missing_packages():
            in_child(functools.partial(preparation.weights, model, Store()))


def benchmarked() -> str:
    """Return the names of the models that are measured, for a message."""
    return ", ".join(model.name for model in models.MODELS if model.benchmarked)


def pattern_of(cell: Cell, methods: str = ANY) -> str:
    """Return the regular expression with which asv selects the `methods` of `cell` (all of them) and no others."""
    values = [*(repr(text) for text in (cell.precision, *cell.options.values())), str(cell.batch)]
    return rf"^{re.escape(cell.series)}\.{methods}\({re.escape(', '.join(values))}\)$"


def check_folders(project: Path) -> None:
    """Raise where the project, the store or the disk cannot take a run."""
    derived.check_project(project)
    root, results = Store().root, asvrun.results_folder(project)
    _probe(root, "artifacts", "MACHMETER_STORE")
    for folder in (results, asvrun.evidence_folder(results), (project / LOG).parent):
        _probe(folder, "results", None)
    free = shutil.disk_usage(root).free
    if free < LEAST_FREE_BYTES:
        raise DiskFull(
            f"only {free / 1e9:.1f} GB are free under {root} and a run needs up to {LEAST_FREE_BYTES / 1e9:.0f} GB: "
            "free some space, or set MACHMETER_STORE to a folder on another disk"
        )


def _probe(folder: Path, what: str, setting: str | None) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"machmeter")
    except OSError as error:
        raise from_os_error(error, folder, what, setting) from error


def run(parts: list[Part], project: Path, say: Say, attributes: Iterable[str] = (), *, control: bool = True) -> None:
    """Measure `parts`, one asv call each, after the machine controls. Raises RunFailed where asv cannot run."""
    know_machine(project)
    total = sum(len(part.cells) for part in parts)
    with listening(say, total) as (listener, told), (project / LOG).open("w", encoding="utf-8") as output:
        environment = {**os.environ, **told}
        if control:
            _asv(["-b", r"^control\."], project, environment, output, attributes)
        for part in parts:
            say(f"{part.title}: {len(part.cells)} cells")
            patterns = [argument for pattern in part.patterns for argument in ("-b", pattern)]
            _asv(patterns, project, environment, output, attributes)
            listener.tell_silent(part.cells, endings(project, told[RUN]))


@contextlib.contextmanager
def listening(say: Say, total: int) -> Iterator[tuple[Listener, dict[str, str]]]:
    """Say what measuring processes finish, of `total` cells.

    Yields the listener and the variables that asv must be given: where to report to, and the name of the run.
    """
    with tempfile.TemporaryDirectory(prefix="machmeter-") as folder:
        pipe = Path(folder) / "progress"
        os.mkfifo(pipe)
        listener = Listener(pipe, say, total)
        listener.start()
        try:
            yield listener, {progress.PIPE: str(pipe), RUN: uuid.uuid4().hex[:16]}
        finally:
            listener.stop()


def run_peak(project: Path, say: Say) -> None:
    """Measure what the machine can do at best. Raises RunFailed where asv itself cannot run."""
    know_machine(project)
    say("measuring the peak of this machine (15 seconds) ...")
    with (project / LOG).open("w", encoding="utf-8") as output:
        _asv(["-b", rf"^control\.{peak.NAME}\."], project, dict(os.environ), output, [])


def operations(chosen: Iterable[Model]) -> dict[str, float | None]:
    """Return the operations per image of each model, counted by torch; None where it is not installed."""
    counted: dict[str, float | None] = {}
    for model in chosen:
        try:
            found = in_child(functools.partial(preparation.reference, model, Store()))
        except Unsupported:
            counted[model.name] = None
        else:
            counted[model.name] = found.operations_per_image
    return counted


def endings(project: Path, run_name: str) -> dict[str, dict[str, Any]]:
    """Settle the evidence of a run, and return the record of each cell in which a process failed or died."""
    folder = asvrun.evidence_folder(asvrun.results_folder(project)) / asvrun.machine_name()
    endings: dict[str, dict[str, Any]] = {}
    for path in folder.glob("*.json"):
        content = evidence.settle_file(path) or {"runs": {}}
        for cell, processes in content["runs"].get(run_name, {"cells": {}})["cells"].items():
            bad = [record for record in processes.values() if record["status"] != "ok"]
            if bad:
                endings[cell] = bad[-1]
    return endings


def _asv(
    patterns: list[str], project: Path, environment: dict[str, str], output: Any, attributes: Iterable[str]
) -> None:
    arguments = ["--python=same", "--set-commit-hash", "HEAD", *RECORDING]
    arguments += [part for item in attributes for part in ("-a", item)]
    position = output.tell()
    code = asv_run([*arguments, *patterns], project, environment, output)
    if code not in SUCCESS:
        output.flush()
        text = Path(output.name).read_text(encoding="utf-8", errors="replace")[position:].strip()
        last = text.splitlines()[-1].strip(" ·") if text else "it said nothing"
        raise RunFailed(f"asv stopped with exit code {code}: {last} (all of it: {output.name})")


def asv_run(arguments: list[str], project: Path, environment: Mapping[str, str], output: IO[str] | None = None) -> int:
    """Run `asv run` in `project` and return its exit code; without `output` it writes to the terminal.

    An interruption is passed on, and asv is waited for: it stops the process that measures.
    """
    command = [sys.executable, "-m", "asv", "run", *arguments]
    with subprocess.Popen(
        command, cwd=project, env=environment, stdout=output, stderr=subprocess.STDOUT if output else None
    ) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            # A terminal interrupts asv too; anybody else interrupts only us.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(INTERRUPTED_SECONDS)
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10 * INTERRUPTED_SECONDS)
            raise


def know_machine(project: Path) -> None:
    """Let asv note the facts of this machine without a prompt, unless it knows the machine already."""
    if asvrun.knows_machine():
        return
    command = [sys.executable, "-m", "asv", "machine", "--yes"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunFailed(f"asv cannot note the facts of this machine: {(done.stdout + done.stderr).strip()[-300:]}")


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
                event = json.loads(line)
                if event.get("stop"):
                    return
                with contextlib.suppress(OSError):  # nobody reads our output any more: go on measuring
                    self._tell(event)

    def stop(self) -> None:
        """Read what has been written, then end."""
        os.write(self._descriptor, b'{"stop": true}\n')
        self.join()

    def tell_silent(self, part: Iterable[Measured], endings: dict[str, dict[str, Any]]) -> None:
        """Say what became of the cells whose processes died without a word."""
        for cell in part:
            record = endings.get(cell.key())
            if record and cell.key() not in self._done:
                self._tell({"cell": cell.key(), "batch": cell.batch, **record})

    def _tell(self, event: dict[str, Any]) -> None:
        cell, failed = event["cell"], event.get("status") != "ok"
        if cell.startswith("control."):
            return
        counted_by = ("time_forward", "track_throughput")
        if event["benchmark"] in counted_by or (failed and event["benchmark"] != offline.BENCHMARK):
            self._done.add(cell)
        counted = f"[{len(self._done):>3}/{self._total}]"
        if failed:
            self._say(f"{counted} {cell}: {event.get('status')}: {event.get('reason')}")
        elif "images_per_second" in event:
            self._say(f"{counted} {cell}: {event['images_per_second']:.1f} images/s{_answers(event)}")
        elif "median_seconds" in event:
            seconds = event["median_seconds"]
            self._say(f"{counted} {cell}: {1e3 * seconds:.2f} ms, {event['batch'] / seconds:.1f} images/s")
        else:
            self._say(f"{counted} {cell}: loaded in {event.get('track_load_time', 0):.2f} s{_answers(event)}")


def _answers(event: dict[str, Any]) -> str:
    agreement = event.get("track_top1_agreement")
    return "" if agreement is None else f", top-1 agreement {agreement:.3f}, {event['track_sqnr']:.1f} dB"
