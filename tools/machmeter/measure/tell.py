"""How measuring processes tell a waiting command what they finished.

They write a line each into a named pipe; whoever waits sleeps in a read. Nothing of ours polls, redraws or
runs a timer beside a measured process.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from machmeter.json_shape import Json, decode, encode, optional
from machmeter.measure.evidence_shape import Status

PIPE = "MACHMETER_PROGRESS"


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What a process says of itself when it ends: what it measured, and what became of it."""

    cell: str
    benchmark: str
    batch: int
    status: Status | None = optional()
    reason: str | None = optional()
    images_per_second: float | None = optional()
    median_seconds: float | None = optional()
    samples: int | None = optional()
    track_top1_agreement: float | None = optional()
    track_sqnr: float | None = optional()
    track_load_time: float | None = optional()


def tell(cell: str, benchmark: str, batch: int, known: Json) -> None:
    """Report the end of `benchmark` of `cell`, with what is `known` of it, to the command that waits, if one does."""
    pipe = os.environ.get(PIPE)
    if not pipe:
        return
    ending = decode(Ending, {**known, "cell": cell, "benchmark": benchmark, "batch": batch})
    try:
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # nobody reads any more
        return
    try:
        os.write(descriptor, (json.dumps(encode(ending)) + "\n").encode())
    except OSError:
        pass
    finally:
        os.close(descriptor)
