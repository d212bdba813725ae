"""The shapes of the exported JSON: what `site/static/schema` says to readers in other languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

Number = float | int | None  # six significant digits, None for what is no number

# Packed columns say "from", which no class can: these are called as functions.
Packed = TypedDict("Packed", {"from": float, "to": float, "width": float, "text": str})
Bounds = TypedDict("Bounds", {"from": int, "levels": int, "width": float, "text": str})
Scale = TypedDict(
    "Scale",
    {
        "schema": int,
        "runs_per_file": int,
        "key": Sequence[str],
        "benchmark": Sequence[int],
        "params": Sequence[int],
        "from": Sequence[float],
        "to": Sequence[float],
        "even": Sequence[int],
        "versions": Mapping[str, Sequence[int]],
        "spread": Sequence[Number],
    },
)


class Columns(TypedDict):
    """All series of a machine and environment at some commits."""

    schema: int
    commit: Sequence[int]
    value: Sequence[str]


class Badge(TypedDict):
    """An endpoint in the format of shields.io."""

    schemaVersion: int
    label: str
    message: str
    color: str


class LeftOut(TypedDict):
    """A reason why files were left out, with examples."""

    reason: str
    count: int
    paths: Sequence[str]


class Runs(TypedDict):
    """The runs of one machine and environment: host and packages by number."""

    machine: int
    environment: int
    commit: list[int]
    started: list[int]
    host: list[int]
    packages: list[int]


class AllRuns(TypedDict):
    """What each run ran on."""

    schema: int
    runs: Sequence[Runs]
    hosts: Sequence[object]
    noted: Sequence[object]
    packages: Sequence[object]


class Step(TypedDict):
    """A change in a series."""

    point: int
    last_before: int
    commit: int
    before: Number
    after: Number
    p: Number
    importance: Number
    ratio: Number
    verdict: str
    words: str


class OneSeries(TypedDict):
    """One series. Its values are packed, with `bounds`, or a list, with `low` and `high`."""

    schema: int
    key: str
    machine: str
    environment: str
    benchmark: str
    params: Sequence[str]
    unit: str
    direction: str | None
    commit: Sequence[int]
    state: Sequence[int]
    version: Sequence[int]
    current: int | None
    reasons: Mapping[str, str]
    changes: Sequence[Step]
    value: Packed | Sequence[Number]
    bounds: NotRequired[Bounds]
    low: NotRequired[Sequence[Number]]
    high: NotRequired[Sequence[Number]]


class Index(TypedDict):
    """What there is: machines, environments, commits, benchmarks, events, and what was left out."""

    schema: int
    states: Sequence[str]
    machines: Sequence[Mapping[str, object]]
    environments: Sequence[Mapping[str, object]]
    commits: Mapping[str, object]
    benchmarks: Sequence[Mapping[str, object]]
    events: Sequence[Mapping[str, object]]
    left_out: Sequence[LeftOut]
    read: Mapping[str, int]


class ListedChange(TypedDict):
    """A change among those of all series."""

    key: str
    verdict: str
    importance: float
    before: float
    after: float
    words: str
    first: str
    commit: str
    libraries: str


class AllChanges(TypedDict):
    """The changes, most important first."""

    schema: int
    changes: Sequence[ListedChange]


class Timeline(TypedDict):
    """What every plot stands on: the commits in order, and what changed around the measurements."""

    schema: int
    hash: Sequence[str]
    date: Sequence[int]
    tags: Mapping[str, Sequence[str]]
    orphans: Sequence[int]
    events: Sequence[Mapping[str, object]]
