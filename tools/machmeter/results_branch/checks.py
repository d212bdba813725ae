"""Whether the bytes of a file are fit to be on the results branch, whoever wrote them: they are data and no more.

What is checked here is foreign, and goes onto the branch as it was written, with what this program does not know of it:
so it stays plain JSON. Whoever shows it reads it by `store`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from machmeter import asv_names
from machmeter.json_shape import Json
from machmeter.measure import evidence_shape
from machmeter.results_branch import paths
from machmeter.store import asv_files

MARKER_SCHEMA = 1
MARKER = (
    b'{"schema": 1, "about": "asv results and machmeter\'s evidence, written by '
    b"'machmeter results push'. Files are added, never changed.\"}\n"
)

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_FACTS = ("arch", "cpu", "num_cpu", "os", "ram")


class Unfit(Exception):
    """A file must not be on the branch. The text completes a sentence that begins with its name."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a result file says of itself."""

    commit: str
    facts: Mapping[str, str]  # of the machine


def strict(content: bytes) -> Any:
    """Return what strict JSON says: no NaN, no Infinity, nothing after it. Raises Unfit."""
    if not content.strip():
        raise Unfit("is empty")
    try:
        return msgspec.json.decode(content)
    except RecursionError as error:
        raise Unfit("is nested too deeply") from error
    except ValueError as error:  # also bytes that are no UTF-8
        raise Unfit(f"is not strict JSON, perhaps half-written ({error})") from error


def result(content: bytes, machine: str, stem: str) -> Result:
    """Check a result file of asv's, which may hold NaN. Raises Unfit."""
    _bounded(content)
    try:
        table = asv_files.parse(content, f"{machine}/{stem}.json")
    except asv_files.Unusable as problem:
        raise Unfit(str(problem)) from problem
    (header,) = table.headers
    if header.machine != machine:
        raise Unfit(f"is of machine {header.machine!r}, not of {machine!r}")
    _check_commit(header.commit, stem)
    return Result(commit=header.commit, facts=dict(header.facts))


def machine(content: bytes, name: str) -> None:
    """Check asv's note of the machine `name`. Raises Unfit."""
    _bounded(content)
    told = strict(content)
    if not isinstance(told, dict) or told.get("machine") != name or not isinstance(told.get("version"), int):
        raise Unfit(f"is not asv's note of machine {name!r}")


def machine_note(name: str, facts: Mapping[str, str]) -> Json:
    """Return the note that asv would have written of a machine with these `facts`."""
    return {**{fact: facts.get(fact, "") for fact in _FACTS}, "machine": name, "version": 1}


def benchmarks(content: bytes) -> Json:
    """Return the descriptions in asv's benchmarks.json. Raises Unfit."""
    _bounded(content)
    told = strict(content)
    if not isinstance(told, dict) or told.get("version") != 2:
        raise Unfit("is not asv's list of benchmarks")
    for name, described in told.items():
        if name != "version" and not (isinstance(described, dict) and described.get("name") == name):
            raise Unfit(f"is not asv's list of benchmarks: {name[:80]!r} is no description")
    return told


def marker(content: bytes) -> None:
    """Check that the marker is of a format that this program writes. Raises Unfit."""
    told = strict(content)
    if not isinstance(told, dict) or not isinstance(told.get("schema"), int):
        raise Unfit("is not the marker of a results branch")
    if told["schema"] > MARKER_SCHEMA:
        raise Unfit(f"is of format {told['schema']}, and this machmeter knows {MARKER_SCHEMA}: update machmeter")


def evidence_file(content: bytes, machine: str, stem: str) -> Json:
    """Return the evidence in a file of ours. Raises Unfit."""
    _bounded(content)
    told = strict(content)
    if not isinstance(told, dict) or told.get("schema") != evidence_shape.SCHEMA:
        raise Unfit(f"is not evidence of schema {evidence_shape.SCHEMA}")
    if told.get("machine") != machine:
        raise Unfit(f"is of machine {told.get('machine')!r}, not of {machine!r}")
    commit, environment = told.get("commit"), told.get("environment")
    if not isinstance(commit, str) or not isinstance(environment, str):
        raise Unfit("names no commit or no environment")
    _check_commit(commit, stem)
    if stem != asv_names.file_stem(commit, environment):
        raise Unfit(f"is of environment {environment[:80]!r}, which is not in its name")
    runs = told.get("runs")
    if not isinstance(runs, dict) or not runs:
        raise Unfit("holds no run")
    for run in runs.values():
        _check_run(run)
    return told


def _check_run(run: Any) -> None:
    if not isinstance(run, dict) or not isinstance(run.get("cells"), dict):
        raise Unfit("has a run without cells")
    if not isinstance(run.get("started"), str):
        raise Unfit("has a run without a start")
    for name, processes in run["cells"].items():
        records = list(processes.values()) if isinstance(processes, dict) else [None]
        for record in records:
            if not isinstance(record, dict) or not isinstance(record.get("status"), str):
                raise Unfit(f"has a record without a status, of {name[:80]!r}")
            if not all(_is_number(record.get(field, 0)) for field in ("started_at", "order")):
                raise Unfit(f"has a record without a time or an order, of {name[:80]!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_commit(commit: str, stem: str) -> None:
    if not _COMMIT.fullmatch(commit):
        raise Unfit(f"is of {commit[:80]!r}, which is no commit")
    if not stem.startswith(f"{commit[:8]}-"):
        raise Unfit(f"is of commit {commit[:8]}, which is not in its name")


def _bounded(content: bytes) -> None:
    if len(content) > paths.LARGEST_FILE:
        raise Unfit(f"has more than {paths.LARGEST_FILE >> 20} MiB, which is the most that the branch takes")


def by_place(where: paths.Place, content: bytes) -> None:
    """Check the bytes of a file of the branch by what its name says. Raises Unfit."""
    if where.hash and paths.content_hash(content) != where.hash:
        raise Unfit("was changed: its bytes are not those that its name was made of")
    if where.kind == "result":
        result(content, where.machine, where.stem)
    elif where.kind == "evidence":
        evidence_file(content, where.machine, where.stem)
    elif where.kind == "machine":
        machine(content, where.machine)
    elif where.kind == "benchmarks":
        benchmarks(content)
    else:
        marker(content)
