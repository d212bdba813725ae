"""The list of all benchmarks, by module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from machmeter.history.data import Series
from machmeter.site.links import history_href, parameters
from machmeter.site.pages.benchmark import default
from machmeter.site.pages.home import modules
from machmeter.site.pages.shared import Site


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A benchmark with its newest number."""

    name: str
    href: str
    series: int
    points: int
    changes: int
    unit: str
    value: float | None
    params: str
    date: int | None


@dataclass(frozen=True, kw_only=True)
class ListedModule:
    """The benchmarks of a module."""

    name: str
    anchor: str
    count: int
    benchmarks: Sequence[Listed]


@dataclass(frozen=True, kw_only=True)
class Listing:
    """All modules."""

    modules: Sequence[ListedModule]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the template of the list is given."""

    list: Listing


def context(site: Site) -> Context:
    """Return the list of all benchmarks, by module."""
    swept = site.swept_environments
    by_module: dict[str, list[Listed]] = {}
    series: dict[str, list[Series]] = {}
    for item in site.history.series:
        series.setdefault(item.benchmark.key, []).append(item)
    counted: dict[str, int] = {}
    for change in site.changes:
        counted[change.series.benchmark.key] = counted.get(change.series.benchmark.key, 0) + 1
    for benchmark in site.history.benchmarks:
        mine = series.get(benchmark.key, [])
        head = next(iter(default(mine, swept)), None)
        measured = np.flatnonzero(head.measured if head is not None else np.zeros(0, bool))
        last = int(measured[-1]) if len(measured) else None
        by_module.setdefault(benchmark.module, []).append(
            Listed(
                name=benchmark.method,
                href=history_href(benchmark),
                series=len(mine),
                points=int(sum(item.measured.sum() for item in mine)),
                changes=counted.get(benchmark.key, 0),
                unit=benchmark.unit,
                value=float(head.value[last]) if head is not None and last is not None else None,
                params=parameters(head) if head is not None else "",
                date=site.history.commits[int(head.commits[last])].date
                if head is not None and last is not None
                else None,
            )
        )
    return Context(
        list=Listing(
            modules=[
                ListedModule(
                    name=module.name,
                    anchor=module.anchor,
                    count=module.count,
                    benchmarks=by_module.get(module.name if module.name != "(no module)" else "", []),
                )
                for module in modules(site.history)
            ]
        )
    )
