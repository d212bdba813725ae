"""What really ran: one JSON file per machine, commit and environment, beside asv's results.

    {"schema": 1, "machine": ..., "commit": ..., "environment": ..., "stack": ...,
     "runs": {RUN: {"host": ..., "versions": ..., "stack_mismatches": ..., "cells": {CELL: {PROCESS: RECORD}}}}}

A record is begun before anything risky happens, with `status` "running", and replaced when the process
ends. A process that dies cannot write; whoever reads or writes next finds its record still "running" with
nobody behind it, and `settle` turns that into a failure with what is known of the death.
"""

from __future__ import annotations

import contextlib
import copy
import faulthandler
import fcntl
import glob
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from machmeter import asv_names
from machmeter.asv_names import AsvRun
from machmeter.errors import CellFailed, from_os_error
from machmeter.machine import host
from machmeter.workload import artifacts, swept

SCHEMA = 1

_PULLED = re.compile(r"\.[0-9a-f]{16}\.json$")  # how the name of a file of the results branch ends

Json = dict[str, Any]


def versions() -> dict[str, str]:
    """Return the version of every installed distribution: the stack as it really is."""
    return {
        str(item.metadata["Name"]).lower().replace("_", "-"): item.version
        for item in metadata.distributions()
        if item.metadata["Name"]
    }


def pins(text: str) -> dict[str, str]:
    """Return the versions that the requirements file with this `text` pins, by library."""
    found = (re.match(r"^([A-Za-z0-9._-]+)==([^\s;#]+)", line.strip()) for line in text.splitlines())
    return {pin[1].lower().replace("_", "-"): pin[2] for pin in found if pin}


def pin_mismatches(project: Path, stack: str | None) -> list[str] | None:
    """Compare what is installed with the pins of `stack`. Return None where there are no pins to compare.

    With `--python=same` asv stamps the stack's name on the results without installing it: only this
    comparison tells whether the name is true.
    """
    file = project / "requirements" / f"{stack}.txt"
    if stack is None or not file.is_file():
        return None
    installed = versions()
    mismatches = []
    for name, wanted in pins(file.read_text(encoding="utf-8")).items():
        have = installed.get(name)
        if have is None or have.split("+")[0] != wanted:
            mismatches.append(f"{name}: pinned {wanted}, installed {have or 'nothing'}")
    return mismatches


def read(path: Path) -> Json | None:
    """Return the evidence in `path` with dead processes settled, or None where there is none or it is unreadable."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    try:
        return settle(content) if content["schema"] == SCHEMA and isinstance(content["runs"], dict) else None
    except (AttributeError, KeyError, TypeError, ValueError):  # JSON, but not of this shape
        return None


def read_folder(results: Path, machine: str) -> list[Json]:
    """Return the readable evidence of `machine`, beside asv's folder `results`."""
    return read_all(asv_names.evidence_folder(results) / machine)[0]


def read_all(folder: Path) -> tuple[list[Json], list[str]]:
    """Return the evidence in one machine's `folder`, and a note about each file that had to be left out."""
    found = [(path, read(path)) for path in sorted(folder.glob("*.json"))]
    notes = [f"left out: {path} is unreadable" for path, content in found if content is None]
    return join(content for _, content in found if content is not None), notes


def files_at(path: Path) -> list[Path]:
    """Return the evidence file `path`, where it exists, and those of the same that were pulled beside it."""
    stem = _PULLED.sub("", path.name).removesuffix(".json")
    beside = sorted(path.parent.glob(f"{glob.escape(stem)}.*.json"))
    own = path.with_name(f"{stem}.json")
    return [*([own] if own.is_file() else []), *(item for item in beside if _PULLED.sub("", item.name) == stem)]


def runs_at(path: Path) -> dict[str, Json]:
    """Return the runs, by name, in the files at `path`."""
    contents = [content for content in map(read, files_at(path)) if content is not None]
    return {name: run for content in join(contents) for name, run in content["runs"].items()}


def join(contents: Iterable[Json]) -> list[Json]:
    """Return one content for each machine, commit and environment, with the runs of all files of these.

    The results branch has a file for each run, and what was pulled lies beside the file that it came from.
    """
    joined: dict[tuple[str, str, str], Json] = {}
    for content in contents:
        where = (str(content.get("machine")), str(content.get("commit")), str(content.get("environment")))
        if where not in joined:
            joined[where] = {**content, "runs": {}}
        runs = joined[where]["runs"]
        for name, run in content["runs"].items():
            runs[name] = _later(runs[name], run) if name in runs else run
    return list(joined.values())


def _later(one: Json, other: Json) -> Json:
    """Return that of two states of one run which has more records, or more of them at their end."""

    def progress(run: Json) -> tuple[int, int]:
        records = [record for cell in run.get("cells", {}).values() for record in cell.values()]
        return len(records), sum(record.get("status") != "running" for record in records)

    return max(one, other, key=progress)


def is_pulled(path: Path) -> bool:
    """Return whether an evidence file came from the results branch: nothing is ever added to it."""
    return _PULLED.search(path.name) is not None


def settle_file(path: Path) -> Json | None:
    """Write down what `settle` finds in `path`, and return it: the traces of dead processes stay on this machine."""
    with _locked(path):
        content = read(path)
        if content is not None and content != json.loads(path.read_bytes()):
            write_json(path, content)
    return content


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Be the only writer of `path`."""
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def settle(content: Json) -> Json:
    """Return `content` with every record of a dead process turned into a failure with its reason.

    A process that was told to stop before its time was up did not fail: it is "interrupted".
    """
    settled = copy.deepcopy(content)
    for run in settled.get("runs", {}).values():
        records = [record for cell in run.get("cells", {}).values() for record in cell.values()]
        last = max((record.get("order", 0) for record in records), default=0)
        for record in records:
            if record.get("status") == "running" and not _alive(record):
                record["status"], record["reason"] = _cause_of_death(record, last=record.get("order", 0) == last)
    return settled


def _alive(record: Json) -> bool:
    return asv_names.is_running(int(record["pid"]), str(record.get("process")))


# How the fault handler begins its report, and the signal behind it.
_FATAL = {
    "Segmentation fault": 11,
    "Aborted": 6,
    "Bus error": 7,
    "Illegal instruction": 4,
    "Floating": 8,
}


def _cause_of_death(record: Json, *, last: bool) -> tuple[str, str]:
    """Return status and reason: how a process died, from the trace that the fault handler left, if it could leave one.

    SIGKILL leaves none. Where it hit the `last` process of a run, the whole run may have been killed.
    """
    path = Path(record.get("trace", ""))
    try:
        trace, ended = path.read_text(encoding="utf-8", errors="replace"), path.stat().st_mtime
    except OSError:
        trace, ended = "", 0.0
    if not trace.strip():
        peak = record.get("peak_resident_bytes")
        known = f"; {peak / 1e6:.0f} MB were resident after loading" if peak else ""
        other = ", or the run was interrupted" if last else ""
        return "failed", f"killed (signal 9), most likely by the kernel for lack of memory{other}{known}"
    for name, number in _FATAL.items():
        if name in trace.splitlines()[0]:
            return "failed", f"crashed (signal {number}, {name.lower()})"
    seconds = ended - record.get("started_at", ended)
    limit = record.get("timeout")
    # asv's clock starts before ours: importing and finding the benchmark come first.
    if limit and seconds >= 0.9 * limit - 2.0:
        return "failed", f"timed out: stopped after {seconds:.0f} s (limit {limit:.0f} s)"
    return "interrupted", f"stopped (signal 15) after {seconds:.0f} s"


class Recorder:
    """Writes the evidence of this process into the file of its run."""

    def __init__(self, run: AsvRun) -> None:
        self.run = run
        self.path = run.evidence_file
        self.process = asv_names.process_identity(os.getpid())
        self.trace = self.path.parent / ".traces" / f"{self.process}.txt"

    def begin(self, cell: str, benchmark: str, timeout: float) -> None:
        """Say that this process starts on `benchmark` of `cell` and may take `timeout` seconds.

        Raises CellFailed, with the failure on record, where another version is installed than a sweep says.
        """
        told = swept.current()
        problem = swept.falsehood(told, versions()) if told else None

        def change(content: Json) -> None:
            run = content["runs"].get(self.run.run)
            if run is None:
                run = content["runs"][self.run.run] = self._describe_run(told)
            record = {
                "benchmark": benchmark,
                "status": "running",
                "pid": os.getpid(),
                "process": self.process,
                "order": 1 + sum(len(processes) for processes in run["cells"].values()),
                "started": _now(),
                "started_at": time.time(),
                "timeout": timeout,
                "trace": str(self.trace),
                **({"status": "failed", "reason": problem} if problem else {}),
            }
            run["cells"].setdefault(cell, {})[self.process] = record

        self._update(change)
        if problem:
            self.trace.unlink(missing_ok=True)
            raise CellFailed(problem)

    def never_started(self, cells: Iterable[str], reason: str, told: Json) -> None:
        """Put on record that no process could be started for `cells` with the version that a sweep was `told`."""

        def change(content: Json) -> None:
            run = content["runs"].setdefault(self.run.run, {**self._describe_run(told), "versions": {}})
            for cell in cells:
                record = {
                    "benchmark": "install",
                    "status": "failed",
                    "reason": reason,
                    "order": 1 + sum(len(processes) for processes in run["cells"].values()),
                    "started": _now(),
                    "started_at": time.time(),
                }
                run["cells"].setdefault(cell, {})[self.process] = record

        self._update(change)

    def record(self, cell: str, **facts: Any) -> None:
        """Add `facts` to this process's record of `cell`."""

        def change(content: Json) -> None:
            content["runs"][self.run.run]["cells"][cell][self.process].update(facts)

        self._update(change)

    def watch(self) -> None:
        """Let the fault handler write into the trace file when this process crashes or is told to stop."""
        with self._writing():
            self.trace.parent.mkdir(parents=True, exist_ok=True)
            stream = self.trace.open("w", encoding="utf-8")
        faulthandler.enable(stream)
        faulthandler.register(signal.SIGTERM, stream, chain=True)

    def records(self, cell: str) -> list[Json]:
        """Return what the processes of this run have recorded of `cell` so far, this one left out."""
        content = read(self.path) or {"runs": {}}
        processes = content["runs"].get(self.run.run, {}).get("cells", {}).get(cell, {})
        return [record for process, record in processes.items() if process != self.process]

    def _describe_run(self, told: Json | None) -> Json:
        pins = pin_mismatches(self.run.project, self.run.stack)
        return {
            "started": _now(),
            "host": host.facts(),
            "versions": versions(),
            "stack": self.run.stack,
            "stack_mismatches": pins,
            **({"swept": told} if told else {}),
            "uncommitted_changes": asv_names.has_uncommitted_changes(self.run.project),
            "asv": {key: value for key, value in sorted(os.environ.items()) if key.startswith("ASV_")},
            "cells": {},
        }

    def _update(self, change: Callable[[Json], None]) -> None:
        """Apply `change` to the file: one writer at a time, and the new content appears at once or not at all."""
        with self._writing():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _locked(self.path):
                content = read(self.path)
                if content is None:
                    if self.path.exists():
                        aside = self.path.with_name(f"{self.path.name}.unreadable-{self.process}")
                        self.path.rename(aside)
                        artifacts.say(f"{self.path} is unreadable: kept as {aside.name}, a new one is begun")
                    content = {
                        "schema": SCHEMA,
                        "machine": self.run.machine,
                        "commit": self.run.commit,
                        "environment": self.run.environment,
                        "stack": self.run.stack,
                        "runs": {},
                    }
                change(content)
                write_json(self.path, content)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise from_os_error(error, self.path.parent, "evidence", None) from error


def write_json(path: Path, content: Json) -> None:
    """Write strict JSON to `path` by an atomic rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(content, indent=1, sort_keys=True, allow_nan=False), encoding="utf-8")
    temporary.replace(path)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
