"""The rows of one of asv's result files, taken one by one into the long columns of a table.

A row or a value that cannot be used is named, never guessed at. The single calls that asv keeps are taken only where
they are asked for: of theirs a table has the count and the tail.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter import metrics
from machmeter.store.columns import FAILED, OK, SKIPPED, UNREADABLE, Grid, Header, Table, size

# A grid that no project has, but that a few bytes of a hostile file can ask for.
LARGEST_GRID = 1_000_000

_NUMBERS = {float, int}
_SHOWN_LENGTH = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class Calls:
    """What asv has of single calls: for each cell of a table its samples, for each row how long it took."""

    samples: Sequence[Sequence[float]]
    seconds: Sequence[float]  # 0.0 where asv did not say


def milliseconds(value: Any) -> int:
    """Return a time as asv keeps it, 0 where there is none that can be one."""
    return int(value) if is_number(value) and 0 < value < 1e15 else 0


def is_number(value: Any) -> bool:
    """Return whether `value` is a finite number that fits into a float."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def short(value: Any) -> str:
    """Return `value` as JSON, cut to what fits into a message."""
    text = json.dumps(value)
    return text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 1] + "…"


def tail(calls: list[Any]) -> tuple[int, float]:
    """Return how many numbers there are among `calls` (seconds), and their 95th percentile, NaN where too few."""
    if set(map(type, calls)) <= _NUMBERS:
        try:
            ascending = np.sort(np.array(calls, np.float64)).tolist()
        except OverflowError:
            pass
        else:
            if math.isfinite(ascending[0]) and math.isfinite(ascending[-1]):  # NaN is sorted to the end
                return len(ascending), _nan_for_none(metrics.percentile(ascending, 0.95, ordered=True))
    numbers = [float(call) for call in calls if is_number(call)]
    return len(numbers), _nan_for_none(metrics.percentile(numbers, 0.95))


def _nan_for_none(number: float | None) -> float:
    return math.nan if number is None else number


class Rows:
    """Collects rows as long lists: turning each short one into an array would take longer than parsing."""

    def __init__(self, *, with_calls: bool = False) -> None:
        self.problems: list[str] = []
        self._with_calls = with_calls
        self._grids: dict[Grid, int] = {}
        self._versions: dict[str, int] = {}
        self._rows: list[tuple[int, int, int]] = []
        self._places: list[tuple[str, int]] = []  # benchmark and number of cells, by row
        self._values: list[Any] = []
        self._low: list[Any] = []
        self._high: list[Any] = []
        self._samples: list[Any] = []
        self._calls: list[Any] = []
        self._tails: list[tuple[int, int, float]] = []  # number of the cell, of its calls, and their 95th percentile
        self._seconds: list[float] = []

    def add(self, benchmark: str, row: Any, columns: Mapping[str, int]) -> None:
        """Take one row, or note why not."""
        if not isinstance(row, list):
            self.problems.append(f"{benchmark}: is no row of results")
            return
        width = len(row)

        def cell(name: str) -> Any:
            position = columns.get(name, width)
            return row[position] if position < width else None

        params = _grid(cell("params"))
        count = size(params) if params is not None else 0
        if params is None or count > LARGEST_GRID:
            self.problems.append(f"{benchmark}: its parameters cannot be read")
            return
        values = cell("result")
        if values is None:  # everything failed, for instance the build
            values = [None] * count
        elif not isinstance(values, list):
            values = [values]
        if len(values) != count:
            self.problems.append(f"{benchmark}: {len(values)} results for {count} combinations of parameters")
            return
        version, started = cell("version"), cell("started_at")
        grid = self._grids.setdefault((benchmark, params), len(self._grids))
        text = "" if version is None else version if isinstance(version, str) else short(version)
        self._rows.append((grid, self._versions.setdefault(text, len(self._versions)), milliseconds(started)))
        self._places.append((benchmark, count))
        begin = len(self._values)
        self._values.extend(values)
        absent = [None] * count
        for kept, name in (
            (self._low, "stats_ci_99_a"),
            (self._high, "stats_ci_99_b"),
            (self._samples, "stats_repeat"),
        ):
            found = cell(name)
            kept.extend(found if isinstance(found, list) and len(found) == count else absent)
        calls, seconds = cell("samples"), cell("duration")
        self._seconds.append(float(seconds) if is_number(seconds) else 0.0)
        if isinstance(calls, list) and len(calls) == count:
            self._tails += [
                (begin + number, *tail(found))
                for number, found in enumerate(calls)
                if found and isinstance(found, list)
            ]
        if self._with_calls:
            self._calls.extend(calls if isinstance(calls, list) and len(calls) == count else absent)

    def calls(self) -> Calls:
        """Return what was taken of single calls."""
        samples = [item if isinstance(item, list) else () for item in self._calls]
        return Calls(
            samples=[tuple(float(call) for call in item if is_number(call)) for item in samples], seconds=self._seconds
        )

    def table(self, header: Header) -> Table:
        """Return what was taken, as the table of one file."""
        value, state = self._numbers()
        low, high = _lenient(self._low), _lenient(self._high)
        # asv rounds an interval to five digits, so that its end may miss the value by the rounding.
        low = np.where(np.isfinite(low) & (state == OK), np.minimum(low, value), np.nan)
        high = np.where(np.isfinite(high) & (state == OK), np.maximum(high, value), np.nan)
        rows = np.array(self._rows, np.int64).reshape(-1, 3)
        calls = np.array(self._tails, np.float64).reshape(-1, 3)
        samples = np.clip(np.nan_to_num(_lenient(self._samples), nan=0.0, posinf=0.0, neginf=0.0), 0, 2**31 - 1)
        # The problems of single values are known only now.
        header = replace(header, problems=tuple(self.problems))
        return Table(
            headers=(header,),
            grids=tuple(self._grids),
            versions=tuple(self._versions),
            file_rows=np.array([0, len(rows)], np.int64),
            file_cells=np.array([0, len(value)], np.int64),
            file_calls=np.array([0, len(calls)], np.int64),
            row_grid=rows[:, 0].astype(np.int32),
            row_version=rows[:, 1].astype(np.int32),
            row_started=rows[:, 2],
            row_seconds=np.array(self._seconds, np.float64),
            value=value,
            low=low,
            high=high,
            state=state,
            samples=samples.astype(np.int32),
            call_cell=calls[:, 0].astype(np.int32),
            call_count=calls[:, 1].astype(np.int32),
            call_tail=calls[:, 2],
        )

    def _numbers(self) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        """Return the values, and the state of each: null failed, NaN was skipped, the rest must be finite numbers."""
        values = self._values
        kinds = set(map(type, values))
        if kinds <= _NUMBERS | {type(None)}:
            try:
                value = np.array(values, np.float64)
            except OverflowError:
                value, odd = self._one_by_one()
            else:
                odd = np.isinf(value)
        else:
            value, odd = self._one_by_one()
        state = np.full(len(values), OK, np.uint8)
        state[np.isnan(value)] = SKIPPED
        if type(None) in kinds:
            state[np.fromiter((item is None for item in values), bool, len(values))] = FAILED
        if odd.any():
            state[odd] = UNREADABLE
            value[odd] = np.nan
            self._note(np.flatnonzero(odd))
        return value, state

    def _one_by_one(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        value = np.full(len(self._values), np.nan)
        odd = np.zeros(len(self._values), bool)
        for number, item in enumerate(self._values):
            if item is None or (isinstance(item, float) and math.isnan(item)):
                continue
            if is_number(item):
                value[number] = float(item)
            else:
                odd[number] = True
        return value, odd

    def _note(self, odd: NDArray[np.int64]) -> None:
        """Name each benchmark that has values which are no numbers, once."""
        ends = np.cumsum([count for _, count in self._places])
        rows, first, counts = np.unique(np.searchsorted(ends, odd, side="right"), return_index=True, return_counts=True)
        for row, position, count in zip(rows, first, counts, strict=True):
            benchmark = self._places[row][0]
            example = self._values[odd[position]]
            many = f" and {count - 1} more" if count > 1 else ""
            self.problems.append(f"{benchmark}: {short(example)}{many} is no finite number")


def _grid(params: Any) -> tuple[tuple[str, ...], ...] | None:
    """Return the values of each parameter as text, or None where they are no lists."""
    if params is None:
        return ()
    if not isinstance(params, list) or not all(isinstance(values, list) for values in params):
        return None
    return tuple(tuple(value if isinstance(value, str) else json.dumps(value) for value in values) for values in params)


def _lenient(values: list[Any]) -> NDArray[np.float64]:
    """Return numbers as numbers and everything else as NaN."""
    if set(map(type, values)) <= _NUMBERS | {type(None)}:
        try:
            return np.array(values, np.float64)
        except OverflowError:
            pass
    found = np.full(len(values), np.nan)
    for number, item in enumerate(values):
        if isinstance(item, float) or (isinstance(item, int) and not isinstance(item, bool) and abs(item) < 2**1000):
            found[number] = item
    return found
