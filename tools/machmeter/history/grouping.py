"""From files in long columns to series: which cell of which row is a point of which series."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter.history import benchmarks
from machmeter.history.data import Benchmark, Environment, LeftOut, Machine, Series, short_hash
from machmeter.store import asv_notes, columns, copies
from machmeter.store.columns import Table
from machmeter.store.settings import Settings


@dataclass(frozen=True, kw_only=True, eq=False)
class Places:
    """Which machine, environment and commit (by number) each file is of."""

    machine: NDArray[np.int32]
    environment: NDArray[np.int32]
    commit: NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Catalogue:
    """The benchmarks, the kinds of cells they have, and how grids and rows refer to both."""

    benchmarks: Sequence[Benchmark]
    factors: Sequence[float]  # what the numbers of each benchmark are multiplied with
    cells: Sequence[tuple[int, tuple[str, ...]]]  # benchmark and parameters, in the order of readers
    grid_cells: NDArray[np.int32]  # the cells of all grids, one grid after the other
    grid_ends: NDArray[np.int64]
    row_version: NDArray[np.int16]  # index into the versions of the row's benchmark


def in_order(table: Table, places: Places) -> tuple[Table, Places]:
    """Return the files by machine, environment, commit and start: a series' points then come in their order."""
    starts = np.zeros(len(table.headers), np.int64)
    np.maximum.at(starts, np.repeat(np.arange(len(starts)), np.diff(table.file_rows)), table.row_started)
    paths = np.argsort(np.argsort([header.path for header in table.headers], kind="stable"))
    order = np.lexsort((paths, starts, places.commit, places.environment, places.machine))
    taken = Places(machine=places.machine[order], environment=places.environment[order], commit=places.commit[order])
    return table.select(order.tolist()), taken


def catalogue(table: Table, known: Mapping[str, asv_notes.Described], settings: Settings) -> Catalogue:
    """Return what the rows of `table` measure; `known` is what benchmarks.json says."""
    kinds, first = np.unique(table.row_grid[::-1], return_index=True)
    last = dict(zip(kinds.tolist(), (-first).tolist(), strict=True))
    used = sorted(last, key=lambda grid: last[grid])
    names = sorted({table.grids[grid][0] for grid in used})
    number = {name: position for position, name in enumerate(names)}
    numbered: list[dict[tuple[str, ...], int]] = [{} for _ in names]
    combinations: list[list[tuple[str, ...]]] = [[] for _ in table.grids]
    # The grid that was used last is most likely the present one: readers see its order first.
    for grid in reversed(used):
        name, params = table.grids[grid]
        combinations[grid] = columns.combinations(params)
        for values in combinations[grid]:
            numbered[number[name]].setdefault(values, 0)
    cells: list[tuple[int, tuple[str, ...]]] = []
    for benchmark, of_benchmark in enumerate(numbered):
        for values in of_benchmark:
            of_benchmark[values] = len(cells)
            cells.append((benchmark, values))
    listed = [
        [numbered[number[name]][values] for values in combinations[grid]] for grid, (name, _) in enumerate(table.grids)
    ]
    of_grid = np.array([number.get(name, 0) for name, _ in table.grids], np.int64)
    row_benchmark = of_grid[table.row_grid] if len(table.grids) else np.empty(0, np.int64)
    versions, row_version = _versions(table, row_benchmark, len(names))
    newest = _newest_versions(table, row_benchmark, len(names))
    made = [
        benchmarks.make(
            name,
            known.get(name, asv_notes.Described()),
            settings,
            params=tuple(numbered[position]),
            versions=versions[position],
            newest=newest[position],
        )
        for name, position in number.items()
    ]
    return Catalogue(
        benchmarks=[benchmark for benchmark, _ in made],
        factors=[factor for _, factor in made],
        cells=cells,
        grid_cells=np.array([cell for some in listed for cell in some], np.int32),
        grid_ends=np.concatenate([np.zeros(1, np.int64), np.cumsum([len(some) for some in listed], dtype=np.int64)]),
        row_version=row_version,
    )


def _versions(table: Table, row_benchmark: NDArray[np.int64], count: int) -> tuple[list[list[str]], NDArray[np.int16]]:
    """Return each benchmark's versions in order of first use, and each row's index into them."""
    pairs = row_benchmark * len(table.versions) + table.row_version
    kinds, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
    versions: list[list[str]] = [[] for _ in range(count)]
    index = np.zeros(len(kinds), np.int16)
    for kind in np.argsort(first).tolist():
        benchmark, text = divmod(int(kinds[kind]), len(table.versions))
        index[kind] = len(versions[benchmark])
        versions[benchmark].append(table.versions[text])
    return versions, index[inverse]


def _newest_versions(table: Table, row_benchmark: NDArray[np.int64], count: int) -> list[str | None]:
    """Return the version of each benchmark's newest row."""
    newest = np.full(count, -1)
    order = np.argsort(table.row_started, kind="stable")
    newest[row_benchmark[order]] = table.row_version[order]  # of several, the last one stays
    return [table.versions[version] if version >= 0 else None for version in newest.tolist()]


def series(
    table: Table, places: Places, machines: Sequence[Machine], environments: Sequence[Environment], found: Catalogue
) -> tuple[list[Series], list[LeftOut]]:
    """Return all series by benchmark, machine, environment and parameters, and which results gave way to newer ones."""
    if not len(table.value):
        return [], []
    sizes = np.diff(found.grid_ends)[table.row_grid]
    row_file = np.repeat(np.arange(len(table.headers), dtype=np.int32), np.diff(table.file_rows))
    row_ends = np.cumsum(sizes)
    cell_in_grid = np.arange(row_ends[-1]) + np.repeat(found.grid_ends[table.row_grid] - (row_ends - sizes), sizes)
    place = places.machine.astype(np.int64) * len(environments) + places.environment
    count = len(machines) * len(environments)
    identity = found.grid_cells[cell_in_grid].astype(np.int64) * count + np.repeat(place[row_file], sizes)
    del cell_in_grid
    if len(found.cells) * count < 2**31:
        identity = identity.astype(np.int32)  # sorts twice as fast
    order = np.argsort(identity, kind="stable")
    identity = identity[order]
    row = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[order]
    commit = places.commit[row_file[row]]
    kept = _newest(identity, commit, table.state[order], table.row_started[row])
    left_out: list[LeftOut] = []
    if kept is not None:
        keep, other = kept
        gone = Counter(row_file[row[other]].tolist())
        left_out = [
            LeftOut(path=table.headers[file].path, reason=f"{many} results: another file has newer ones of this commit")
            for file, many in sorted(gone.items())
        ]
        order, identity, row, commit = order[keep], identity[keep], row[keep], commit[keep]
    sorted_columns = _taken(table, order)
    sorted_columns |= {"commits": commit, "version": found.row_version[row], "started": table.row_started[row]}
    return _cut(identity, sorted_columns, machines, environments, found), left_out


def _taken(table: Table, order: NDArray[np.integer]) -> dict[str, NDArray[Any]]:
    """Return what was measured, in `order`."""
    names = ("value", "low", "high", "state", "samples")
    with ThreadPoolExecutor(2) as pool:  # NumPy lets go of the interpreter while it copies
        return dict(zip(names, pool.map(lambda name: getattr(table, name)[order], names), strict=True))


def _cut(
    identity: NDArray[np.integer],
    sorted_columns: Mapping[str, NDArray[Any]],
    machines: Sequence[Machine],
    environments: Sequence[Environment],
    found: Catalogue,
) -> list[Series]:
    """Return one series for each stretch of equal `identity`, by benchmark, machine, environment and parameters."""
    count = len(machines) * len(environments)
    ends = [0, *(np.flatnonzero(identity[1:] != identity[:-1]) + 1).tolist(), len(identity)]
    made = []
    for begin, end in itertools.pairwise(ends):
        cell, place = divmod(int(identity[begin]), count)
        of_machine, of_environment = divmod(place, len(environments))
        number, params = found.cells[cell]
        machine, environment, benchmark = machines[of_machine], environments[of_environment], found.benchmarks[number]
        points: dict[str, Any] = {name: column[begin:end] for name, column in sorted_columns.items()}
        if found.factors[number] != 1.0:
            points |= {name: points[name] * found.factors[number] for name in ("value", "low", "high")}
        item = Series(
            key=short_hash("series", machine.key, environment.key, benchmark.name, params),
            machine=machine,
            environment=environment,
            benchmark=benchmark,
            params=params,
            **points,
        )
        made.append(((number, of_machine, of_environment, cell), item))
    made.sort(key=lambda pair: pair[0])
    return [item for _, item in made]


def _newest(
    identity: NDArray[np.integer], commit: NDArray[np.int32], state: NDArray[np.uint8], started: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]] | None:
    """Return which points to keep where a series has several of one commit, or None where none has.

    Also return which of the others are other measurements: the results branch has a file for each state of a growing
    one of asv's, and these repeat what they have in common.
    """
    best = copies.newest((identity[1:] == identity[:-1]) & (commit[1:] == commit[:-1]), state, started)
    if best is None:
        return None
    keep = best == np.arange(len(best))
    differs = (started != started[best]) | (state != state[best])
    return keep, ~keep & (differs | (started == 0))
