"""All series of a machine and environment at each of its runs: what a page needs to compare any two of them.

A comparison reads one or two files of 16 runs, not every series. Values have two characters each: the nearest of 8,095
levels between the smallest and the largest value of their series, by logarithm where all are positive, else evenly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from machmeter.compare import runs
from machmeter.history.data import History, Series
from machmeter.site.data import encode
from machmeter.site.data.shapes import Columns, Scale
from machmeter.store.columns import FAILED, OK, STATES, UNREADABLE

RUNS_PER_FILE = 16

# Codes of what is no number.
ABSENT, GONE, NO_NUMBER, MISSING = (encode.COARSE_LEVELS + number for number in range(1, 5))

_CODES = np.array(
    [GONE if state == FAILED else NO_NUMBER if state == UNREADABLE else MISSING for state in range(len(STATES))]
)
# States, by number, of what was tried. Series that never were come last, and columns end before them.
_TRIED = np.array([state in (OK, FAILED, UNREADABLE) for state in range(len(STATES))])


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """All series of one machine and environment, and the commits of its runs."""

    folder: str  # below the site
    series: list[Series]
    ran: NDArray[np.int32]


def groups(history: History) -> list[Group]:
    """Return the series of each machine and environment."""
    series: dict[tuple[str, str], list[Series]] = {}
    for item in history.series:
        series.setdefault((item.machine.slug, item.environment.slug), []).append(item)
    commits: dict[tuple[str, str], list[int]] = {}
    for run in history.runs:
        commits.setdefault((run.machine.slug, run.environment.slug), []).append(run.commit)
    return [
        Group(folder=f"data/columns/{'/'.join(where)}", series=some, ran=np.array(commits[where], np.int32))
        for where, some in sorted(series.items())
    ]


def places(history: History) -> dict[str, int]:
    """Return the numbers of the benchmarks, by their keys."""
    return {item.key: number for number, item in enumerate(history.benchmarks)}


def files(group: Group, placed: dict[str, int]) -> Iterator[tuple[str, Scale | Columns]]:
    """Yield path and content of the columns of one machine and environment."""
    tried = [bool(_TRIED[item.state].any()) for item in group.series]
    speaking = [item for item, is_tried in zip(group.series, tried, strict=True) if is_tried]
    silent = [item for item, is_tried in zip(group.series, tried, strict=True) if not is_tried]
    ends = [_ends(item) for item in (*speaking, *silent)]
    yield f"{group.folder}/scale.json", scale([*speaking, *silent], ends, placed, group.ran)
    codes = _codes(speaking, ends[: len(speaking)], group.ran)
    for number, start in enumerate(range(0, len(group.ran), RUNS_PER_FILE)):
        block = slice(start, start + RUNS_PER_FILE)
        content: Columns = {
            "schema": 1,
            "commit": group.ran[block].tolist(),
            "value": [encode.letters(code, 2) for code in codes[block]],
        }
        yield f"{group.folder}/{number:03}.json", content


_Ends = tuple[float, float, bool]  # smallest and largest value, and whether all are positive


def scale(some: list[Series], ends: list[_Ends], placed: dict[str, int], ran: NDArray[np.int32]) -> Scale:
    """Return what all columns of a machine and environment share: which series they have, their ends and versions."""
    position = {item.benchmark.key: {values: n for n, values in enumerate(item.benchmark.params)} for item in some}
    return {
        "schema": 1,
        "runs_per_file": RUNS_PER_FILE,
        "key": [item.key for item in some],
        "benchmark": [placed[item.benchmark.key] for item in some],
        "params": [position[item.benchmark.key][item.params] for item in some],
        "from": [least for least, _, _ in ends],
        "to": [most for _, most, _ in ends],
        "even": [number for number, (_, _, positive) in enumerate(ends) if not positive],
        "versions": {str(placed[key]): versions for key, versions in _versions(some, ran).items()},
        "spread": encode.rounded([runs.spread(item) for item in some]),
    }


def _versions(some: list[Series], ran: NDArray[np.int32]) -> dict[str, list[int]]:
    """Return the version that each run has of each benchmark with more than one, as [count, version, ...]."""
    known: dict[str, NDArray[np.int64]] = {}
    for item in some:
        if len(item.benchmark.versions) > 1:
            versions = known.setdefault(item.benchmark.key, np.full(len(ran), -1))
            versions[np.searchsorted(ran, item.commits)] = item.version
    for versions in known.values():  # a run without the benchmark is taken for the one before it
        there = np.maximum.accumulate(np.where(versions >= 0, np.arange(len(ran)), -1))
        versions[:] = versions[np.maximum(there, np.argmax(versions >= 0))]
    return {key: encode.runs(versions) for key, versions in known.items()}


def _ends(item: Series) -> _Ends:
    """Return the smallest and the largest value, and whether all are positive. Ends are exact: one value is itself."""
    value = item.value[item.measured]
    if not len(value):
        return 0.0, 0.0, False
    least, most = float(value.min()), float(value.max())
    return least, most, least > 0.0


def as_read(item: Series, value: float) -> float:
    """Return `value`, one of the numbers of `item`, as it is read from the columns: what a page compares.

    From the nearer end, which is exact, and in two steps: the ratio of two numbers can be more than the largest number.
    """
    least, most, positive = _ends(item)
    only = np.array([value])
    if not positive:
        share = int(encode.even_levels(only, least, most, encode.COARSE_LEVELS)[0]) / encode.COARSE_LEVELS
        return (1 - share) * least + share * most
    share = int(encode.levels(only, least, most, encode.COARSE_LEVELS)[0]) / encode.COARSE_LEVELS
    end, rest = (least, share) if share <= 0.5 else (most, share - 1)
    step = math.exp(rest * (math.log(most) - math.log(least)) / 2)
    return end * step * step


def _codes(some: list[Series], ends: list[_Ends], ran: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the codes of all series at all runs: runs × series."""
    codes = np.full((len(some), len(ran)), ABSENT, np.int64)
    place = np.zeros(int(ran.max(initial=0)) + 1, np.int64)
    place[ran] = np.arange(len(ran))
    for number, (item, (least, most, positive)) in enumerate(zip(some, ends, strict=True)):
        measured = item.measured
        code = _CODES[item.state]
        value = item.value[measured]
        if positive:
            code[measured] = encode.levels(value, least, most, encode.COARSE_LEVELS)
        else:
            code[measured] = encode.even_levels(value, least, most, encode.COARSE_LEVELS)
        codes[number, place[item.commits]] = code
    return codes.T
