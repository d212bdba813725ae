"""What a store holds of one machine, read once: results from the long columns, and the evidence of its runs.

Tables are built of this. What they show is the newest of each cell, so the values of a file and the records of a run
are taken out only where somebody asks: `at` says cheaply what there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from machmeter.store import asv_files, columns, reading_runs, values
from machmeter.store.columns import OK, SKIPPED, Table
from machmeter.store.runs import FolderOfRuns
from machmeter.store.values import Key, ResultFile, Value


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundFile:
    """One result file of asv, as it stands in the columns of `results`."""

    results: Results
    number: int

    @property
    def commit(self) -> str:
        """Return the commit that was measured."""
        return self.results.table.headers[self.number].commit

    @property
    def environment(self) -> str:
        """Return asv's name of the environment."""
        return self.results.table.headers[self.number].environment

    @cached_property
    def latest(self) -> float:
        """Return when the newest of its benchmarks was started, seconds since 1970; 0.0 where asv did not say."""
        table = self.results.table
        started = table.row_started[table.file_rows[self.number] : table.file_rows[self.number + 1]]
        return int(started.max()) / 1000 if len(started) else 0.0

    @property
    def tried(self) -> tuple[Key, ...]:
        """Return the benchmarks and parameters that it has a result of, a failed one too."""
        return self.results.tried(self.number)

    def values(self) -> ResultFile:
        """Return its values."""
        return self.results.values(self.number)


class Results:
    """The result files of all machines in long columns, in the order of their paths."""

    def __init__(self, folder: Path, table: Table, unusable: Mapping[str, str]) -> None:
        self.folder, self.table, self.unusable = folder, table, unusable
        self._keys: dict[int, list[Key]] = {}
        self._tried: dict[tuple[bytes, bytes], tuple[Key, ...]] = {}
        listed = sorted(range(len(table.headers)), key=lambda number: table.headers[number].path)
        self.by_machine: dict[str, list[FoundFile]] = {}
        for number in listed:
            machine = values.machine_of(table.headers[number])
            self.by_machine.setdefault(machine, []).append(FoundFile(results=self, number=number))

    def tried(self, number: int) -> tuple[Key, ...]:
        """Return what file `number` has a result of. Most files have what others have: that is found out once."""
        table = self.table
        begin, end = table.file_rows[number : number + 2].tolist()
        first, last = table.file_cells[number : number + 2].tolist()
        grids = table.row_grid[begin:end]
        there = table.state[first:last] != SKIPPED
        kind = grids.tobytes(), there.tobytes()
        if kind not in self._tried:
            keys = (key for grid in grids.tolist() for key in self._keys_of(grid))
            self._tried[kind] = tuple(key for key, known in zip(keys, there.tolist(), strict=True) if known)
        return self._tried[kind]

    def _keys_of(self, grid: int) -> list[Key]:
        if grid not in self._keys:
            benchmark, params = self.table.grids[grid]
            self._keys[grid] = [
                (benchmark, tuple(map(columns.shown, values))) for values in columns.combinations(params)
            ]
        return self._keys[grid]

    def values(self, number: int, only: Iterable[str] | None = None) -> ResultFile:
        """Return the values of file `number`, of the benchmarks `only` where some are named."""
        table, header = self.table, self.table.headers[number]
        begin, end = table.file_rows[number : number + 2].tolist()
        first = int(table.file_cells[number])
        called = slice(*table.file_calls[number : number + 2].tolist())
        calls = zip(table.call_count[called].tolist(), table.call_tail[called].tolist(), strict=True)
        by_cell = dict(zip(table.call_cell[called].tolist(), calls, strict=True))
        wanted = None if only is None else set(only)
        found: dict[Key, Value] = {}
        place = 0
        for row in range(begin, end):
            grid = int(table.row_grid[row])
            keys = self._keys_of(grid)
            if wanted is None or table.grids[grid][0] in wanted:
                started = int(table.row_started[row]) / 1000
                ended = started + float(table.row_seconds[row])
                for at, key in enumerate(keys, place):
                    state = int(table.state[first + at])
                    count, tail = by_cell.get(at, (0, float("nan")))
                    found[key] = Value(
                        number=float(table.value[first + at]) if state == OK else None,
                        state=state,
                        started=started,
                        ended=ended,
                        calls=count,
                        tail=None if np.isnan(tail) else tail,
                    )
            place += len(keys)
        return ResultFile(
            path=self.folder / header.path,
            machine=values.machine_of(header),
            commit=header.commit,
            environment=header.environment,
            values=found,
            problems=header.problems,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """Everything that is on record of one machine."""

    machine: str
    results: Results
    runs: FolderOfRuns = field(default_factory=FolderOfRuns)

    @property
    def files(self) -> list[FoundFile]:
        """Return its result files, in the order of their paths."""
        return self.results.by_machine.get(self.machine, [])

    def of_benchmarks(self, names: Iterable[str]) -> Iterator[ResultFile]:
        """Yield its result files with the values of the benchmarks `names` alone."""
        table, wanted = self.results.table, set(names)
        grids = np.flatnonzero([benchmark in wanted for benchmark, _ in table.grids])
        for file in self.files:
            begin, end = table.file_rows[file.number : file.number + 2].tolist()
            if np.isin(table.row_grid[begin:end], grids).any():
                yield self.results.values(file.number, wanted)

    def left_out(self) -> Iterator[str]:
        """Yield which result files could not be used, of whatever machine, and what of those of this one."""
        yield from (f"{self.results.folder / name} {reason}" for name, reason in self.results.unusable.items())
        for file in self.files:
            header = self.results.table.headers[file.number]
            yield from (f"{self.results.folder / header.path}: {problem}" for problem in header.problems)


def of_machine(results: Path, machine: str, evidence: Path) -> Found:
    """Return what the folder `results` and the folder of the `evidence` have of `machine`."""
    tables: list[Table] = []
    unusable: dict[str, str] = {}
    for name in asv_files.find(results):
        try:
            content = (results / name).read_bytes()
            if values.machine_of(asv_files.look(content, name)) == machine:
                tables.append(asv_files.parse(content, name))
        except asv_files.Unusable as problem:
            unusable[name] = str(problem)
        except OSError as error:
            unusable[name] = f"cannot be read: {error.strerror or error}"
    return Found(
        machine=machine,
        results=Results(results, columns.concatenate(tables), unusable),
        runs=reading_runs.read_folder(evidence / machine),
    )
