"""What each number means: generated from `metrics.py`, so that it cannot say anything else than what is judged."""

from __future__ import annotations

from typing import Any

from machmeter import metrics
from machmeter.site.pages.machmeter_tables import Own
from machmeter.site.pages.shared import Site


def context(site: Site, own: Own) -> dict[str, Any]:
    """Return what the page of the method shows."""
    measured = {benchmark.method for benchmark in site.history.benchmarks}
    used = [metric for metric in metrics.METRICS if metric.benchmark in measured]
    units: dict[tuple[str, str], int] = {}
    for benchmark in site.history.benchmarks:
        key = benchmark.unit or "none", benchmark.direction or "unknown"
        units[key] = units.get(key, 0) + 1
    return {
        "own": bool(own.tables or own.ladders),
        "metrics": [
            {
                "benchmark": metric.benchmark,
                "title": metric.title,
                "unit": metric.unit,
                "better": metric.better,
                "formula": metric.formula,
                "used": metric in used,
            }
            for metric in metrics.METRICS
        ],
        "units": [
            {"unit": unit, "direction": better, "count": count} for (unit, better), count in sorted(units.items())
        ],
    }
