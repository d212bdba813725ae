"""Write a large results store in asv's format, to measure reading, publishing and change detection on.

    python tools/experiments/generate_store.py DIR [--files 1433] [--benchmarks 284] [--seed 1]

As described of a real one: 284 benchmarks with parameter grids up to five deep, NaN, Infinity and null among the
results, several versions of some benchmarks, 1,433 files of about 270 MB together. The same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import store_files

MACHINE = "generated"
FACTS = {"arch": "x86_64", "cpu": "Generated CPU", "num_cpu": "8", "os": "Linux 6.1", "ram": "32000000000"}
ENVIRONMENTS = (("3.11", {"numpy": "", "scipy": ""}), ("3.12", {"numpy": "2.0", "scipy": ""}))  # Python, packages
COLUMNS = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b"]
COLUMNS += ["stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples", "profile"]

DEPTHS = (0.30, 0.25, 0.22, 0.11, 0.07, 0.05)  # how many of the benchmarks have 0, 1, ... 5 parameters
KINDS = (("time", 0.74), ("track", 0.10), ("peakmem", 0.12), ("mem", 0.04))
_VALUES = ("'float32'", "'float64'", "'int64'", "None", "True", "1000", "100000", "<class 'list'>", "'a/b'", "'a?b'")

FIRST_DATE = 1_500_000_000_000
DAY = 86_400_000


@dataclass(frozen=True, kw_only=True)
class Made:
    """One benchmark: its grid, the level of each cell, and where its levels and versions change."""

    name: str
    kind: str
    params: list[list[str]]
    cells: int
    level: np.ndarray  # of each cell
    noise: float  # relative
    steps: list[tuple[int, float]]  # from which file on, times what
    impossible: np.ndarray  # cells that are always skipped
    failing: tuple[int, ...]  # files in which some cells fail
    first: int  # file in which it appears
    versions: list[tuple[int, str]]  # from which file on

    @property
    def has_stats(self) -> bool:
        """Return whether asv keeps an interval for it."""
        return self.kind == "time"

    def version(self, number: int) -> str:
        """Return its version in file `number`."""
        return [text for start, text in self.versions if start <= number][-1]


def make_benchmarks(count: int, files: int, rng: np.random.Generator) -> list[Made]:
    """Return `count` benchmarks whose histories span `files` files."""
    kinds = [name for name, _ in KINDS]
    shares = [share for _, share in KINDS]
    made = []
    for number in range(count):
        kind = kinds[rng.choice(len(kinds), p=shares)]
        depth = int(rng.choice(len(DEPTHS), p=DEPTHS))
        sizes = [int(rng.integers(2, 6 if depth < 3 else 4 if depth < 5 else 3)) for _ in range(depth)]
        params = [[str(value) for value in rng.choice(_VALUES, size, replace=False)] for size in sizes]
        cells = int(np.prod(sizes)) if sizes else 1
        scale = 10 ** rng.uniform(6, 9) if kind in ("peakmem", "mem") else 10 ** rng.uniform(-6, 0.5)
        steps = sorted(
            (int(rng.integers(1, max(files, 2))), float(rng.choice([0.5, 0.8, 0.9, 1.1, 1.25, 2.0])))
            for _ in range(rng.poisson(2))
        )
        changes = sorted({int(rng.integers(1, max(files, 2))) for _ in range(2)}) if rng.random() < 0.2 else []
        name = f"module_{number % 37:02}.Suite{number:03}.{kind}_operation"
        made.append(
            Made(
                name=name,
                kind=kind,
                params=params,
                cells=cells,
                level=scale * rng.uniform(0.5, 4.0, cells),
                noise=float(rng.choice([0.002, 0.01, 0.03])) if kind in ("time", "track") else 0.0005,
                steps=steps,
                impossible=rng.random(cells) < (0.08 if depth > 1 else 0.0),
                failing=tuple(sorted(int(place) for place in rng.integers(0, files, 2)))
                if rng.random() < 0.15
                else (files, files),
                first=int(rng.integers(0, max(files // 2, 1))) if rng.random() < 0.2 else 0,
                versions=[(0, _digest(name, 0))] + [(start, _digest(name, start)) for start in changes],
            )
        )
    return made


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def row(benchmark: Made, number: int, started: int, rng: np.random.Generator) -> list[Any]:
    """Return asv's row of `benchmark` in file `number`."""
    level = benchmark.level * np.prod([factor for start, factor in benchmark.steps if start <= number])
    value = level * np.exp(benchmark.noise * rng.standard_normal(benchmark.cells))
    if benchmark.kind in ("peakmem", "mem"):
        value = np.round(value)
    skipped = benchmark.impossible | (rng.random(benchmark.cells) < 0.005)
    failed = np.zeros(benchmark.cells, bool)
    if benchmark.failing[0] <= number < benchmark.failing[1]:
        failed[: max(benchmark.cells // 3, 1)] = True
    failed &= ~skipped
    results: list[Any] = value.tolist()
    if benchmark.kind in ("peakmem", "mem"):
        results = [int(item) for item in results]
    for place in np.flatnonzero(skipped):
        results[place] = float("nan")
    for place in np.flatnonzero(failed):
        results[place] = None
    found: list[Any] = [results, benchmark.params, benchmark.version(number), started, 1.2345]
    if not benchmark.has_stats:
        return found
    absent = skipped | failed
    width = value * benchmark.noise * rng.uniform(0.5, 2.0, benchmark.cells)
    single = rng.random(benchmark.cells) < 0.01  # one sample has no interval
    for factor in (-1.0, 1.0, -0.4, 0.4):
        bound = [float(f"{item:.5g}") for item in value + factor * width]
        if abs(factor) == 1.0:
            for place in np.flatnonzero(single):
                bound[place] = float("inf") * factor
        found.append([None if gone else item for gone, item in zip(absent, bound, strict=True)])
    for count in (3, 10):
        found.append([None if gone else count for gone in absent])
    return found


def generate(folder: Path, files: int = 1433, benchmarks: int = 284, seed: int = 1) -> int:
    """Write the store into `folder` and return how many bytes it has."""
    rng = np.random.default_rng(seed)
    made = make_benchmarks(benchmarks, files, rng)
    target = folder / MACHINE
    target.mkdir(parents=True, exist_ok=True)
    (target / "machine.json").write_text(json.dumps({**FACTS, "machine": MACHINE, "version": 1}))
    listed = {item.name: describe(item, files) for item in made}
    (folder / "benchmarks.json").write_text(json.dumps({**listed, "version": 2}))
    total = 0
    for number in range(files):
        python, requirements = ENVIRONMENTS[0 if number < 0.7 * files else 1]
        commit = hashlib.sha1(f"{seed} {number}".encode()).hexdigest()
        packages = [f"{package}{version}" for package, version in requirements.items()]
        name = "-".join(["virtualenv", f"py{python}", *packages])
        date = FIRST_DATE + number * DAY // 2
        content = store_files.result_file(
            commit,
            name,
            date,
            {
                item.name: row(item, number, date + 3_600_000, rng)
                for item in made
                if item.first <= number and rng.random() > 0.01
            },
            COLUMNS,
            {**FACTS, "machine": MACHINE, "python": python, **requirements},
            python=python,
            requirements=requirements,
        )
        text = json.dumps(content)
        total += len(text)
        (target / f"{commit[:8]}-{name}.json").write_text(text)
    return total


def describe(benchmark: Made, files: int) -> dict[str, Any]:
    """Return what asv's benchmarks.json says of `benchmark`."""
    kind = {"time": "time", "track": "track", "peakmem": "peakmemory", "mem": "memory"}[benchmark.kind]
    unit = {"time": "seconds", "track": "unit", "peakmem": "bytes", "mem": "bytes"}[benchmark.kind]
    return {
        "name": benchmark.name,
        "type": kind,
        "unit": unit,
        "params": benchmark.params,
        "param_names": [f"p{number}" for number in range(len(benchmark.params))],
        "version": benchmark.version(files),
        "code": f"def {benchmark.name.rpartition('.')[2]}(self): ...",
    }


def main() -> None:
    """Generate a store as the command line says."""
    parser = argparse.ArgumentParser(description="Write a large results store in asv's format.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=1433)
    parser.add_argument("--benchmarks", type=int, default=284)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    total = generate(options.folder, options.files, options.benchmarks, options.seed)
    print(f"{options.files} files, {total / 1e6:.0f} MB in {options.folder}")


if __name__ == "__main__":
    main()
