"""What became of processes that could not say it: records that are still running with nobody behind them."""

from __future__ import annotations

import contextlib
import copy
import fcntl
import json
from collections.abc import Iterator
from pathlib import Path

from machmeter import atomic
from machmeter.json_shape import Json, decode
from machmeter.machine import process
from machmeter.measure.evidence_shape import SCHEMA, Record
from machmeter.measure.record_parts import Outcome, merged


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
        left = [record for cell in run.get("cells", {}).values() for record in cell.values()]
        last = max((record.get("order", 0) for record in left), default=0)
        for found in left:
            if found.get("status") == "running" and (outcome := death(decode(Record, found), last=last)):
                found |= merged(outcome)
    return settled


def death(record: Record, *, last: int) -> Outcome | None:
    """Return what became of the process of a running `record`, or None where it lives.

    `last` is the order of the run's last record. Raises ValueError where the record does not say which process it is.
    """
    if record.pid is None:
        raise ValueError("a running record without a process")
    alive = process.is_running(int(record.pid), str(record.process))
    return None if alive else _cause_of_death(record, last=record.order == last)


# How the fault handler begins its report, and the signal behind it.
_FATAL = {
    "Segmentation fault": 11,
    "Aborted": 6,
    "Bus error": 7,
    "Illegal instruction": 4,
    "Floating": 8,
}


def _cause_of_death(record: Record, *, last: bool) -> Outcome:
    """Return how a process died, from the trace that the fault handler left, if it could leave one.

    SIGKILL leaves none. Where it hit the `last` process of a run, the whole run may have been killed.
    """
    path = Path(record.trace or "")
    try:
        trace, ended = path.read_text(encoding="utf-8", errors="replace"), path.stat().st_mtime
    except OSError:
        trace, ended = "", 0.0
    if not trace.strip():
        peak = record.peak_resident_bytes
        known = f"; {peak / 1e6:.0f} MB were resident after loading" if peak else ""
        other = ", or the run was interrupted" if last else ""
        reason = f"killed (signal 9), most likely by the kernel for lack of memory{other}{known}"
        return Outcome(status="failed", reason=reason)
    for name, number in _FATAL.items():
        if name in trace.splitlines()[0]:
            return Outcome(status="failed", reason=f"crashed (signal {number}, {name.lower()})")
    seconds = ended - (record.started_at or ended)
    limit = record.timeout
    # asv's clock starts before ours: importing and finding the benchmark come first.
    if limit and seconds >= 0.9 * limit - 2.0:
        return Outcome(status="failed", reason=f"timed out: stopped after {seconds:.0f} s (limit {limit:.0f} s)")
    return Outcome(status="interrupted", reason=f"stopped (signal 15) after {seconds:.0f} s")


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
    atomic.replace(path, json.dumps(content, indent=1, sort_keys=True, allow_nan=False))
