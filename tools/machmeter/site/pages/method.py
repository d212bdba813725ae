"""What each number means: generated from `metrics.py`, so that it cannot say anything else than what is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from machmeter import metrics
from machmeter.metrics import Metric
from machmeter.site.pages.machmeter_tables import Own
from machmeter.site.pages.shared import Site


@dataclass(frozen=True, kw_only=True)
class Unit:
    """How many benchmarks have a unit and a direction."""

    unit: str
    direction: str
    count: int


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the template of the page of the method is given."""

    own: bool
    metrics: Sequence[Metric]
    units: Sequence[Unit]


def context(site: Site, own: Own) -> Context:
    """Return what the page of the method shows."""
    units: dict[tuple[str, str], int] = {}
    for benchmark in site.history.benchmarks:
        key = benchmark.unit or "none", benchmark.direction or "unknown"
        units[key] = units.get(key, 0) + 1
    return Context(
        own=bool(own.tables or own.ladders),
        metrics=metrics.METRICS,
        units=[Unit(unit=unit, direction=better, count=count) for (unit, better), count in sorted(units.items())],
    )
