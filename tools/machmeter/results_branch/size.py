"""How large the branch gets: from the size of the runs that are here, as git keeps them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from machmeter.errors import NoResults
from machmeter.results_branch import paths
from machmeter.results_branch.collect import Collected, merge_benchmarks
from machmeter.text.numbers import noun_of, plural

# What git adds to each file in a pack, beside the bytes: its own header and index entry, and in the trees of each
# commit the file's name, hash and mode, of which the next commit repeats only differences.
OVERHEAD = 150
COMMIT = 900  # bytes in a pack: the commit, and what its five trees differ from those before

# GitHub recommends that a repository stay below, and warns of files above 50 MiB.
RECOMMENDED = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What runs take, and will have taken."""

    runs: int  # each one commit in one environment on one machine
    machines: int
    cells: float  # per run, as the evidence has them
    files: float
    plain: float  # bytes
    packed: float
    fixed: int  # bytes of benchmarks.json, packed: it is changed and not added
    largest: int  # bytes of the largest file

    def lines(self, years: float, on: int, per_day: float) -> list[str]:
        """Return the forecast for `years` of runs on `on` machines."""
        total = round(years * 365 * per_day) * on
        packed = total * self.packed + self.fixed
        share = packed / RECOMMENDED
        return [
            f"here: {plural(self.runs, 'run')} on {plural(self.machines, 'machine')}; "
            f"a run is {plural(round(self.cells), 'cell')} in {self.files:.1f} files, {_size(self.plain)}, "
            f"{_size(self.packed)} in git; the largest file is {_size(self.largest)}",
            f"{years:g} {noun_of(years, 'year')} of {per_day:g} {noun_of(per_day, 'run')} a day "
            f"{'on one machine' if on == 1 else f'on each of {on} machines'}: "
            f"{plural(total, 'run')}, {plural(round(total * self.files), 'file')}",
            f"  in git       {_size(packed)}, {share:.0%} of the 1 GB that GitHub recommends for a repository",
            f"  checked out  {_size(total * self.plain)}",
        ]


def budget(found: Collected) -> Budget:
    """Return what the runs that were `found` take. Raises NoResults where there are none."""
    runs: dict[tuple[str, str], tuple[int, int, int]] = {}
    largest = 0
    for path, content in found.files.items():
        where = paths.place(path)
        assert where is not None  # collect() made it
        files, plain, packed = runs.get((where.machine, where.stem), (0, 0, COMMIT))
        packed += len(zlib.compress(content)) + OVERHEAD
        runs[where.machine, where.stem] = (files + 1, plain + len(content), packed)
        largest = max(largest, len(content))
    if not runs:
        raise NoResults("there are no results to measure yet: run 'make bench' or 'asv run'")
    count = len(runs)
    files, plain, packed = (sum(parts) / count for parts in zip(*runs.values(), strict=True))
    return Budget(
        runs=count,
        machines=len({machine for machine, _ in runs}),
        cells=sum(found.cells.values()) / count,
        files=files,
        plain=plain,
        packed=packed,
        fixed=len(zlib.compress(_catalogue(found.benchmarks))),
        largest=largest,
    )


def _catalogue(benchmarks: Mapping[str, object]) -> bytes:
    return merge_benchmarks({}, dict(benchmarks))


def _size(count: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count / 1e3:.1f} kB"
