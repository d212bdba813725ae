"""What is measured of both sides, how often, and in which order. Pure functions of asv's own lists of benchmarks."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from machmeter import metrics, units
from machmeter.compare import limits
from machmeter.compare.documents import Better
from machmeter.errors import NothingSelected
from machmeter.history.data import short_hash
from machmeter.store.columns import shown
from machmeter.workload.names import is_control, is_of_machine

Key = tuple[str, str]  # cell and metric

LONGEST_NAME = 300
TIMING_SECONDS = 3.0  # of samples in one process: more processes tell more than more samples of one
TIMING = f"repeat=(5,1000,{TIMING_SECONDS})"  # asv does not tell what a benchmark's own is: only ours are shortened
COSTLY_SECONDS = 10.0  # of one process: what takes longer and is no timing is measured once
BLOCK_SECONDS = 10.0  # cells are measured base against head one by one; small ones together, as a call of asv costs 1 s

TIMING_METRIC = "time_forward"

# Measured only where a pattern names it: what takes minutes, or the whole machine, says little about a change.
_ON_REQUEST = ("offline", "tuning", "aot", "machinepeak")


@dataclass(frozen=True, kw_only=True)
class Item:
    """One metric of one cell of one side: as a comparison calls it, and as asv does."""

    cell: str
    metric: str
    benchmark: str
    place: int  # of its parameters among all combinations, as asv counts them
    values: tuple[str, ...]  # of its parameters, as asv writes them
    unit: str
    better: Better
    version: str
    timed: bool  # every process may give another number: it is measured in rounds
    bounded: bool = False  # it is so only where that is cheap
    repeat: str = ""  # asv's setting where the benchmark's own takes longer than is of use here
    control: bool = False

    @property
    def key(self) -> Key:
        """Return what the other side has under the same name."""
        return self.cell, self.metric

    @property
    def name(self) -> str:
        """Return what asv matches its patterns with."""
        return f"{self.benchmark}({', '.join(self.values)})" if self.values else self.benchmark

    @property
    def pattern(self) -> str:
        """Return the regular expression with which asv selects this and nothing else."""
        return f"^{re.escape(self.name)}$"

    @property
    def opening(self) -> bool:
        """Return whether it is what a process knows once it has loaded its cell."""
        return self.metric in metrics.OPENINGS

    @property
    def seconds(self) -> float:
        """Return a guess at how long one process takes, before one is known."""
        if not self.timed or self.opening:
            return 2.0
        return TIMING_SECONDS + 3.0 if self.repeat else 1.0


def items(benchmarks: Mapping[str, Mapping[str, Any]], patterns: Collection[str]) -> dict[Key, Item]:
    """Return what `patterns` select of asv's list `benchmarks` (all of it where there is none), and the controls.

    Raises NothingSelected for a pattern that is no regular expression.
    """
    wanted = compiled(patterns)
    found = (item for name, described in benchmarks.items() for item in _items(name, described))
    chosen = [item for item in found if _selected(item, wanted)]
    if all(is_of_machine(item.cell) for item in chosen):  # then they are what is asked for
        chosen = [replace(item, control=False) for item in chosen]
    return {item.key: item for item in chosen}


def compiled(patterns: Iterable[str]) -> list[re.Pattern[str]]:
    """Return `patterns` as regular expressions. Raises NothingSelected for one that is none."""
    wanted = []
    for pattern in patterns:
        try:
            wanted.append(re.compile(pattern))
        except re.error as error:
            raise NothingSelected(f"--bench {pattern!r} is not a regular expression: {error}") from error
    return wanted


def _selected(item: Item, wanted: Sequence[re.Pattern[str]]) -> bool:
    name = item.name.lower()
    asked = [pattern for pattern in wanted if pattern.search(item.name)]
    for word in _ON_REQUEST:
        if word in name:
            return any(word in pattern.pattern.lower() for pattern in asked)
    return item.control or bool(asked) or not wanted


def _items(name: str, described: Mapping[str, Any]) -> Iterator[Item]:
    """Yield each combination of parameters of one benchmark."""
    owner, _, method = name.rpartition(".")
    unit = _unit(name, described)
    better = units.direction(name, unit) or "unknown"
    kind = described.get("type")
    tracked = kind == "track" and _may_scatter(method, unit)
    for place, values in enumerate(itertools.product(*described.get("params") or [])):
        label = f"{owner}({', '.join(map(shown, values))})" if values else owner or name
        if len(label) > LONGEST_NAME:
            label = f"{label[: LONGEST_NAME - 13]}…{short_hash(label)}"
        yield Item(
            cell=label,
            metric=method,
            benchmark=name,
            place=place,
            values=tuple(map(str, values)),
            unit=unit[:40],
            better=better,
            version=str(described.get("version", ""))[:200],
            timed=kind == "time" or tracked,
            bounded=tracked and "/s" not in unit,
            repeat=TIMING if method == TIMING_METRIC else "",
            control=is_control(name),
        )


def _may_scatter(metric: str, unit: str) -> bool:
    """Return whether one number of each side says too little of `metric`: what is exact is not judged by rounds."""
    limit = limits.limit(metric, units.base(unit)[1])
    return not limit.exact and not limit.once and metric != "track_prepare_time"


def _unit(name: str, described: Mapping[str, Any]) -> str:
    try:
        return metrics.metric(name.rpartition(".")[2]).unit
    except KeyError:
        told = str(described.get("unit", ""))
        return units.guess(name)[1] if told in ("", "unit") else told


# ------------------------------------------------------------------ how often, and in which order


@dataclass(frozen=True, kw_only=True)
class Task:
    """What one call of asv measures on each side."""

    keys: tuple[Key, ...]
    repeat: str = ""


def wanted_rounds(base: Item | None, head: Item | None, rounds: int, seconds: float = 0.0) -> int:
    """Return how often a metric is worth measuring where one process takes so many `seconds`.

    What only one side has, or has in another version, is measured once.
    """
    if base is None or head is None or base.version != head.version or base.unit != head.unit:
        return 1
    costly = head.bounded and seconds > COSTLY_SECONDS
    return rounds if head.timed and not costly else 1


def spread(keys: Iterable[Key]) -> list[Key]:
    """Return `keys` so that each class has its turn: where time is short, something is known of each of them."""
    groups: dict[str, dict[str, list[Key]]] = {}
    for key in keys:
        groups.setdefault(key[0].partition("(")[0], {}).setdefault(key[0], []).append(key)
    turns = itertools.zip_longest(*(group.values() for group in groups.values()))
    return [key for turn in turns for cell in turn if cell for key in cell]


def blocks(
    known: Mapping[Key, Item], keys: Iterable[Key], seconds: Mapping[Key, float], done: Mapping[Key, int]
) -> list[Task]:
    """Return the calls that measure `keys` once: one cell each, several where they are small.

    What is no timing of a cell is one call, as its processes share what one of them found. `seconds` are those
    that a process of each took, and `done` says how often each was measured: in one call all stand alike.
    """
    found: list[Task] = []
    filled = 0.0
    last: tuple[Any, ...] = ()
    for key in keys:
        item, cost = known[key], seconds.get(key, known[key].seconds)
        shared = not item.timed or item.opening
        kind = (item.timed, item.repeat, done.get(key, 0), item.cell if shared else None)
        if found and kind == last and (shared or filled + cost <= BLOCK_SECONDS):
            found[-1] = Task(keys=(*found[-1].keys, key), repeat=item.repeat)
            filled += cost
        else:
            found.append(Task(keys=(key,), repeat=item.repeat))
            filled, last = cost, kind
    return found


def base_first(done: int) -> bool:
    """Return which side comes first when a metric was measured `done` times: each as often as the other."""
    return done % 2 == 0
