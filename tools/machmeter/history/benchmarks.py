"""Benchmarks: what asv's benchmarks.json says of them, and what must be guessed from their names where it is silent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machmeter import units
from machmeter.history.data import Benchmark, LeftOut, short_hash
from machmeter.history.naming import slug
from machmeter.store.settings import Settings

FILE = "benchmarks.json"


@dataclass(frozen=True, kw_only=True)
class Described:
    """What benchmarks.json says of one benchmark, None or () where it does not."""

    kind: str | None = None
    unit: str | None = None
    param_names: tuple[str, ...] = ()
    version: str | None = None


def read(results: Path) -> tuple[dict[str, Described], list[LeftOut]]:
    """Return what the store's benchmarks.json says, and what of it cannot be used."""
    path = results / FILE
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}, []
    except (OSError, ValueError, RecursionError):
        return {}, [LeftOut(path=FILE, reason="is not valid JSON: units and parameter names are guessed")]
    if not isinstance(content, dict):
        return {}, [LeftOut(path=FILE, reason="is no object: units and parameter names are guessed")]
    found = {name: _described(item) for name, item in content.items() if isinstance(item, dict)}
    odd = [name for name, item in content.items() if not isinstance(item, dict) and name != "version"]
    return found, [LeftOut(path=FILE, reason=f"{name}: is no description of a benchmark") for name in sorted(odd)]


def _described(item: Mapping[str, Any]) -> Described:
    names = item.get("param_names")
    return Described(
        kind=_text(item.get("type")),
        unit=_text(item.get("unit")),
        param_names=tuple(str(name) for name in names) if isinstance(names, list) else (),
        version=_text(item.get("version")),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def make(
    name: str,
    described: Described,
    settings: Settings,
    *,
    params: Sequence[tuple[str, ...]],
    versions: Sequence[str],
    newest: str | None,
) -> tuple[Benchmark, float]:
    """Return the benchmark `name`, and what its numbers are multiplied with to be in its base unit.

    `versions` are those that results have, in order of first use, and `newest` is that of the newest result.
    """
    kind, unit = units.guess(name)
    factor, unit = units.base(described.unit if described.unit not in (None, "unit") else unit)
    current = described.version if described.version is not None else newest
    known = list(versions)
    if current is not None and current not in known:  # no result has it yet: all points are from before
        known.append(current)
    width = max((len(values) for values in params), default=0)
    names = described.param_names[:width]
    benchmark = Benchmark(
        key=short_hash("benchmark", name),
        slug=slug(name, "benchmark"),
        name=name,
        kind=described.kind or kind,
        unit=unit,
        direction=settings.direction(name, units.direction(name, unit)),
        param_names=names + tuple(f"param{number + 1}" for number in range(len(names), width)),
        params=tuple(params),
        versions=tuple(known),
        current=known.index(current) if current is not None else 0,
    )
    return benchmark, factor
