"""Badge endpoints in the format of shields.io: one says the images/s of a cell, another where they went lately."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from machmeter import metrics
from machmeter.changes.judge import Change
from machmeter.history.data import History, Series
from machmeter.site.data.shapes import Badge
from machmeter.store.columns import STATES
from machmeter.text import two_numbers
from machmeter.text.numbers import throughput_digits
from machmeter.workload import cells

_TIMED = "time_forward"
_COLOURS = {"regression": "red", "improvement": "brightgreen"}
_WITHOUT = "lightgrey"
RECENT = 20  # points that a trend looks back
_FEWEST = 10  # points: from fewer nobody finds a change


def endpoints(history: History, changes: Mapping[str, Sequence[Change]]) -> Iterator[tuple[str, Badge]]:
    """Yield path and content of the badges of every inference cell."""
    for item, label in cells_of(history):
        yield speed_path(item), speed(item, label)
        yield trend_path(item), trend(item, label, changes.get(item.key, ()))


def cells_of(history: History) -> Iterator[tuple[Series, str]]:
    """Yield the latencies of every inference cell, and what its badges are labelled with."""
    for item in history.series:
        cell = _cell(item)
        if cell is not None:
            options = " ".join([cell.precision, *cell.options.values()])
            yield item, f"{cell.model} {cell.runtime} {options}, batch {cell.batch}"


def speed_path(item: Series) -> str:
    """Return where the badge of its images/s lies, below the site."""
    return f"data/badges/{item.key}.json"


def trend_path(item: Series) -> str:
    """Return where the badge of its trend lies, below the site."""
    return f"data/badges/{item.key}-trend.json"


def speed(item: Series, label: str) -> Badge:
    """Return the badge of the newest images/s; the state where the newest point has no number."""
    cell = _cell(item)
    if cell is None or not _is_measured(item):
        return _badge(label, _state(item), _WITHOUT)
    found = metrics.images_per_second(float(item.value[-1]), cell.batch)
    return _badge(label, f"{found:.{throughput_digits(found)}f} images/s", "blue")


def trend(item: Series, label: str, changes: Sequence[Change] = ()) -> Badge:
    """Return the badge of what became of images/s within the last 20 points, by the changes that were found.

    It says "steady", or "faster" or "slower" and by how much.
    """
    label = f"{label}: trend"
    if not _is_measured(item):
        return _badge(label, _state(item), _WITHOUT)
    points = min(int(np.count_nonzero(item.measured & ~item.older)), RECENT)
    if points < _FEWEST:
        return _badge(label, f"too few points ({points})", _WITHOUT)
    gain = 1.0
    for change in changes:
        if change.ratio and change.index >= len(item) - RECENT and item.version[change.index] == item.version[-1]:
            gain /= change.ratio  # the series is a latency
    shown = two_numbers.factor(gain, 0)
    if shown == "0 %":
        return _badge(label, f"steady over {points} points", "blue")
    word, verdict = ("faster", "improvement") if gain > 1 else ("slower", "regression")
    return _badge(label, f"{word}, {shown} over {points} points", _COLOURS[verdict])


def _cell(item: Series) -> cells.Cell | None:
    """Return the cell whose latency a series is, None where it is another metric or project."""
    if item.benchmark.method != _TIMED:
        return None
    return cells.parse(f"{item.benchmark.module}({item.label})")


def _is_measured(item: Series) -> bool:
    return len(item) > 0 and bool(item.measured[-1])


def _state(item: Series) -> str:
    return STATES[item.state[-1]] if len(item) else "not run"


def _badge(label: str, message: str, colour: str) -> Badge:
    return {"schemaVersion": 1, "label": label, "message": message, "color": colour}
