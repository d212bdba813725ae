"""asv's results cell by cell, with the samples of each: what tables show. Of a whole history see `parsing`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from machmeter.store import asv_files, columns, copies
from machmeter.store.asv_rows import Calls
from machmeter.store.columns import OK, SKIPPED, Header, Table

Key = tuple[str, tuple[str, ...]]  # benchmark and parameters, as a reader writes them


@dataclass(frozen=True, kw_only=True)
class Value:
    """One result of one parameter combination. `number` is None where its state is not OK."""

    number: float | None
    state: int = OK
    samples: tuple[float, ...] = ()
    started: float = 0.0  # seconds since 1970
    ended: float = 0.0
    calls: int = 0  # how many samples there are, be they here or not
    tail: float | None = None  # their 95th percentile, None where they are too few


@dataclass(frozen=True, kw_only=True)
class ResultFile:
    """The results of one machine, commit and environment, in the order of the file."""

    path: Path
    machine: str
    commit: str
    environment: str
    values: Mapping[Key, Value] = field(default_factory=dict)
    problems: tuple[str, ...] = ()  # what of the file was left out

    @property
    def tried(self) -> Iterator[tuple[Key, Value]]:
        """Yield what was not skipped. asv skips what is n/a and what was not run: the evidence tells the two apart."""
        return ((key, value) for key, value in self.values.items() if value.state != SKIPPED)


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """A file that was left out, and why."""

    path: Path
    reason: str


def read_all(results: Path, machine: str | None = None) -> tuple[list[ResultFile], list[Unreadable]]:
    """Return the results under asv's folder `results`, of `machine` where one is named, and what was left out.

    Several files of one machine, commit and environment, as the results branch has them, are one.
    """
    files: list[ResultFile] = []
    unreadable: list[Unreadable] = []
    for name in asv_files.find(results):
        path = results / name
        try:
            content = path.read_bytes()
            if machine is None or machine_of(asv_files.look(content, name)) == machine:
                files.append(parse(content, results, name))
        except asv_files.Unusable as problem:
            unreadable.append(Unreadable(path=path, reason=str(problem)))
        except OSError as error:
            unreadable.append(Unreadable(path=path, reason=f"cannot be read: {error.strerror or error}"))
    return joined(files), unreadable


def parse(content: bytes, results: Path, name: str) -> ResultFile:
    """Return the one file whose bytes are `content`, called `name` in the folder `results`. Raises Unusable."""
    table, calls = asv_files.parse_with_calls(content, name)
    (header,) = table.headers
    return ResultFile(
        path=results / name,
        machine=machine_of(header),
        commit=header.commit,
        environment=header.environment,
        values=dict(_values(table, calls)),
        problems=header.problems,
    )


def machine_of(header: Header) -> str:
    """Return which machine a result file is of."""
    return header.machine or header.folder


def _values(table: Table, calls: Calls) -> Iterator[tuple[Key, Value]]:
    numbers, states = table.value.tolist(), table.state.tolist()
    place = 0
    for row, grid in enumerate(table.row_grid.tolist()):
        benchmark, params = table.grids[grid]
        started = int(table.row_started[row]) / 1000
        for combination in columns.combinations(params):
            yield (
                (benchmark, tuple(map(columns.shown, combination))),
                Value(
                    number=numbers[place] if states[place] == OK else None,
                    state=states[place],
                    samples=tuple(calls.samples[place]),
                    started=started,
                    ended=started + calls.seconds[row],
                ),
            )
            place += 1


def joined(files: Iterable[ResultFile]) -> list[ResultFile]:
    """Return one file for each machine, commit and environment: of each value the copy that counts."""
    counting: dict[tuple[str, str, str], ResultFile] = {}
    for file in files:
        run_of = (file.machine, file.commit, file.environment)
        rival = counting.get(run_of)
        if rival is None:
            counting[run_of] = file
            continue
        values = dict(rival.values)
        for key, value in file.values.items():
            old = values.get(key)
            if old is None or copies.claim(value.state, value.started) >= copies.claim(old.state, old.started):
                values[key] = value
        counting[run_of] = replace(file, values=values, problems=(*rival.problems, *file.problems))
    return list(counting.values())
