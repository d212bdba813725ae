"""asv's result files, read strictly and without asv: a file or a row that cannot be used is named, never guessed at.

asv writes bare NaN and Infinity, which only a lenient parser takes: the standard library's.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter.store.columns import FAILED, OK, SKIPPED, UNREADABLE, Grid, Header, Table, size

FORMAT_VERSION = 2

# A grid that no project has, but that a few bytes of a hostile file can ask for.
LARGEST_GRID = 1_000_000

_NUMBERS = {float, int}
_MACHINE_FACTS = ("arch", "cpu", "num_cpu", "os", "ram")
_SHOWN_LENGTH = 40


class Unusable(Exception):
    """A file is not one of asv's result files in the present format. The text says what it is."""


def find(results: Path) -> list[str]:
    """Return the paths of all JSON files under `results` that should be results, relative to it, sorted."""
    found = []
    for folder, folders, names in _walk(results):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            (folder / name).relative_to(results).as_posix()
            for name in names
            if name.endswith(".json") and name not in ("machine.json", "benchmarks.json") and not name.startswith(".")
        ]
    return sorted(found)


def _walk(top: Path) -> Iterable[tuple[Path, list[str], list[str]]]:
    # Path.walk is new in Python 3.12.
    for folder, folders, names in os.walk(top):
        yield Path(folder), folders, names


def parse(content: bytes, path: str) -> Table:
    """Return the table of the one file whose bytes are `content`. Raises Unusable."""
    try:
        data = json.loads(content)
    except RecursionError as error:
        raise Unusable("is not an asv result file") from error
    except ValueError as error:
        raise Unusable("is empty" if not content.strip() else "is not valid JSON, perhaps half-written") from error
    columns, rows = _check(data)
    builder = _Builder()
    for benchmark, row in rows.items():
        builder.add(benchmark, row, columns)
    return builder.table(_header(data, path, builder.problems))


def _check(data: Any) -> tuple[dict[str, int], Mapping[str, Any]]:
    """Return the positions of the columns, and the rows. Raises Unusable where `data` has another shape."""
    if not isinstance(data, dict) or "commit_hash" not in data or "results" not in data:
        raise Unusable("is not an asv result file")
    version = data.get("version")
    if version == 1:
        raise Unusable("is in asv's old format (version 1): 'asv update' converts it")
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise Unusable(f"has format version {_short(version)} instead of {FORMAT_VERSION}")
    columns, rows = data.get("result_columns"), data["results"]
    if not isinstance(columns, list) or not {"result", "params"} <= {item for item in columns if isinstance(item, str)}:
        raise Unusable("is not an asv result file: it has no result_columns")
    if not isinstance(rows, dict):
        raise Unusable("is not an asv result file: its results are no object")
    if not isinstance(data["commit_hash"], str) or not data["commit_hash"]:
        raise Unusable("names no commit")
    return {name: number for number, name in enumerate(columns) if isinstance(name, str)}, rows


def _header(data: Mapping[str, Any], path: str, problems: list[str]) -> Header:
    noted = data.get("params")
    params: dict[str, Any] = noted if isinstance(noted, dict) else {}
    name = data.get("env_name")
    python = data.get("python")
    machine = params.get("machine")
    return Header(
        path=path,
        folder=path.rpartition("/")[0],
        machine=machine if isinstance(machine, str) and machine else None,
        commit=data["commit_hash"],
        date=_milliseconds(data.get("date")),
        environment=name if isinstance(name, str) else "",
        python=python if isinstance(python, str) else "",
        requirements=_texts(data.get("requirements")),
        variables=_texts(data.get("env_vars")),
        facts=_texts({fact: params[fact] for fact in _MACHINE_FACTS if fact in params}),
        problems=tuple(problems),
    )


def _texts(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        return ()
    return tuple(sorted((str(name), "" if text is None else str(text)) for name, text in value.items()))


def _milliseconds(value: Any) -> int:
    """Return a time as asv keeps it, 0 where there is none that can be one."""
    return int(value) if _is_number(value) and 0 < value < 1e15 else 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 1] + "…"


class _Builder:
    """Collects rows as long lists: turning each short one into an array would take longer than parsing."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._grids: dict[Grid, int] = {}
        self._versions: dict[str, int] = {}
        self._rows: list[tuple[int, int, int]] = []
        self._places: list[tuple[str, int]] = []  # benchmark and number of cells, by row
        self._values: list[Any] = []
        self._low: list[Any] = []
        self._high: list[Any] = []
        self._samples: list[Any] = []

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
        text = "" if version is None else version if isinstance(version, str) else _short(version)
        self._rows.append((grid, self._versions.setdefault(text, len(self._versions)), _milliseconds(started)))
        self._places.append((benchmark, count))
        self._values.extend(values)
        absent = [None] * count
        for kept, name in (
            (self._low, "stats_ci_99_a"),
            (self._high, "stats_ci_99_b"),
            (self._samples, "stats_repeat"),
        ):
            found = cell(name)
            kept.extend(found if isinstance(found, list) and len(found) == count else absent)

    def table(self, header: Header) -> Table:
        """Return what was taken, as the table of one file."""
        value, state = self._numbers()
        low, high = _lenient(self._low), _lenient(self._high)
        # asv rounds an interval to five digits, so that its end may miss the value by the rounding.
        low = np.where(np.isfinite(low) & (state == OK), np.minimum(low, value), np.nan)
        high = np.where(np.isfinite(high) & (state == OK), np.maximum(high, value), np.nan)
        rows = np.array(self._rows, np.int64).reshape(-1, 3)
        samples = np.clip(np.nan_to_num(_lenient(self._samples), nan=0.0, posinf=0.0, neginf=0.0), 0, 2**31 - 1)
        # The problems of single values are known only now.
        header = Header(**{**header.__dict__, "problems": tuple(self.problems)})
        return Table(
            headers=(header,),
            grids=tuple(self._grids),
            versions=tuple(self._versions),
            file_rows=np.array([0, len(rows)], np.int64),
            file_cells=np.array([0, len(value)], np.int64),
            row_grid=rows[:, 0].astype(np.int32),
            row_version=rows[:, 1].astype(np.int32),
            row_started=rows[:, 2],
            value=value,
            low=low,
            high=high,
            state=state,
            samples=samples.astype(np.int32),
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
            try:
                usable = _is_number(item)
            except OverflowError:  # an integer that no float can hold
                usable = False
            if usable:
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
            self.problems.append(f"{benchmark}: {_short(example)}{many} is no finite number")


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
