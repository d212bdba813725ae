"""What really ran: one JSON file per machine, commit and environment, beside asv's results.

    {"schema": 1, "machine": ..., "commit": ..., "environment": ..., "stack": ...,
     "runs": {RUN: {"host": ..., "versions": ..., "stack_mismatches": ..., "cells": {CELL: {PROCESS: RECORD}}}}}

A record is begun before anything risky happens, with `status` "running", and replaced when the process
ends. A process that dies cannot write; whoever reads or writes next finds its record still "running" with
nobody behind it, and `settle` turns that into a failure with what is known of the death.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from pathlib import Path

from machmeter import asv_names
from machmeter.json_shape import Json
from machmeter.measure.settling import read

_PULLED = re.compile(r"\.[0-9a-f]{16}\.json$")  # how the name of a file of the results branch ends


def read_folder(results: Path, machine: str) -> list[Json]:
    """Return the readable evidence of `machine`, beside asv's folder `results`."""
    return read_all(asv_names.evidence_folder(results) / machine)[0]


def read_all(folder: Path) -> tuple[list[Json], list[str]]:
    """Return the evidence in one machine's `folder`, and a note about each file that had to be left out."""
    found = [(path, read(path)) for path in sorted(folder.glob("*.json"))]
    notes = [f"left out: {path} is unreadable" for path, content in found if content is None]
    return join(content for _, content in found if content is not None), notes


def files_at(path: Path) -> list[Path]:
    """Return the evidence file `path`, where it exists, and those of the same that were pulled beside it."""
    stem = _PULLED.sub("", path.name).removesuffix(".json")
    beside = sorted(path.parent.glob(f"{glob.escape(stem)}.*.json"))
    own = path.with_name(f"{stem}.json")
    return [*([own] if own.is_file() else []), *(item for item in beside if _PULLED.sub("", item.name) == stem)]


def runs_at(path: Path) -> dict[str, Json]:
    """Return the runs, by name, in the files at `path`."""
    contents = [content for content in map(read, files_at(path)) if content is not None]
    return {name: run for content in join(contents) for name, run in content["runs"].items()}


def join(contents: Iterable[Json]) -> list[Json]:
    """Return one content for each machine, commit and environment, with the runs of all files of these.

    The results branch has a file for each run, and what was pulled lies beside the file that it came from.
    """
    joined: dict[tuple[str, str, str], Json] = {}
    for content in contents:
        where = (str(content.get("machine")), str(content.get("commit")), str(content.get("environment")))
        if where not in joined:
            joined[where] = {**content, "runs": {}}
        runs = joined[where]["runs"]
        for name, run in content["runs"].items():
            runs[name] = _later(runs[name], run) if name in runs else run
    return list(joined.values())


def _later(one: Json, other: Json) -> Json:
    """Return that of two states of one run which has more records, or more of them at their end."""

    def progress(run: Json) -> tuple[int, int]:
        records = [record for cell in run.get("cells", {}).values() for record in cell.values()]
        return len(records), sum(record.get("status") != "running" for record in records)

    return max(one, other, key=progress)


def is_pulled(path: Path) -> bool:
    """Return whether an evidence file came from the results branch: nothing is ever added to it."""
    return _PULLED.search(path.name) is not None
