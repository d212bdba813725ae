"""Badge endpoints in the format of shields.io: images/s of a cell and where it went."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from machmeter import cells, metrics
from machmeter.changes.judge import Change
from machmeter.history.model import STATES, History, Series
from machmeter.results.table import throughput_digits

_TIMED = "time_forward"
_COLOURS = {"regression": "red", "improvement": "brightgreen", "change": "blue", "": "blue"}
_RECENT = 20  # points: a change before that is no news


def endpoints(history: History, changes: Mapping[str, Sequence[Change]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield path and content of the badge of every inference cell."""
    for item in history.series:
        if item.benchmark.method == _TIMED and cells.parse(cell_name(item)):
            yield f"data/badges/{item.key}.json", badge(item, changes.get(item.key, ()))


def cell_name(item: Series) -> str:
    """Return what may be the name of the cell whose latency a series is."""
    return f"{item.benchmark.module}({item.label})"


def badge(item: Series, changes: Sequence[Change] = ()) -> dict[str, Any]:
    """Return the badge of a series of latencies: the newest images/s, and the last change if it is recent."""
    cell = cells.parse(cell_name(item))
    assert cell is not None
    label = f"{cell.model} {cell.runtime} {' '.join([cell.precision, *cell.options.values()])}, batch {cell.batch}"
    measured = np.flatnonzero(item.measured)
    if not len(measured) or measured[-1] != len(item) - 1:
        return {"schemaVersion": 1, "label": label, "message": _without(item), "color": "lightgrey"}
    speed = metrics.images_per_second(float(item.value[measured[-1]]), cell.batch)
    recent = [change for change in changes if change.index >= len(item) - _RECENT]
    verdict = recent[-1].verdict if recent else ""
    message = f"{speed:.{throughput_digits(speed)}f} images/s"
    if recent and recent[-1].ratio:
        gain = 1 / recent[-1].ratio  # of images/s: the series is a latency
        message += f" ({100 * (gain - 1):+.0f} %)".replace("-", "\N{MINUS SIGN}")
    return {"schemaVersion": 1, "label": label, "message": message, "color": _COLOURS[verdict]}


def _without(item: Series) -> str:
    return STATES[item.state[-1]] if len(item) else "not run"
