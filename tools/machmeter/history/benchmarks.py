"""Benchmarks: what asv's benchmarks.json says of them, and what must be guessed from their names where it is silent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from machmeter import units
from machmeter.history.data import Benchmark, LeftOut, short_hash
from machmeter.history.naming import slug
from machmeter.store import asv_notes
from machmeter.store.asv_notes import Described
from machmeter.store.settings import Settings


def read(results: Path) -> tuple[dict[str, Described], list[LeftOut]]:
    """Return what the store's benchmarks.json says, and what of it cannot be used."""
    found, problems = asv_notes.benchmarks(results)
    return found, [LeftOut(path=asv_notes.BENCHMARKS, reason=problem) for problem in problems]


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
