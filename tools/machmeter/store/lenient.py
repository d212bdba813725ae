"""asv's result files, read without asv: a file that cannot be read is named, never touched."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

FORMAT_VERSION = 2


@dataclass(frozen=True, kw_only=True)
class Value:
    """One result of one parameter combination.

    `number` is None where the benchmark failed. asv writes NaN both for "n/a" and for "not run"; such
    combinations are not listed at all, because only the evidence can tell the two apart.
    """

    number: float | None
    samples: tuple[float, ...] = ()
    started: float = 0.0  # seconds since 1970
    ended: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ResultFile:
    """The results of one machine, commit and environment."""

    path: Path
    machine: str
    commit: str
    environment: str
    values: Mapping[tuple[str, tuple[str, ...]], Value] = field(default_factory=dict)  # by (benchmark, params)


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """A file that was left out, and why."""

    path: Path
    reason: str


def read_all(results: Path) -> tuple[list[ResultFile], list[Unreadable]]:
    """Return the results under asv's folder `results`, and the files that had to be left out.

    Several files of one machine, commit and environment, as the results branch has them, are one.
    """
    files: list[ResultFile] = []
    unreadable: list[Unreadable] = []
    for path in sorted(results.glob("*/*.json")):
        if path.name == "machine.json":
            continue
        try:
            files.append(_read(path))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            reason = "is not valid JSON" if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            unreadable.append(Unreadable(path=path, reason=reason))
    return _joined(files), unreadable


def _joined(files: list[ResultFile]) -> list[ResultFile]:
    """Return one file for each machine, commit and environment: of each value that which was measured last."""
    joined: dict[tuple[str, str, str], ResultFile] = {}
    for file in files:
        where = (file.machine, file.commit, file.environment)
        rival = joined.get(where)
        if rival is None:
            joined[where] = file
            continue
        values = dict(rival.values)
        for key, value in file.values.items():
            if key not in values or value.started >= values[key].started:
                values[key] = value
        joined[where] = replace(file, values=values)
    return list(joined.values())


def _read(path: Path) -> ResultFile:
    content = json.loads(path.read_text(encoding="utf-8"))
    if content.get("version") != FORMAT_VERSION:
        raise KeyError(f"format version {content.get('version')!r} instead of {FORMAT_VERSION}")
    columns = content["result_columns"]
    values: dict[tuple[str, tuple[str, ...]], Value] = {}
    for benchmark, row in content["results"].items():
        record = dict(zip(columns, row, strict=False))
        for parameters, value in _values(record):
            values[benchmark, parameters] = value
    return ResultFile(
        path=path,
        machine=content["params"].get("machine", path.parent.name),
        commit=content["commit_hash"],
        environment=content.get("env_name") or "",
        values=values,
    )


def _values(record: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Value]]:
    combinations = list(itertools.product(*(record.get("params") or [])))
    numbers = record.get("result")
    if numbers is None:  # everything failed, for instance the build
        numbers = [None] * len(combinations)
    samples: Sequence[Any] = record.get("samples") or [None] * len(combinations)
    started = (record.get("started_at") or 0) / 1000
    for parameters, number, sample in itertools.zip_longest(combinations, numbers, samples):
        if parameters is None or (isinstance(number, float) and math.isnan(number)):
            continue
        usable = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
        yield (
            tuple(parameter.strip("'\"") for parameter in parameters),
            Value(
                number=float(number) if usable else None,
                samples=tuple(float(item) for item in sample or () if isinstance(item, int | float)),
                started=started,
                ended=started + (record.get("duration") or 0.0),
            ),
        )
