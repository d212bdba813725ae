"""What is on record of each cell of one machine: asv's numbers, and what the evidence says beside them.

Numbers come from asv's result files. The evidence says why there is none, and stands in for cells that were
measured in a run that ended before asv could write its file.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from machmeter import asv_names
from machmeter.measure.evidence_shape import Run
from machmeter.store import found as store
from machmeter.store import runs, values
from machmeter.tables.cell_found import Found
from machmeter.workload import cells
from machmeter.workload.cells import Cell

DEVICES = ("cpu", "cuda")
NOT_A_MODEL = ("cuda.transfer",)  # backends of which a throughput says nothing of a model


@dataclass(frozen=True, kw_only=True)
class OnRecord:
    """The cells of one machine, its newest run, and what a reader must know beside them."""

    cells: tuple[Found, ...]
    run: Run
    notes: tuple[str, ...]


def find(read: store.Found) -> OnRecord:
    """Return what asv's files of a machine and its evidence say of its cells.

    A sweep measures one version of a library among many; what it finds has a table of its own.
    """
    notes = read.runs.notes()
    swept = {(place.commit[:8], place.environment) for place, run in read.runs.runs if run.glance.swept}
    ran = [run for _, run in read.runs.runs if not run.glance.swept]
    newest_run = max(reversed(ran), key=lambda run: run.glance.started).about if ran else Run()
    if newest_run.uncommitted_changes:
        notes.append("the newest run measured a working tree with uncommitted changes")
    if mismatches := newest_run.stack_mismatches:
        notes.append(f"the installed packages are not those of stack {newest_run.stack}: " + "; ".join(mismatches))
    kept = newest(place for where, place in _places(read).items() if where not in swept)
    return OnRecord(cells=tuple(kept), run=newest_run, notes=tuple(notes))


def newest(places: Iterable[_Place]) -> list[Found]:
    """Choose one commit and environment for each cell, so that all numbers of a row belong together.

    It is the newest that was timed or failed: what another environment lacks (n/a), or has not timed, does
    not hide what this one measured. The places are taken out one by one, the latest first, as long as they can matter.
    """
    chosen: dict[str, Found] = {}
    claims: dict[str, tuple[bool, float, int]] = {}

    def is_settled(cell: str, place: _Place, telling: frozenset[str]) -> bool:
        decided, when, _ = claims.get(cell, (False, -1.0, 0))
        return when > place.latest and (decided or cell not in telling)

    for place in sorted(places, key=lambda place: -place.latest):
        telling = place.telling()
        if all(is_settled(cell, place, telling) for cell in place.cells()):
            continue
        for key, item in place.take().items():
            claim = (*item.claim, -place.order)  # of equal ones the first
            if key not in claims or claim > claims[key]:
                chosen[key], claims[key] = item, claim
    return list(chosen.values())


@dataclass(kw_only=True)
class _Place:
    """What there is of one commit in one environment, not taken out yet."""

    order: int  # among the places of the machine, as they were met
    files: list[store.FoundFile] = field(default_factory=list)
    evidence: list[runs.Place] = field(default_factory=list)
    latest: float = 0.0  # no cell of it was tried later

    def _runs(self) -> Iterator[runs.Run]:
        return (run for place in self.evidence for run in place.runs if not run.glance.swept)

    def cells(self) -> frozenset[str]:
        """Return the cells that are on record here."""
        named = (_cells_named(run.glance.cells) for run in self._runs())
        return frozenset[str]().union(*(_cells_tried(file.tried) for file in self.files), *named)

    def telling(self) -> frozenset[str]:
        """Return the cells that may have a number or a failure here, rather than only a reason why there is none."""
        found = [_cells_tried(file.tried) for file in self.files]
        for run in self._runs():
            silent = {
                cell
                for cell, told in run.glance.trouble.items()
                if all(record.status in runs.SAYS_NOTHING for record in told)
            }
            named = run.glance.cells
            found.append(_cells_named(tuple(cell for cell in named if cell not in silent) if silent else named))
        return frozenset[str]().union(*found)

    def take(self) -> dict[str, Found]:
        """Return what is on record of each cell."""
        found: dict[str, Found] = {}
        for file in values.joined(file.values() for file in self.files):
            for (benchmark, parameters), value in file.tried:
                item = _entry(_key(benchmark, parameters), file.commit, file.environment, found)
                if item is not None:
                    item.values[benchmark.rpartition(".")[2]] = value
        for place in self.evidence:
            for run in place.runs:
                for key, processes in run.cells.items() if not run.glance.swept else ():
                    if item := _entry(key, place.commit, place.environment, found):
                        item.stack = place.stack or ""
                        item.take(list(processes.values()))
        return found


def _places(read: store.Found) -> dict[tuple[str, str], _Place]:
    """Return what there is by commit (eight digits) and environment, those of the result files first."""
    places: dict[tuple[str, str], _Place] = {}

    def at(commit: str, environment: str) -> _Place:
        return places.setdefault((commit[:8], environment), _Place(order=len(places)))

    for file in read.files:
        place = at(file.commit, file.environment)
        place.files.append(file)
        place.latest = max(place.latest, file.latest)
    for recorded in read.runs.places:
        place = at(recorded.commit, recorded.environment)
        place.evidence.append(recorded)
        place.latest = max([place.latest, *(run.glance.latest for run in recorded.runs)])
    return places


def _entry(key: str, commit: str, environment: str, found: dict[str, Found]) -> Found | None:
    """Return what is found so far of the cell called `key`, or None where `key` is not an inference cell."""
    cell = _cell(key)
    if cell is None:
        return None
    return found.setdefault(cell.key(), Found(cell=cell, commit=commit, environment=environment))


@functools.cache
def _cell(key: str) -> Cell | None:
    """Return the inference cell called `key`, or None where it is none."""
    cell = cells.parse(key)
    return None if cell is None or cell.device not in DEVICES or cell.runtime in NOT_A_MODEL else cell


@functools.cache
def _cells_tried(tried: tuple[values.Key, ...]) -> frozenset[str]:
    """Return the names of the inference cells among what a result file has."""
    return _cells_named(tuple(_key(benchmark, parameters) for benchmark, parameters in tried))


@functools.cache
def _cells_named(keys: tuple[str, ...]) -> frozenset[str]:
    return frozenset(cell.key() for key in keys if (cell := _cell(key)))


def _key(benchmark: str, parameters: tuple[str, ...]) -> str:
    return f"{benchmark.rpartition('.')[0]}({', '.join(parameters)})"


def machines(results: Path) -> list[str]:
    """Return the machines that have results or evidence, by name."""
    folders = [*results.glob("*/"), *asv_names.evidence_folder(results).glob("*/")]
    return sorted({folder.name for folder in folders if folder.is_dir()})
