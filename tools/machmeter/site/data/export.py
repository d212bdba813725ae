"""The exported data of a site: small strict JSON files, the same bytes for the same history.

    data/index.json                    machines, environments, commits, benchmarks, runs, events, what was left out
    data/runs.json                     what each run ran on: host and packages, for notes and library differences
    data/series/<key>.json             one series with its changes
    data/columns/<machine>/<environment>/scale.json, 000.json, ...     all series at each commit, to compare two
    data/badges/<key>.json             endpoints for shields.io: images/s of a cell
    data/badges/<key>-trend.json       and where they went lately

`site/static/schema/` describes them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from machmeter.changes.judge import Change
from machmeter.compare import runs as two_runs
from machmeter.history import environment_changes
from machmeter.history.data import History, Series
from machmeter.site.data import badges, compare_columns, encode
from machmeter.site.data.shapes import AllRuns, Index, LeftOut, OneSeries, Runs, Step
from machmeter.store.columns import STATES

SCHEMA = 1
Content = TypeVar("Content")

_REASONS = 200  # that are told; a foreign project may have one for each value
_EXAMPLES = 5  # paths that are named for each reason why files were left out


def files(history: History, changes: Mapping[str, Sequence[Change]]) -> Iterator[tuple[str, bytes]]:
    """Yield the path (below the site) and bytes of every data file."""
    for job in jobs(history, changes):
        yield from job()


Job = Callable[[], Iterable[tuple[str, bytes]]]


def jobs(history: History, changes: Mapping[str, Sequence[Change]]) -> list[Job]:
    """Return functions that make the data files, each some of them, the long ones first."""
    placed = compare_columns.places(history)
    made: list[Callable[[], Iterable[tuple[str, object]]]] = []
    made += [partial(compare_columns.files, group, placed) for group in compare_columns.groups(history)]
    made.append(partial(_common, history, changes))
    made += [partial(_one, item, changes.get(item.key, ())) for item in exported(history)]
    return [partial(_written, job) for job in made]


def _written(job: Callable[[], Iterable[tuple[str, object]]]) -> Iterator[tuple[str, bytes]]:
    for path, content in job():
        yield path, encode.strict(content)


def _common(history: History, changes: Mapping[str, Sequence[Change]]) -> Iterator[tuple[str, object]]:
    yield "data/index.json", index(history)
    yield "data/runs.json", runs(history)
    yield from badges.endpoints(history, changes)


def _one(item: Series, changes: Sequence[Change]) -> Iterator[tuple[str, object]]:
    yield series_path(item), series(item, changes)


def exported(history: History) -> list[Series]:
    """Return the series that have a file of their own: those with a number, or a reason why there is none."""
    return [item for item in history.series if item.measured.any() or item.reasons]


def series_path(item: Series) -> str:
    """Return where a series is exported, below the site."""
    return f"data/series/{item.key}.json"


def index(history: History) -> Index:
    """Return what `data/index.json` holds."""
    return {
        "schema": SCHEMA,
        "states": list(STATES),
        "machines": [
            {"key": item.key, "slug": item.slug, "name": item.name, "facts": dict(item.facts)}
            for item in history.machines
        ],
        "environments": _environments(history),
        "commits": _commits(history),
        "benchmarks": _benchmarks(history),
        "events": _events(history),
        "left_out": _left_out(history),
        "read": {
            "files": history.files,
            "series": len(history.series),
            "points": sum(map(len, history.series)),
            "repository": history.has_repository,
        },
    }


def _environments(history: History) -> list[Mapping[str, object]]:
    return [
        {
            "key": item.key,
            "slug": item.slug,
            "name": item.name,
            "label": item.label,
            "python": item.python,
            "requirements": dict(item.requirements),
            "variables": dict(item.variables),
        }
        for item in history.environments
    ]


def _commits(history: History) -> Mapping[str, object]:
    return {
        "hash": [commit.hash for commit in history.commits],
        "date": [commit.date for commit in history.commits],
        "position": [commit.position for commit in history.commits] if history.has_repository else [],
        "tags": {str(number): list(commit.tags) for number, commit in enumerate(history.commits) if commit.tags},
        "orphans": [number for number, commit in enumerate(history.commits) if commit.orphan],
    }


def _benchmarks(history: History) -> list[Mapping[str, object]]:
    return [
        {
            "key": item.key,
            "slug": item.slug,
            "name": item.name,
            "kind": item.kind,
            "unit": item.unit,
            "direction": item.direction,
            "param_names": list(item.param_names),
            "params": [list(values) for values in item.params],
            "versions": len(item.versions),
            "smallest": two_runs.smallest(two_runs.limit(item)),
        }
        for item in history.benchmarks
    ]


def _events(history: History) -> list[Mapping[str, object]]:
    machines, environments = _numbers(history)
    return [
        {
            "machine": machines[event.machine.key],
            "environment": environments[event.environment.key],
            "commit": event.commit,
            "kind": event.kind,
            "text": event.text,
        }
        for event in history.events
    ]


def _numbers(history: History) -> tuple[dict[str, int], dict[str, int]]:
    machines = {item.key: number for number, item in enumerate(history.machines)}
    return machines, {item.key: number for number, item in enumerate(history.environments)}


def _left_out(history: History) -> list[LeftOut]:
    """Return the reasons why something was left out, the most frequent first, with examples."""
    reasons: dict[str, list[str]] = {}
    for item in history.left_out:
        reasons.setdefault(item.reason, []).append(item.path)
    ordered = sorted(reasons.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    told: list[LeftOut] = [
        {"reason": reason, "count": len(paths), "paths": paths[:_EXAMPLES]} for reason, paths in ordered[:_REASONS]
    ]
    if rest := ordered[_REASONS:]:
        count = sum(len(paths) for _, paths in rest)
        told.append({"reason": f"{len(rest)} further reasons", "count": count, "paths": []})
    return told


class _Distinct(Generic[Content]):
    """Contents, each kept once and referred to by its number."""

    def __init__(self) -> None:
        self.contents: list[Content] = []
        self._numbers: dict[bytes, int] = {}

    def number(self, content: Content) -> int:
        """Return the number of `content`: that of what is the same as JSON."""
        number = self._numbers.setdefault(encode.strict(content), len(self.contents))
        if number == len(self.contents):
            self.contents.append(content)
        return number


def runs(history: History) -> AllRuns:
    """Return every run by machine and environment. Hosts and packages are listed once and referred to by number."""
    machines, environments = _numbers(history)
    listed: list[Runs] = []
    hosts = _Distinct[tuple[object, object]]()
    packages = _Distinct[object]()
    for run in history.runs:
        where = machines[run.machine.key], environments[run.environment.key]
        if not listed or (listed[-1]["machine"], listed[-1]["environment"]) != where:
            machine, environment = where
            listed.append(Runs(machine=machine, environment=environment, commit=[], started=[], host=[], packages=[]))
        listed[-1]["commit"].append(run.commit)
        listed[-1]["started"].append(run.started)
        noted = environment_changes.noted(run) if run.host else None
        listed[-1]["host"].append(hosts.number((environment_changes.facts(run), noted)))
        listed[-1]["packages"].append(packages.number(run.packages))
    return {
        "schema": SCHEMA,
        "runs": listed,
        "hosts": [facts for facts, _ in hosts.contents],
        "noted": [noted for _, noted in hosts.contents],
        "packages": packages.contents,
    }


def series(item: Series, changes: Sequence[Change] = ()) -> OneSeries:
    """Return what `data/series/<key>.json` holds."""
    measured = item.measured
    value = item.value[measured]
    packed = encode.can_be_packed(value)
    content: OneSeries = {
        "schema": SCHEMA,
        "key": item.key,
        "machine": item.machine.slug,
        "environment": item.environment.slug,
        "benchmark": item.benchmark.name,
        "params": list(item.params),
        "unit": item.benchmark.unit,
        "direction": item.benchmark.direction,
        "commit": encode.positions(item.commits),
        "state": encode.runs(item.state),
        "version": encode.runs(item.version),
        "current": item.benchmark.current,
        "reasons": {str(point): reason for point, reason in item.reasons.items()},
        "changes": [_change(item, change) for change in changes],
        "value": encode.pack(value) if packed else encode.rounded(value.tolist()),
    }
    low, high = item.low[measured], item.high[measured]
    bounded = bool(np.isfinite(low).any() or np.isfinite(high).any())
    if bounded and packed:
        content["bounds"] = encode.bounds(value, low, high)
    elif bounded:
        content["low"], content["high"] = encode.rounded(low.tolist()), encode.rounded(high.tolist())
    return content


def _change(item: Series, change: Change) -> Step:
    numbers = encode.rounded([change.before, change.after, change.p, change.importance])
    return {
        "point": change.index,
        "last_before": change.last_before,
        "commit": int(item.commits[change.index]),
        "before": numbers[0],
        "after": numbers[1],
        "p": numbers[2],
        "importance": numbers[3],
        "ratio": None if change.ratio is None else encode.rounded([change.ratio])[0],
        "verdict": change.verdict,
        "words": change.words,
    }
