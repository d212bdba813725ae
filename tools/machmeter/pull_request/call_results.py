"""What one call of asv found: read from asv's results file and from the evidence right after it."""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from machmeter.compare import comparable
from machmeter.compare.documents import Status
from machmeter.machine import disturbance, host
from machmeter.measure import settling
from machmeter.pull_request.checkouts import Built, Place
from machmeter.pull_request.plan import TIMING_METRIC, Item, Key
from machmeter.store import recorded


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one process found of one metric, or why it found nothing."""

    status: Status
    value: float = 0.0
    samples: int = 1
    disturbed: float | None = None
    reason: str = ""


def counts(place: Place, items: Iterable[Item]) -> dict[Key, int]:
    """Return how many samples asv has of each of `items`: it appends those of the next process to them."""
    rows = _rows(place)
    return {item.key: len(_cell(rows, item, "samples") or []) for item in items}


def outcomes(
    place: Place, items: Iterable[Item], before: Mapping[Key, int], run_name: str, said: str, around: float | None
) -> dict[Key, Outcome]:
    """Return what the last call found of `items`; `said` is why it failed where the evidence does not know.

    `around` is the share of the CPUs that others had during the whole call, for what has no share on record.
    """
    rows, cells = _rows(place), run(place, run_name).get("cells", {})
    return {item.key: _outcome(item, rows, cells, before.get(item.key, 0), said, around) for item in items}


def openings(place: Place, items: Iterable[Item], run_name: str, around: float | None) -> dict[Key, Outcome]:
    """Return how long the processes that timed `items` took to load and to call for the first time."""
    cells = run(place, run_name).get("cells", {})
    return {
        (item.cell, name): Outcome(status="ok", value=seconds, disturbed=None if around is None else min(1.0, around))
        for item in items
        if item.metric == TIMING_METRIC
        for name, seconds in (_record(item, cells).get("opening_seconds") or {}).items()
    }


def seconds(place: Place, item: Item) -> float:
    """Return the seconds that asv's last call took for the benchmark of `item`, 0 where it does not tell."""
    told = _rows(place).get(item.benchmark, {}).get("duration")
    return float(told) if isinstance(told, int | float) else 0.0


def _outcome(
    item: Item,
    rows: Mapping[str, Mapping[str, Any]],
    cells: Mapping[str, Any],
    before: int,
    said: str,
    around: float | None,
) -> Outcome:
    record = _record(item, cells)
    value, samples = _cell(rows, item, "result"), _cell(rows, item, "samples") or []
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and math.isnan(value):
        return Outcome(status="n/a", reason=_reason(record, "the benchmark skips it"))
    if not number or not math.isfinite(value):
        why = said or "the process failed and did not say why" if value is None else f"{value!r} is not a number to use"
        return Outcome(status="failed", reason=_reason(record, why))
    new = samples[before:] if len(samples) > before else samples
    share = record.get(disturbance.SHARE)
    share = around if share is None else share
    return Outcome(
        status="ok",
        value=statistics.median(new) if new else value,
        samples=len(new) or 1,
        disturbed=None if share is None else min(1.0, share),
    )


def _reason(record: Mapping[str, Any], otherwise: str) -> str:
    return str(record.get("reason") or otherwise)[:1000]


def _record(item: Item, cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return the newest record of the process that measured `item`, {} where there is none."""
    name = recorded.name(item.cell, item.metric)
    records = sorted(cells.get(name, {}).values(), key=lambda record: int(record.get("order", 0)))
    own = [record for record in records if record.get("benchmark") == item.metric]
    bad = [record for record in records if record.get("status") != "ok"]
    return dict((own[-1:] or bad[-1:] or [{}])[0])


def _cell(rows: Mapping[str, Mapping[str, Any]], item: Item, column: str) -> Any:
    values = rows.get(item.benchmark, {}).get(column)
    return values[item.place] if isinstance(values, list) and item.place < len(values) else None


def _rows(place: Place) -> dict[str, dict[str, Any]]:
    """Return the rows of the side's results file by benchmark, each by column.

    A file that was cut off while it was written is put aside, where nothing reads it: asv would stop at it.
    """
    for path in sorted(place.results.glob(f"*/{place.commit[:8]}-*.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            path.rename(path.with_name(f"{path.name}.unreadable"))
            continue
        columns = content["result_columns"]
        return {
            name: dict(itertools.zip_longest(columns, row[: len(columns)])) for name, row in content["results"].items()
        }
    return {}


def environment(place: Place) -> str:
    """Return asv's name for the side's environment, "" where nothing was measured."""
    for path in sorted(place.results.glob(f"*/{place.commit[:8]}-*.json")):
        return str(json.loads(path.read_text(encoding="utf-8")).get("env_name", ""))[:1000]
    return ""


def run(place: Place, run_name: str) -> dict[str, Any]:
    """Return what the evidence has of a run, {} where there is none: not every benchmark keeps it."""
    for path in sorted((place.kept / "evidence").glob(f"*/{place.commit[:8]}-*.json")):
        content = settling.settle_file(path) or {"runs": {}}
        if found := content["runs"].get(run_name):
            return dict(found)
    return {}


def facts(built: Built, run_name: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the facts of the machine and the installed versions, from the evidence, or as they are seen from here."""
    known = run(built.place, run_name)
    if known.get("host"):
        return comparable.facts(known["host"]), dict(known.get("versions") or {})
    folders = [*(built.place.work / "env").glob("*/lib/python*/site-packages")]
    return comparable.facts(host.facts()), _installed([*folders, *([built.libraries] if built.libraries else [])])


def _installed(folders: Iterable[Path]) -> dict[str, str]:
    paths = [str(folder) for folder in folders]
    return {
        str(item.metadata["Name"]).lower().replace("_", "-"): item.version
        for item in metadata.distributions(path=paths)
        if item.metadata["Name"]
    }
