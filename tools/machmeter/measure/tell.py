"""How measuring processes tell a waiting command what they finished.

They write a line each into a named pipe; whoever waits sleeps in a read. Nothing of ours polls, redraws or
runs a timer beside a measured process.
"""

from __future__ import annotations

import json
import os

from machmeter.json_shape import Json

PIPE = "MACHMETER_PROGRESS"

_TOLD = (
    "status",
    "reason",
    "images_per_second",
    "median_seconds",
    "samples",
    "track_top1_agreement",
    "track_sqnr",
    "track_load_time",
)


def tell(cell: str, benchmark: str, batch: int, facts: Json) -> None:
    """Report the end of `benchmark` of `cell` to the command that waits, if one does."""
    pipe = os.environ.get(PIPE)
    if not pipe:
        return
    event = {"cell": cell, "benchmark": benchmark, "batch": batch}
    event |= {name: facts[name] for name in _TOLD if name in facts}
    try:
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # nobody reads any more
        return
    try:
        os.write(descriptor, (json.dumps(event) + "\n").encode())
    except OSError:
        pass
    finally:
        os.close(descriptor)
