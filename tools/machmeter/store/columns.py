"""All result files as a few long columns: how a store of millions of numbers is held, joined and kept.

A file has rows (one benchmark each) and a row has cells (one for each combination of parameters). What a row's cells
stand for is its *grid*: the benchmark and its parameters, kept once for all rows that share it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Grid = tuple[str, tuple[tuple[str, ...], ...]]  # benchmark, and the values of each parameter


@dataclass(frozen=True, kw_only=True)
class Header:
    """What a result file says of itself. `path` is relative to the results folder."""

    path: str
    folder: str
    machine: str | None
    commit: str
    date: int
    environment: str
    python: str
    requirements: tuple[tuple[str, str], ...]
    variables: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]  # of the machine
    problems: tuple[str, ...]  # what of this file was left out


_ROWS = ("row_grid", "row_version", "row_started", "row_seconds")
_CELLS = ("value", "low", "high", "state", "samples")
_CALLS = ("call_cell", "call_count", "call_tail")


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Files, their rows and their cells, in the order in which they were read."""

    headers: tuple[Header, ...]
    grids: tuple[Grid, ...]
    versions: tuple[str, ...]
    file_rows: NDArray[np.int64]  # where each file's rows begin, and the end
    file_cells: NDArray[np.int64]  # where each file's cells begin, and the end
    file_calls: NDArray[np.int64]  # where the cells begin of which each file has single calls, and the end
    row_grid: NDArray[np.int32]
    row_version: NDArray[np.int32]
    row_started: NDArray[np.int64]  # milliseconds since 1970, 0 where unknown
    row_seconds: NDArray[np.float64]  # that the benchmark took, 0.0 where unknown
    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    state: NDArray[np.uint8]
    samples: NDArray[np.int32]
    call_cell: NDArray[np.int32]  # number in its file of a cell whose samples asv kept
    call_count: NDArray[np.int32]  # of its samples
    call_tail: NDArray[np.float64]  # their 95th percentile, NaN where they are too few: a site shows no more of them

    def select(self, keep: Sequence[int]) -> Table:
        """Return the files numbered `keep`, in that order."""
        if list(keep) == list(range(len(self.headers))):
            return self
        rows, cells = _stretches(self.file_rows, keep), _stretches(self.file_cells, keep)
        calls = _stretches(self.file_calls, keep)
        chosen = np.asarray(keep, np.int64)
        columns: dict[str, Any] = {name: _taken(getattr(self, name), rows) for name in _ROWS}
        columns |= {name: _taken(getattr(self, name), cells) for name in _CELLS}
        columns |= {name: _taken(getattr(self, name), calls) for name in _CALLS}
        return Table(
            headers=tuple(self.headers[number] for number in keep),
            grids=self.grids,
            versions=self.versions,
            file_rows=_ends([np.diff(self.file_rows)[chosen]]),
            file_cells=_ends([np.diff(self.file_cells)[chosen]]),
            file_calls=_ends([np.diff(self.file_calls)[chosen]]),
            **columns,
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the columns by name."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: column for name, column in found.items() if isinstance(column, np.ndarray)}


def size(params: tuple[tuple[str, ...], ...]) -> int:
    """Return how many combinations the values `params` of some parameters have."""
    count = 1
    for values in params:
        count *= len(values)
    return count


def combinations(params: tuple[tuple[str, ...], ...]) -> list[tuple[str, ...]]:
    """Return the combinations in asv's order. Those that would read alike are numbered, so that none is lost."""
    found = list(itertools.product(*params))
    seen: dict[tuple[str, ...], int] = {}
    for number, values in enumerate(found):
        seen[values] = seen.get(values, 0) + 1
        if seen[values] > 1:
            found[number] = (*values[:-1], f"{values[-1]} #{seen[values]}")
    return found


def shown(value: str) -> str:
    """Return a parameter's value as a reader writes it: asv keeps repr(), so text has quotes."""
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value


def concatenate(tables: Iterable[Table]) -> Table:
    """Return the files of all `tables`, one after the other."""
    given = list(tables)
    if len(given) == 1:
        return given[0]
    grids: dict[Grid, int] = {}
    versions: dict[str, int] = {}
    row_grid, row_version = [], []
    for table in given:
        of_grid = np.array([grids.setdefault(grid, len(grids)) for grid in table.grids], np.int32)
        of_version = np.array([versions.setdefault(text, len(versions)) for text in table.versions], np.int32)
        row_grid.append(of_grid[table.row_grid])
        row_version.append(of_version[table.row_version])
    return Table(
        headers=tuple(header for table in given for header in table.headers),
        grids=tuple(grids),
        versions=tuple(versions),
        file_rows=_ends([np.diff(table.file_rows) for table in given]),
        file_cells=_ends([np.diff(table.file_cells) for table in given]),
        file_calls=_ends([np.diff(table.file_calls) for table in given]),
        row_grid=_join(row_grid, np.int32),
        row_version=_join(row_version, np.int32),
        row_started=_join([table.row_started for table in given], np.int64),
        row_seconds=_join([table.row_seconds for table in given], np.float64),
        value=_join([table.value for table in given], np.float64),
        low=_join([table.low for table in given], np.float64),
        high=_join([table.high for table in given], np.float64),
        state=_join([table.state for table in given], np.uint8),
        samples=_join([table.samples for table in given], np.int32),
        call_cell=_join([table.call_cell for table in given], np.int32),
        call_count=_join([table.call_count for table in given], np.int32),
        call_tail=_join([table.call_tail for table in given], np.float64),
    )


def _join(parts: Sequence[NDArray[Any]], kind: Any) -> NDArray[Any]:
    return np.concatenate([*parts, np.empty(0, kind)]).astype(kind, copy=False)


def _ends(counts: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(_join(counts, np.int64))])


def _stretches(ends: NDArray[np.int64], keep: Sequence[int]) -> list[tuple[int, int]]:
    """Return where the items of the groups `keep` begin and end: copying stretches is far faster than picking items."""
    found: list[tuple[int, int]] = []
    for group in keep:
        begin, end = int(ends[group]), int(ends[group + 1])
        if found and found[-1][1] == begin:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def _taken(column: NDArray[Any], stretches: Sequence[tuple[int, int]]) -> NDArray[Any]:
    return np.concatenate([column[:0], *(column[begin:end] for begin, end in stretches)])


# What a point is. Only OK has a number. asv writes NaN both for what is not available here and for what was not
# run: SKIPPED says just that, and where there is evidence it is told apart as NOT_AVAILABLE or NOT_RUN.
OK, FAILED, SKIPPED, UNREADABLE, NOT_AVAILABLE, NOT_RUN = range(6)

STATES = ("ok", "failed", "skipped", "unreadable", "n/a", "not run")  # names of the states, by number
