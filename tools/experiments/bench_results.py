"""Measure the results branch at its largest: a push onto many files, eight at once, a pull, a verification, its size.

    python tools/experiments/bench_results.py [--files 5000] [--pushes 100]

A bare repository on this disk stands for the remote, so what is measured is machmeter and git, not the line. The size
is that of runs of 33 cells (what `make bench` measures), pushed one by one and packed as a server packs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import store_files
from machmeter.results_branch import collect, pull, push, size, verify
from machmeter.results_branch import remote as remote_module

COLUMNS = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "samples"]
CELLS, SAMPLES = 33, 340  # of a `make bench` on two cores
MACHINES = 4
BRANCH = "results"


def write_run(folder: Path, number: int, machine: str, cells: int, samples: int) -> None:
    """Write what one run of `cells` leaves: asv's file with samples, and the evidence with each process's own."""
    chance = random.Random(f"{number} {machine}")
    commit, started = hashlib.sha1(f"{number}".encode()).hexdigest(), 1_700_000_000_000 + number * 86_400_000
    name = f"{commit[:8]}-virtualenv-py3.11-STACKcpu.json"
    timed = [[chance.lognormvariate(-3, 0.1) for _ in range(samples)] for _ in range(cells)]
    rows = {f"cpu.backend.Model{cell}.time_forward": _row(timed[cell], started) for cell in range(cells)}
    result = store_files.result_file(
        commit,
        "virtualenv-py3.11-STACKcpu",
        started,
        rows,
        COLUMNS,
        {"machine": machine, "cpu": "Some CPU", "arch": "x86_64", "num_cpu": "2", "os": "Linux", "ram": "8"},
        variables={"STACK": "cpu"},
    )
    records = {f"cpu.backend.Model{cell}(fp32, 1)": _records(chance, timed[cell], started) for cell in range(cells)}
    run = {
        "started": "2026-01-01T00:00:00Z",
        "host": {"cpu": {"model": "Some CPU", "features": ["avx2", "avx512f"] * 4}},
        "versions": {f"package-{item}": f"{item}.{item % 7}.{item % 5}" for item in range(130)},
        "cells": records,
    }
    evidence = store_files.evidence_file(
        commit, machine, "virtualenv-py3.11-STACKcpu", "cpu", {f"{chance.getrandbits(64):016x}": run}
    )
    for top, content in (("results", result), ("evidence", evidence)):
        (folder / top / machine).mkdir(parents=True, exist_ok=True)
        (folder / top / machine / name).write_text(json.dumps(content))
    described = {name: {"name": name, "type": "time", "unit": "seconds", "version": "1", "code": name} for name in rows}
    (folder / "results" / "benchmarks.json").write_text(json.dumps({**described, "version": 2}))


def _row(samples: list[float], started: int) -> list[Any]:
    middle = sorted(samples)[len(samples) // 2]
    return [[middle], [], "1", started, 1.0, [middle * 0.99], [middle * 1.01], [samples]]


def _records(chance: random.Random, samples: list[float], started: int) -> dict[str, Any]:
    found = {}
    for order, benchmark in enumerate(("track_load_time", "time_forward")):
        process = f"{chance.getrandbits(64):016x}"
        found[process] = {
            "benchmark": benchmark,
            "status": "ok",
            "order": order,
            "process": process,
            "started_at": started / 1000,
            "trace": f"/home/runner/work/evidence/machine/.traces/{process}.txt",
            "artifact": {
                "digest": f"{chance.getrandbits(256):064x}",
                "key": "28fa2f453eeb44510b0c",
                "kind": "openvino",
            },
            "effective": {"threads": 2, "kernels": {f"Convolution {item}": item for item in range(6)}},
            "facts": {f"track_{item}": chance.random() for item in range(7)},
            **({"sample_seconds": [round(item, 9) for item in samples]} if benchmark == "time_forward" else {}),
        }
    return found


def timed(what: str, do: Callable[[], Any]) -> Any:
    """Do it, and print how long it took."""
    begin = time.monotonic()
    done = do()
    print(f"{what:<52} {time.monotonic() - begin:6.2f} s", flush=True)
    return done


def opened(remote: Path, folder: Path) -> remote_module.Branch:
    """Return the branch in a new repository in `folder`."""
    folder.mkdir()
    return remote_module.Branch(remote_module.find_remote(folder, str(remote)), BRANCH, folder)


def push_folder(remote: Path, source: Path, scratch: Path) -> push.Pushed:
    """Push what `source` has."""
    found = collect.collect([collect.in_folder(source)])
    found.check()
    return push.push(found, opened(remote, scratch))


def bare(folder: Path) -> Path:
    """Make a remote."""
    subprocess.run(["git", "init", "--quiet", "--bare", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "config", "uploadpack.allowFilter", "true"], check=True)
    return folder


def bench_times(top: Path, files: int) -> None:
    """Measure each command on a branch with so many files."""
    remote = bare(top / "remote.git")
    for number in range(files // 2):
        write_run(top / "many", number, f"machine{number % MACHINES}", cells=2, samples=20)
    timed(f"the first push, of {files} files", lambda: push_folder(remote, top / "many", top / "a"))
    write_run(top / "one", files, "machine0", CELLS, SAMPLES)
    timed(f"a push of one run onto {files} files", lambda: push_folder(remote, top / "one", top / "b"))
    timed("the same again: nothing to push", lambda: push_folder(remote, top / "one", top / "c"))
    for number in range(8):
        write_run(top / f"eight{number}", files + number + 1, "machine1", CELLS, SAMPLES)
    timed("eight pushes at once", lambda: at_once(remote, top))
    branch = opened(remote, top / "d")
    into = collect.in_folder(top / "pulled")
    done = timed("a pull of all of it", lambda: pull.pull(branch, branch.fetch() or "", into, collect.collect([into])))
    print(f"  {len(done.written)} files")
    branch = opened(remote, top / "e")
    judged = timed("a verification", lambda: verify.verify_branch(branch, branch.fetch(history=True) or ""))
    print("\n".join(f"  {line}" for line in judged.lines("the branch")))


def at_once(remote: Path, top: Path) -> None:
    """Push from eight processes at once."""
    context = multiprocessing.get_context("fork")
    arguments = [(remote, top / f"eight{number}", top / f"scratch{number}") for number in range(8)]
    processes = [context.Process(target=push_folder, args=given) for given in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        sys.exit("a publisher failed")


def bench_size(top: Path, pushes: int) -> None:
    """Compare the computed size with what git takes for so many pushes of one run each."""
    remote, source = bare(top / "sized.git"), top / "sized"
    for number in range(pushes):
        write_run(top / "each" / str(number), number, f"machine{number % MACHINES}", CELLS, SAMPLES)
        push_folder(remote, top / "each" / str(number), top / f"sized{number}")
        write_run(source, number, f"machine{number % MACHINES}", CELLS, SAMPLES)
    subprocess.run(["git", "-C", str(remote), "gc", "--quiet"], check=True)
    packs = (remote / "objects" / "pack").iterdir()
    taken = sum(path.stat().st_size for path in packs if path.suffix in (".pack", ".idx"))
    said = size.budget(collect.collect([collect.in_folder(source)]))
    print("\n".join(said.lines(3, MACHINES, 1)))
    computed = said.packed * said.runs + said.fixed
    print(f"{pushes} pushes of one run each: computed {computed / 1e6:.2f} MB, packed by git {taken / 1e6:.2f} MB")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--pushes", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="machmeter-bench-") as folder:
        bench_times(Path(folder), options.files)
        bench_size(Path(folder), options.pushes)


if __name__ == "__main__":
    main()
