"""What a results store holds, as plain data: machines, environments, commits, benchmarks and their series.

A *series* is one benchmark with one combination of parameters on one machine in one environment. Its points are
columns (numpy arrays of equal length), one point for each commit that has a result file of that machine and
environment which names the benchmark, in the order of `History.commits`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter.machine.host import HostFacts
from machmeter.metrics import Direction
from machmeter.store.columns import OK, shown
from machmeter.workload.pinned import Swept


def short_hash(*parts: Any) -> str:
    """Return 12 hexadecimal digits that stand for `parts` (JSON data): the same on every machine and in every year."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One machine: a folder of the store, and the name under which asv knows it."""

    key: str  # 12 hex digits over folder and name
    slug: str  # for file names and links, unique in the history, ASCII letters, digits, "-", "_", "."
    name: str
    folder: str
    facts: Mapping[str, str]  # arch, cpu, num_cpu, os, ram as asv noted them; empty where it noted none


@dataclass(frozen=True, kw_only=True)
class Environment:
    """One environment in which benchmarks ran: asv's name of it, Python, requirements and variables."""

    key: str  # 12 hex digits over all of the following
    slug: str  # as Machine.slug
    name: str  # asv's own name, in full even where asv shortens it to env-<md5> in file names
    python: str
    requirements: Mapping[str, str]
    variables: Mapping[str, str]
    label: str  # short and unique: only what tells it from the others

    @property
    def stack(self) -> str | None:
        """Return the stack it was built from, where it has the variable STACK."""
        return self.variables.get("STACK")


@dataclass(frozen=True, kw_only=True)
class Commit:
    """One commit that has results."""

    hash: str
    date: int  # milliseconds since 1970, as asv noted it
    tags: tuple[str, ...] = ()
    position: int | None = None  # number in the repository's order; None without a repository and for orphans
    orphan: bool = False  # there is a repository and it does not have this commit

    @property
    def short(self) -> str:
        """Return the first eight digits of the hash."""
        return self.hash[:8]


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """One benchmark, with every combination of parameters and every version that any result has."""

    key: str  # 12 hex digits over the name
    slug: str  # as Machine.slug: `history/<slug>.html`
    name: str  # such as cpu.openvino.ResNet50.time_forward
    kind: str  # time, memory, peakmemory, track or unknown
    unit: str  # base unit: "ms" is "seconds" here and the numbers are converted; "" where unknown
    direction: Direction | None  # which way is better; None where nobody said
    param_names: tuple[str, ...]
    params: tuple[tuple[str, ...], ...]  # combinations that occur, as asv writes the values ("'int8'", "8")
    versions: tuple[str, ...]  # in order of first use; "" where asv noted none
    current: int  # index into `versions`: of benchmarks.json, else the newest. Points of others are from before

    @property
    def module(self) -> str:
        """Return its module (and class): everything before the last dot."""
        return self.name.rpartition(".")[0]

    @property
    def method(self) -> str:
        """Return the method's name, such as time_forward."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """The points of one benchmark with one combination of parameters on one machine in one environment."""

    key: str  # 12 hex digits over machine, environment, benchmark and params: stable, in file names and links
    machine: Machine
    environment: Environment
    benchmark: Benchmark
    params: tuple[str, ...]
    commits: NDArray[np.int32]  # positions in History.commits, ascending, none twice
    value: NDArray[np.float64]  # NaN where the state is not OK
    low: NDArray[np.float64]  # the confidence interval that asv computed (99 %); NaN where there is none
    high: NDArray[np.float64]
    state: NDArray[np.uint8]  # OK, FAILED, ...
    version: NDArray[np.int16]  # index into Benchmark.versions
    samples: NDArray[np.int32]  # how many asv took; 0 where it did not say
    started: NDArray[np.int64]  # milliseconds since 1970; 0 where asv did not say
    reasons: Mapping[int, str] = field(default_factory=dict)  # by point: why there is no number, from the evidence

    def __len__(self) -> int:
        return len(self.commits)

    @property
    def label(self) -> str:
        """Return its parameters as a reader writes them: "int8, 8"."""
        return ", ".join(shown(value) for value in self.params)

    def point(self, commit: int) -> int | None:
        """Return which of its points is of `commit`, or None."""
        place = int(self.commits.searchsorted(commit))
        return place if place < len(self) and self.commits[place] == commit else None

    @cached_property
    def measured(self) -> NDArray[np.bool_]:
        """Return which points have a number."""
        return np.asarray(self.state == OK)

    @cached_property
    def older(self) -> NDArray[np.bool_]:
        """Return which points are of another version of the benchmark than the current one."""
        return np.asarray(self.version != self.benchmark.current)


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A file, or a part of one, that was not used, and why."""

    path: str  # relative to the results folder
    reason: str


@dataclass(frozen=True, kw_only=True)
class Run:
    """One file of results: a machine, an environment and a commit; what a column of a comparison is."""

    machine: Machine
    environment: Environment
    commit: int  # position in History.commits
    started: int  # milliseconds since 1970, the newest of its benchmarks; 0 where asv did not say
    params: Mapping[str, str]  # facts of the machine as noted with this very run
    host: HostFacts | None = None  # from the evidence, None where there is none
    packages: Mapping[str, str] = field(default_factory=dict)  # installed versions from the evidence
    swept: Swept | None = None  # library and version, where a sweep measured it


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something around the measurements that changed between two consecutive runs of a machine and environment."""

    machine: Machine
    environment: Environment
    commit: int  # position in History.commits: the first run that has it
    text: str  # one line: "openvino 2026.2.1 -> 2026.4.1, torch 2.13.0 -> 2.14.1"
    kind: str  # "host" (CPU, driver, kernel, threads: numbers may not be comparable) or "packages"
    details: tuple[tuple[str, str, str], ...]  # (name, old, new), "" where it was absent


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """Everything that a results store holds."""

    machines: tuple[Machine, ...]
    environments: tuple[Environment, ...]
    commits: tuple[Commit, ...]  # oldest first: in git's order with a repository, else by date
    benchmarks: tuple[Benchmark, ...]  # by name
    series: tuple[Series, ...]  # by benchmark, machine, environment, params in asv's order
    runs: tuple[Run, ...]  # by machine, environment, commit
    events: tuple[Event, ...] = ()  # by machine, environment, commit
    left_out: tuple[LeftOut, ...] = ()
    files: int = 0  # result files that were read
    has_repository: bool = False

    @property
    def orphans(self) -> int:
        """Return how many commits the repository does not have."""
        return sum(commit.orphan for commit in self.commits)

    @property
    def newest(self) -> Run | None:
        """Return the run that was started last, or of the newest commit where no run says when."""
        return max(self.runs, key=lambda run: (run.started, run.commit), default=None)

    def get(self, key: str) -> Series:
        """Return the series called `key`. Raises KeyError."""
        return self._by_key[key]

    @property
    def _by_key(self) -> Mapping[str, Series]:
        found: dict[str, Series] | None = self.__dict__.get("_index")
        if found is None:
            found = {item.key: item for item in self.series}
            object.__setattr__(self, "_index", found)
        return found
