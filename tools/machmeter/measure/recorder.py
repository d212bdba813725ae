"""What really ran, written as it happens into the evidence file of the run: one writer at a time, atomically.

What is in the file already is kept as it is, whatever version of machmeter wrote it: parts are added to it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from machmeter import asv_names, json_shape
from machmeter.errors import CellFailed, from_os_error
from machmeter.json_shape import Json
from machmeter.machine import host, process
from machmeter.measure.current_run import AsvRun
from machmeter.measure.dead_processes import locked, read, write_json
from machmeter.measure.evidence_shape import SCHEMA, EvidenceFile, Record, Run
from machmeter.measure.record_parts import Begun, NeverBegun, Part, merged
from machmeter.workload import artifacts, pinned


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
        problem = swept.falsehood(pinned.installed()) if swept else None

        def change(content: Json) -> None:
            run = content["runs"].get(self.run.run)
            if run is None:
                run = content["runs"][self.run.run] = json_shape.encode(self._describe_run(swept))
            begun = Begun(
                status="failed" if problem else "running",
                reason=problem,
                benchmark=benchmark,
                pid=os.getpid(),
                process=self.process,
                order=_next(run),
                started=_now(),
                started_at=time.time(),
                timeout=timeout,
                trace=str(self.trace),
            )
            run["cells"].setdefault(cell, {})[self.process] = merged(begun)

        self._update(change)
        if problem:
            self.trace.unlink(missing_ok=True)
            raise CellFailed(problem)

    def never_started(self, cells: Iterable[str], reason: str, swept: pinned.Swept) -> None:
        """Put on record that no process could be started for `cells` with the version that is `swept`."""

        def change(content: Json) -> None:
            described = replace(self._describe_run(swept), versions={})
            run = content["runs"].setdefault(self.run.run, json_shape.encode(described))
            for cell in cells:
                never = NeverBegun(
                    benchmark="install",
                    status="failed",
                    reason=reason,
                    order=_next(run),
                    started=_now(),
                    started_at=time.time(),
                )
                run["cells"].setdefault(cell, {})[self.process] = merged(never)

        self._update(change)

    def record(self, cell: str, *parts: Part) -> None:
        """Add `parts` to this process's record of `cell`."""

        def change(content: Json) -> None:
            content["runs"][self.run.run]["cells"][cell][self.process].update(merged(*parts))

        self._update(change)

    def watch(self) -> None:
        """Let the fault handler write into the trace file when this process crashes or is told to stop."""
        with self._writing():
            self.trace.parent.mkdir(parents=True, exist_ok=True)
            stream = self.trace.open("w", encoding="utf-8")
        faulthandler.enable(stream)
        faulthandler.register(signal.SIGTERM, stream, chain=True)

    def records(self, cell: str) -> list[Record]:
        """Return what the processes of this run have recorded of `cell` so far, this one left out."""
        content = read(self.path) or {"runs": {}}
        processes = content["runs"].get(self.run.run, {}).get("cells", {}).get(cell, {})
        return [json_shape.decode(Record, left) for process, left in processes.items() if process != self.process]

    def _describe_run(self, swept: pinned.Swept | None) -> Run:
        return Run(
            started=_now(),
            host=host.facts(),
            versions=pinned.installed(),
            stack=self.run.stack,
            stack_mismatches=pinned.mismatches(self.run.project, self.run.stack),
            swept=swept,
            uncommitted_changes=asv_names.has_uncommitted_changes(self.run.project),
            asv={key: value for key, value in sorted(os.environ.items()) if key.startswith("ASV_")},
        )

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
                    content = json_shape.encode(self._empty_file())
                change(content)
                write_json(self.path, content)

    def _empty_file(self) -> EvidenceFile:
        return EvidenceFile(
            schema=SCHEMA,
            runs={},
            machine=self.run.machine,
            commit=self.run.commit,
            environment=self.run.environment,
            stack=self.run.stack,
        )

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise from_os_error(error, self.path.parent, "evidence", None) from error


def _next(run: Json) -> int:
    return 1 + sum(len(processes) for processes in run["cells"].values())


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
