"""What really ran, written as it happens into the evidence file of the run: one writer at a time, atomically."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from machmeter import asv_names, json_shape
from machmeter.errors import CellFailed, from_os_error
from machmeter.machine import host, process
from machmeter.measure.current_run import AsvRun
from machmeter.measure.settling import SCHEMA, Json, locked, read, write_json
from machmeter.workload import artifacts, pinned


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


class Recorder:
    """Writes the evidence of this process into the file of its run."""

    def __init__(self, run: AsvRun) -> None:
        self.run = run
        self.path = run.evidence_file
        self.process = process.process_identity(os.getpid())
        self.trace = self.path.parent / ".traces" / f"{self.process}.txt"

    def begin(self, cell: str, benchmark: str, timeout: float) -> None:
        """Say that this process starts on `benchmark` of `cell` and may take `timeout` seconds.

        Raises CellFailed, with the failure on record, where another version is installed than a sweep says.
        """
        swept = pinned.swept()
        problem = swept.falsehood(versions()) if swept else None

        def change(content: Json) -> None:
            run = content["runs"].get(self.run.run)
            if run is None:
                run = content["runs"][self.run.run] = self._describe_run(swept)
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

    def never_started(self, cells: Iterable[str], reason: str, swept: pinned.Swept) -> None:
        """Put on record that no process could be started for `cells` with the version that is `swept`."""

        def change(content: Json) -> None:
            run = content["runs"].setdefault(self.run.run, {**self._describe_run(swept), "versions": {}})
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

    def _describe_run(self, swept: pinned.Swept | None) -> Json:
        pins = pin_mismatches(self.run.project, self.run.stack)
        return {
            "started": _now(),
            "host": json_shape.encode(host.facts()),
            "versions": versions(),
            "stack": self.run.stack,
            "stack_mismatches": pins,
            **({"swept": json_shape.encode(swept)} if swept else {}),
            "uncommitted_changes": asv_names.has_uncommitted_changes(self.run.project),
            "asv": {key: value for key, value in sorted(os.environ.items()) if key.startswith("ASV_")},
            "cells": {},
        }

    def _update(self, change: Callable[[Json], None]) -> None:
        """Apply `change` to the file: one writer at a time, and the new content appears at once or not at all."""
        with self._writing():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with locked(self.path):
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


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
