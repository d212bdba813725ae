"""The changes of all series of a history: detected once for each series, and again only when its numbers changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter import atomic
from machmeter.changes import detect, judge
from machmeter.changes.detect import Step
from machmeter.changes.judge import Change
from machmeter.history.data import Event, History, Series
from machmeter.store import cache as caching
from machmeter.store import parallel

Detector = Callable[[Sequence[NDArray[np.float64]]], Sequence[Sequence[Step]]]

_FILE = "steps.json"


@dataclass(frozen=True, kw_only=True)
class Found:
    """A change of one series. Its points are numbered as in the series."""

    series: Series
    change: Change
    commit: int  # position in History.commits of the first point of the new level
    last_before: int  # position of the last point of the old level: the change came after it, with `commit` at latest
    events: tuple[Event, ...]  # what else changed between the two


def find(
    history: History, *, cache: Path | None = None, processes: int = 1, detector: Detector | None = None
) -> dict[str, list[Change]]:
    """Return the changes of every series by its key, in the order of its points.

    Points of different versions of a benchmark are never compared. `cache` is a folder that keeps the steps; a
    `detector` of one's own is not cached.
    """
    kept = _load(cache) if cache and detector is None else {}
    parts = [(item, points) for item in history.series for points in _comparable(item)]
    digests = [_digest(item, points) for item, points in parts]
    missing = [number for number, text in enumerate(digests) if text not in kept]
    arrays = [parts[number][0].value[parts[number][1]] for number in missing]
    count = processes if len(arrays) >= detect.WORTH_PROCESSES else 1
    shared = parallel.share(detector or detect.detect_many, arrays, count)
    steps = {digest: kept[digest] for digest in digests if digest in kept}
    for part, some in enumerate(shared):  # dealt like cards
        steps |= {digests[number]: list(item) for number, item in zip(missing[part :: len(shared)], some, strict=True)}
    if cache and detector is None and (missing or len(steps) != len(kept)):
        _save(cache, steps)
    changes: dict[str, list[Change]] = {item.key: [] for item in history.series}
    for (item, points), text in zip(parts, digests, strict=True):
        placed = [Step(**{**vars(step), "index": int(points[step.index])}) for step in steps[text]]
        if placed:
            only = np.full(len(item), np.nan)
            only[points] = item.value[points]
            changes[item.key] += judge.judge(only, placed, item.benchmark.direction, item.benchmark.unit)
    return {key: sorted(some, key=lambda change: change.index) for key, some in changes.items()}


def listed(history: History, changes: Mapping[str, Sequence[Change]]) -> list[Found]:
    """Return all changes of the present versions, most important first, and the newest first among equals."""
    placed: dict[tuple[str, str], list[Event]] = {}
    for event in history.events:
        placed.setdefault((event.machine.key, event.environment.key), []).append(event)
    found = []
    for item in history.series:
        events = placed.get((item.machine.key, item.environment.key), ())
        for change in changes.get(item.key, ()):
            if item.version[change.index] != item.benchmark.current:
                continue
            commit, before = int(item.commits[change.index]), int(item.commits[change.last_before])
            between = tuple(event for event in events if before < event.commit <= commit)
            found.append(Found(series=item, change=change, commit=commit, last_before=before, events=between))
    return sorted(found, key=lambda one: (-one.change.importance, -one.commit, one.series.key))


def _comparable(series: Series) -> Iterator[NDArray[np.intp]]:
    """Yield the points of each version that has numbers."""
    measured = series.measured
    if len(series) and (series.version == series.version[0]).all():
        if len(points := measured.nonzero()[0]):
            yield points
        return
    for version in np.unique(series.version[measured]):
        yield np.flatnonzero(measured & (series.version == version))


def _digest(series: Series, points: NDArray[np.intp]) -> str:
    return hashlib.blake2b(series.value[points].tobytes(), digest_size=16).hexdigest()


def _detector_digest() -> str:
    """Return a hash of all code of this folder: steps that another detector found are not used."""
    return caching.code_digest(Path(__file__).parent)


def _load(folder: Path) -> dict[str, list[Step]]:
    try:
        content: dict[str, Any] = json.loads((folder / _FILE).read_bytes())
        if content["detector"] != _detector_digest():
            return {}
        return {
            text: [Step(index=index, before=before, after=after, p=p) for index, before, after, p in steps]
            for text, steps in content["steps"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _save(folder: Path, steps: Mapping[str, Sequence[Step]]) -> None:
    plain = {text: [[step.index, step.before, step.after, step.p] for step in some] for text, some in steps.items()}
    content = json.dumps({"detector": _detector_digest(), "steps": plain}, allow_nan=False).encode()
    atomic.write(folder / _FILE, content, caching.WHAT)
