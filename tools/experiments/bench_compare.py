"""Try the judgement of comparisons on simulated measurements, asv's own rule beside it, and time the reading.

Run it with `make bench-compare`. Simulations are seeded (`simulate_sides`): the same numbers come out every
time, except for times. What takes minutes is only done with `--only stopping`. A real A/A comparison is
`tools/experiments/compare_real.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import simulate_sides
import store_files
from machmeter import metrics
from machmeter.compare import judge, limits, sides, statistics

ROWS = 200
ROUNDS = 8
SLOWER = math.log(1.05)
SMALLEST = math.log1p(metrics.LATENCY.relative)
ASV_FACTOR, ASV_P = 1.1, 0.002  # asv compare's and asv continuous's own
SAMPLES = 150
BATCH = 250  # tables at once

Rows = NDArray[np.bool_]  # whether each row of a table is one of them


def found(differences: simulate_sides.Array) -> tuple[simulate_sides.Array, float]:
    """Return which rows our rule finds, +1 for slower and -1 for faster, and how often intervals have the truth, 0."""
    estimates = statistics.estimates(statistics.paired(differences, statistics.table(differences)))
    q = statistics.discoveries(estimates.p)
    told = (q <= limits.FALSE_DISCOVERIES) & (np.abs(estimates.middle) >= SMALLEST)
    covered = (estimates.low <= 0.0) & (estimates.high >= 0.0)
    return np.where(told, np.sign(estimates.middle), 0.0), float(np.mean(covered))


def try_ours(noise: simulate_sides.Noise, tables: int, rows: int, rounds: int) -> dict[str, float]:
    """Return what our rule does on tables of identical code, and with one or a tenth of the rows 5 % slower."""
    alarms, coverage = [], []
    one: list[Rows] = []
    many: list[Rows] = []
    tenth = max(1, rows // 10)
    for batch in range(-(-tables // BATCH)):
        random = np.random.default_rng([1, rows, rounds, batch])
        medians = noise.make(random, (min(BATCH, tables - batch * BATCH), rows, rounds))
        differences = medians[:, :, 1] - medians[:, :, 0]
        told, covered = found(differences)
        alarms.append(told.any(axis=-1))
        coverage.append(covered)
        for slowed, kept in ((1, one), (tenth, many)):
            changed = differences.copy()
            changed[:, :slowed] += SLOWER
            kept.append((found(changed)[0] > 0.0)[:, :slowed].ravel())
    return {
        "alarms": float(np.concatenate(alarms).mean()),
        "coverage": float(np.mean(coverage)),
        "one": float(np.concatenate(one).mean()),
        "many": float(np.concatenate(many).mean()),
    }


def try_asv(noise: simulate_sides.Noise, tables: int, rows: int, rounds: int) -> dict[str, float]:
    """Return the same of asv's rule: Mann-Whitney on the pooled samples, with and without its factor of 1.1."""
    any_test, any_rule, row_test, row_rule = [], [], [], []
    power: list[Rows] = []
    for number in range(tables):
        random = np.random.default_rng([2, number])
        medians = noise.make(random, (1, rows, rounds))[0]
        pooled = simulate_sides.samples(random, medians, SAMPLES).reshape(rows, 2, -1)
        for slower, kept in ((0.0, None), (SLOWER, power)):
            head = pooled[:, 1] + slower
            p = stats.mannwhitneyu(pooled[:, 0], head, axis=-1, method="asymptotic").pvalue
            ratio = np.median(head, axis=-1) - np.median(pooled[:, 0], axis=-1)
            different, far = p < ASV_P, np.abs(ratio) > math.log(ASV_FACTOR)
            if kept is not None:
                kept.append(different & (ratio > math.log(ASV_FACTOR)))
                continue
            any_test.append(different.any())
            any_rule.append((different & far).any())
            row_test.append(different.mean())
            row_rule.append((different & far).mean())
    return {
        "any test": float(np.mean(any_test)),
        "any rule": float(np.mean(any_rule)),
        "row test": float(np.mean(row_test)),
        "row rule": float(np.mean(row_rule)),
        "power": float(np.mean(power)),
    }


def print_ours(tables: int) -> None:
    """Print what our rule does under every kind of noise."""
    print(
        f"{tables} tables of {ROWS} cells, {ROUNDS} pairs of processes. A/A: tables of identical code with any finding."
    )
    print("Found: of cells 5 % slower, where one of a table is and where every tenth is. 95 %: intervals that have 1.")
    print(f"\n{'noise of processes':<72} {'A/A':>6} {'95 %':>6} {'one':>6} {'tenth':>6}")
    for noise in simulate_sides.KINDS.values():
        told = try_ours(noise, tables, ROWS, ROUNDS)
        figures = (told["alarms"], told["coverage"], told["one"], told["many"])
        print(f"{noise.words:<72} " + " ".join(f"{100 * figure:5.1f}%" for figure in figures), flush=True)


def print_power(tables: int) -> None:
    """Print how many pairs are needed for how much noise, and how small tables fare."""
    rounds = (6, 8, 12, 16, 24, 32)
    print(f"\nOne cell of {ROWS} 5 % slower, found with so many pairs of processes, each with noise of its own:")
    print(f"{'':<8}" + "".join(f"{count:>8}" for count in rounds))
    for spread in (0.009, 0.012, 0.015, 0.02, 0.03, 0.037):
        noise = simulate_sides.Noise(words="", make=simulate_sides.own(spread))
        figures = [try_ours(noise, max(BATCH, tables // 4), ROWS, count)["one"] for count in rounds]
        print(f"{100 * spread:5.1f} % " + "".join(f"{100 * figure:7.0f}%" for figure in figures), flush=True)
    print(f"\nSmaller tables, {ROUNDS} pairs: A/A tables with any finding, and one cell 5 % slower found")
    for rows in (1, 5, 20, 50):
        told = [
            (noise, try_ours(simulate_sides.KINDS[noise], tables, rows, ROUNDS))
            for noise in ("own", "half", "walk", "two modes", "outliers", "mixed")
        ]
        line = "; ".join(f"{noise} {100 * one['alarms']:.1f} % and {100 * one['one']:.0f} %" for noise, one in told)
        print(f"{rows:>3} cells: {line}", flush=True)


def print_asv(tables: int) -> None:
    """Print what asv's rule does on pooled samples, and on two single processes as in the issue."""
    print(
        f"\nasv's rule on the pooled samples ({SAMPLES} of each process, {tables} tables): Mann-Whitney p < {ASV_P}. "
        f"A/A: tables with any finding, and rows found; each without and with the factor {ASV_FACTOR}"
    )
    print(f"{'noise of processes':<72} {'A/A':>6} {'+1.1':>6} {'row':>6} {'+1.1':>6} {'found':>6}")
    for name in ("own", "two modes", "walk", "rounds", "half", "quiet", "outliers"):
        told = try_asv(simulate_sides.KINDS[name], tables, ROWS, ROUNDS)
        figures = (told["any test"], told["any rule"], told["row test"], told["row rule"], told["power"])
        words = simulate_sides.KINDS[name].words
        print(f"{words:<72} " + " ".join(f"{100 * figure:5.1f}%" for figure in figures), flush=True)
    told = try_asv(simulate_sides.KINDS["own"], tables, ROWS, 1)
    print(
        f"one process a side: {100 * told['row test']:.0f} % of A/A pairs differ, "
        f"{100 * told['row rule']:.1f} % with the factor"
    )


def judged(differences: simulate_sides.Array, done: NDArray[np.int_]) -> tuple[Rows, Rows]:
    """Return which rows of one table are found, and which are undecided, after so many rounds of each."""
    parts: list[tuple[NDArray[np.intp], statistics.Spread]] = []
    known = statistics.table(differences[:, : done.min()])
    for count in np.unique(done):
        rows = np.flatnonzero(done == count)
        parts.append((rows, statistics.paired(differences[rows, :count], known)))
    order = np.argsort(np.concatenate([rows for rows, _ in parts]))
    whole = statistics.Spread(
        **{
            name: np.concatenate([getattr(spread, name) for _, spread in parts])[order]
            for name in ("middle", "error", "freedom")
        }
    )
    told = statistics.estimates(whole)
    q = statistics.discoveries(told.p)
    finding = (q <= limits.FALSE_DISCOVERIES) & (np.abs(told.middle) >= SMALLEST)
    within = (told.low > -SMALLEST) & (told.high < SMALLEST)
    return finding, np.where(finding, q > limits.CONFIRMED, ~within)


def try_stopping(noise: simulate_sides.Noise, tables: int, rows: int, most: int) -> tuple[float, float, float]:
    """Measure as `machmeter pr` does: what is decided gets no more rounds, up to `most`.

    Return the share of A/A tables with any finding, how often one cell 5 % slower is found, and the mean rounds.
    """
    alarms, power, rounds = [], [], []
    for number in range(tables):
        medians = noise.make(np.random.default_rng([3, number]), (1, rows, most))[0]
        for slower in (0.0, SLOWER):
            differences = medians[:, 1] - medians[:, 0]
            differences[0] += slower
            done = np.full(rows, limits.LEAST_PAIRS)
            finding, undecided = judged(differences, done)
            while (more := undecided & (done < most)).any():
                done[more] += 1
                finding, undecided = judged(differences, done)
            if slower:
                power.append(finding[0])
            else:
                alarms.append(finding.any())
                rounds.append(done.mean())
    return float(np.mean(alarms)), float(np.mean(power)), float(np.mean(rounds))


def print_stopping(tables: int) -> None:
    """Print whether it harms that what is decided gets no more rounds."""
    least = limits.LEAST_PAIRS
    print(f"\nWhat is decided after {least} or more rounds is measured no more ({tables} tables of {ROWS} cells):")
    for most in (8, 16):
        for name in ("own", "half", "walk", "rounds", "mixed"):
            alarms, power, rounds = try_stopping(simulate_sides.KINDS[name], tables, ROWS, most)
            print(
                f"at most {most:>2} rounds, {rounds:4.1f} on average; {simulate_sides.KINDS[name].words}: "
                f"A/A {100 * alarms:.1f} %, one found {100 * power:.0f} %",
                flush=True,
            )


def write_side(results: Path, commit: str, first: int, cells: int, rounds: int, samples: int) -> None:
    """Write results and evidence of one commit as asv and machmeter write them: `cells` with their samples."""
    random = np.random.default_rng(first)
    levels = 0.005 * np.exp(np.random.default_rng(0).normal(0.0, 1.0, cells))
    values = levels[:, None] * np.exp(random.normal(0.0, 0.01, (cells, rounds)))
    drawn = values[:, :, None] * np.exp(random.normal(0.0, 0.02, (cells, rounds, samples)))
    batches = [str(number) for number in range(cells // 20)]
    rows, records = {}, {}
    columns = ["result", "params", "version", "started_at", "duration", "samples"]
    for model in range(20):
        part = slice(model * len(batches), (model + 1) * len(batches))
        pooled = drawn[part].reshape(len(batches), -1).round(9).tolist()
        medians = np.median(drawn[part], axis=-1)
        rows[f"cpu.null.M{model}.time_forward"] = [
            np.median(medians, axis=-1).tolist(), [["'int8'"], batches], "1.1", 1_796_000_000_000, 1.0, pooled,
        ]  # fmt: skip
        for number, batch in enumerate(batches):
            records[f"cpu.null.M{model}(int8, {batch})"] = {
                f"{commit[:4]}{model}-{number}-{place}": {
                    "benchmark": "time_forward", "status": "ok", "pid": 1, "process": "x", "order": 1,
                    "started_at": 1_796_000_000.0 + 1000 * place + 10 * (first ^ (place % 2)),
                    "median_seconds": float(medians[number, place]), "samples": samples, "disturbed_share": 0.0,
                    "sample_seconds": drawn[part][number, place].round(9).tolist(),
                }
                for place in range(rounds)
            }  # fmt: skip
    content = store_files.result_file(
        commit, "env", 1_796_000_000_000 + first, rows, columns, {"machine": "box"}, variables={"STACK": "cpu"}
    )
    run = {
        "started": "2026-11-30T00:00:00Z",
        "host": {"thread_budget": 2},
        "versions": {"numpy": "2"},
        "cells": records,
    }
    whole = store_files.evidence_file(commit, "box", "env", "cpu", {"r": run})
    for folder, told in ((results / "box", content), (results.parent / "evidence" / "box", whole)):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{commit[:8]}-env.json").write_text(json.dumps(told))


def print_reading(cells: int = 2000, rounds: int = 8, samples: int = 150) -> None:
    """Print how long reading and judging two sides takes."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        for first, commit in enumerate(("a" * 40, "b" * 40)):
            write_side(results, commit, first, cells, rounds, samples)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*.json"))
        start = time.perf_counter()
        told = sides.read(results, "box", "a" * 40, "b" * 40)
        middle = time.perf_counter()
        judged = judge.compare(told)
        end = time.perf_counter()
    print(
        f"\nTwo sides of {cells} cells, {rounds} processes of {samples} samples each ({size / 1e6:.0f} MB): read in "
        f"{middle - start:.2f} s, judged in {end - middle:.2f} s; {len(judged.findings)} compared, "
        f"interleaved: {told.interleaved}, {judged.result}"
    )


def main() -> None:
    """Run everything, or what was chosen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--only", choices=("ours", "power", "stopping", "asv", "reading"))
    chosen = parser.parse_args()
    if chosen.only in (None, "ours"):
        print_ours(chosen.tables)
    if chosen.only in (None, "power"):
        print_power(chosen.tables)
    if chosen.only == "stopping":  # takes some minutes
        print_stopping(chosen.tables)
    if chosen.only in (None, "asv"):
        print_asv(max(5, chosen.tables // 100))
    if chosen.only in (None, "reading"):
        print_reading()


if __name__ == "__main__":
    main()
