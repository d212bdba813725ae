"""What is slower, larger or less accurate on the main branch than it was, beyond doubt and by nobody's machine.

Pure. A regression is a step that raises an alert (`beyond_doubt`: at least four commits agree on the new level, so one
odd run, or two in a row, is none) and from which the series has not come back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from machmeter.changes import beyond_doubt, doubts, judge
from machmeter.changes.detect import Step
from machmeter.changes.judge import Change
from machmeter.changes.of_history import Found, listed
from machmeter.history import environment_changes
from machmeter.history.data import History, Series
from machmeter.text import two_numbers
from machmeter.workload.names import is_control

RECENT = 50  # points of a series: whoever begins to watch an old store does not want to hear of its past
NEAR = 3  # points by which the place of a step may move as more points come


@dataclass(frozen=True, kw_only=True)
class Regression:
    """A series that is worse than it was. `now` is its present level, `importance` orders."""

    series: Series
    place: int  # of the first point of the worse level, in the series
    near: frozenset[str]  # the commits around it: the place may move a little as more points come
    last_good: str  # commits, in full
    first_bad: str
    before: float
    now: float
    words: str
    points: int  # since then
    importance: float
    libraries: str = ""  # "openvino 2026.2.1 → 2026.4.1"


def find(history: History, changes: Mapping[str, Sequence[Change]]) -> dict[str, list[Regression]]:
    """Return the regressions by benchmark (a model, a backend and a metric), the most important first.

    A series that became worse twice has two.

    `changes` is what `of_history.find` has found. A step that came with another CPU, driver or thread budget is left
    out, and one that came while a control of its machine moved too.
    """
    found = listed(history, changes)
    moved = [item for item in found if is_control(item.series.benchmark.name) and _is_certain(item, changes)]
    groups: dict[str, list[Regression]] = {}
    for item in found:
        name = item.series.benchmark.name
        if is_control(name) or item.change.verdict != "regression" or not _is_certain(item, changes):
            continue
        regression = _regression(history, item, changes[item.series.key])
        if regression and not _is_the_machine(item, moved):
            groups.setdefault(name, []).append(regression)
    return groups


def _is_certain(item: Found, changes: Mapping[str, Sequence[Change]]) -> bool:
    """Return whether a change is beyond doubt, among all changes of its series' present version."""
    series = item.series
    only = np.where(series.measured & ~series.older, series.value, np.nan)
    steps = [
        Step(index=change.index, before=change.before, after=change.after, p=change.p)
        for change in changes[series.key]
        if not series.older[change.index]
    ]
    return any(step.index == item.change.index for step in beyond_doubt.alerting(only, steps))


def _regression(history: History, item: Found, changes: Sequence[Change]) -> Regression | None:
    series, change = item.series, item.change
    if change.index < len(series) - RECENT:
        return None
    now = max(changes, key=lambda one: one.index).after
    lasts = judge.verdict(change.before, now, series.benchmark.direction) == "regression"
    if not lasts or doubts.relative_change(change.before, now) < doubts.SMALLEST_CHANGE:
        return None
    near = series.commits[max(0, change.index - NEAR) : change.index + NEAR + 1]
    packages = [event.text for event in item.events if event.kind == "packages"]
    return Regression(
        series=series,
        place=change.index,
        near=frozenset(history.commits[int(commit)].hash for commit in near),
        last_good=history.commits[item.last_before].hash,
        first_bad=history.commits[item.commit].hash,
        before=change.before,
        now=now,
        words=two_numbers.words(change.before, now, series.benchmark.unit),
        points=int(series.measured[change.index :].sum()),
        importance=change.importance,
        libraries=", ".join(packages),
    )


def _is_the_machine(item: Found, moved: Sequence[Found]) -> bool:
    """Return whether the machine explains a change: it became another, or its control moved at the same time."""
    if any(name in environment_changes.INCOMPARABLE for event in item.events for name, _, _ in event.details):
        return True
    machine = item.series.machine.key
    return any(
        other.series.machine.key == machine and other.last_before < item.commit and item.last_before < other.commit
        for other in moved
    )
