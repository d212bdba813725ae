"""What became of processes that could not say it: records that are still running with nobody behind them."""

from __future__ import annotations

import contextlib
import copy
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from machmeter.machine import process

SCHEMA = 1

Json = dict[str, Any]


def settle_file(path: Path) -> Json | None:
    """Write down what `settle` finds in `path`, and return it: the traces of dead processes stay on this machine."""
    with locked(path):
        content = read(path)
        if content is not None and content != json.loads(path.read_bytes()):
            write_json(path, content)
    return content


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
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
    return process.is_running(int(record["pid"]), str(record.get("process")))


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


def write_json(path: Path, content: Json) -> None:
    """Write strict JSON to `path` by an atomic rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(content, indent=1, sort_keys=True, allow_nan=False), encoding="utf-8")
    temporary.replace(path)
