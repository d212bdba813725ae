"""Measure building the site of a large store, step by step: seconds, CPU seconds, peak memory, size.

    python tools/bench_site.py [--store DIR] [--publish] [--files 1433] [--benchmarks 284]

Without --store, a store is generated (see generate_store.py). With --publish, `asv publish` makes its pages of the
same store in the same run: it needs a repository with the store's commits, which is made beside it. CPU seconds count
all processes; they say more than seconds where other work runs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import generate_store

PROCESSES = len(os.sched_getaffinity(0))


def cpu_seconds() -> float:
    """Return the CPU time of this process and of all its children that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in used)


def peak_megabytes() -> float:
    """Return the larger of the peaks of this process and of any of its children."""
    used = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return max(used) / 1024


def build(results: Path, site: Path, cache: Path) -> dict[str, Any]:
    """Build the site in this process; return what each step took."""
    from machmeter.site import build as site_build

    found: dict[str, Any] = {}
    step, last = "starting", [time.monotonic(), cpu_seconds()]

    def said(now_at: str, done: int, of: int) -> None:
        nonlocal step
        if now_at == step:
            return
        now = [time.monotonic(), cpu_seconds()]
        found[f"{step} s"], found[f"{step} CPU s"] = (round(new - old, 2) for new, old in zip(now, last, strict=True))
        step, last[:] = now_at, now

    request = site_build.Request(results=results, output=site, cache=cache, jobs=PROCESSES)
    summary = site_build.run(request, said)
    said("done", 1, 1)
    return {
        **found,
        "peak MB": round(peak_megabytes()),
        "points": sum(map(len, summary.history.series)),
        "series": len(summary.history.series),
        "changes": summary.changes,
        "site MB": round(summary.bytes / 1e6, 1),
        "site files": summary.files,
    }


def measured(label: str, results: Path, site: Path, cache: Path) -> None:
    """Print what a build in a process of its own took, starting Python included."""
    command = [sys.executable, __file__, "--build", str(results), str(site), str(cache)]
    began, used = time.monotonic(), cpu_seconds()
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(answer.stdout)
    total = {"s": round(time.monotonic() - began, 2), "CPU s": round(cpu_seconds() - used, 2)}
    print(label, json.dumps(total | found), flush=True)


def publish(results: Path, folder: Path) -> None:
    """Print what `asv publish` takes for the same store."""
    repository = folder / "repository"
    repository.mkdir()
    told = [json.loads(path.read_bytes()) for path in sorted(results.glob("*/*-*.json"))]
    dates = {content["commit_hash"]: content["date"] for content in told}
    git = ["git", "-C", str(repository), "-c", "user.name=n", "-c", "user.email=n@example.invalid"]
    subprocess.run([*git, "init", "--quiet", "--initial-branch=main"], check=True)
    stream, renamed = [], {}
    for number, (name, date) in enumerate(sorted(dates.items(), key=lambda pair: pair[1])):
        who = f"n <n@example.invalid> {date // 1000} +0000"
        stream.append(
            f"commit refs/heads/main\nmark :{number + 1}\nauthor {who}\ncommitter {who}\ndata 1\n{number % 10}\n"
        )
        renamed[number] = name
    subprocess.run([*git, "fast-import", "--quiet"], input="".join(stream).encode(), check=True)
    listed = subprocess.run([*git, "rev-list", "--reverse", "main"], check=True, capture_output=True, text=True)
    real = dict(zip((renamed[number] for number in range(len(renamed))), listed.stdout.split(), strict=True))
    copied = folder / "results"
    for path in sorted(results.rglob("*.json")):
        target = copied / path.relative_to(results)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text()
        if path.parent != results and path.name != "machine.json":
            commit = json.loads(text)["commit_hash"]
            text = text.replace(commit, real[commit])
            target = target.with_name(path.name.replace(commit[:8], real[commit][:8]))
        target.write_text(text)
    (folder / "benchmarks").mkdir()
    configuration = {"version": 1, "project": "store", "repo": str(repository), "branches": ["main"]}
    configuration |= {"results_dir": str(copied), "html_dir": str(folder / "html"), "env_dir": str(folder / "env")}
    (folder / "asv.conf.json").write_text(json.dumps(configuration))
    began, used = time.monotonic(), cpu_seconds()
    subprocess.run([sys.executable, "-m", "asv", "publish"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    files = [path for path in (folder / "html").rglob("*") if path.is_file()]
    found = {
        "s": round(time.monotonic() - began, 2),
        "CPU s": round(cpu_seconds() - used, 2),
        "site MB": round(sum(path.stat().st_size for path in files) / 1e6, 1),
        "site files": len(files),
    }
    print("asv publish", json.dumps(found), flush=True)


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(description="Measure the site on a large store.")
    parser.add_argument("--store", type=Path, help="A results folder. Default: one is generated.")
    parser.add_argument("--files", type=int, default=1433)
    parser.add_argument("--benchmarks", type=int, default=284)
    parser.add_argument("--publish", action="store_true", help="Also measure 'asv publish'.")
    parser.add_argument("--build", nargs=3, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.build:
        print(json.dumps(build(*options.build)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        results = options.store or folder / "store"
        if not options.store:
            size = generate_store.generate(results, options.files, options.benchmarks)
            print(f"store: {options.files} files, {size / 1e6:.0f} MB", flush=True)
        cache = folder / "cache"
        measured("first build", results, folder / "first", cache)
        measured("nothing new", results, folder / "same", cache)
        newest = max(results.glob("*/*-*.json"), key=lambda path: json.loads(path.read_bytes()).get("date") or 0)
        added = add_one(newest, results if not options.store else copy(results, folder / "copy"))
        measured("one new file", added, folder / "second", cache)
        if options.publish:
            (folder / "asv").mkdir()
            publish(results, folder / "asv")


def copy(results: Path, target: Path) -> Path:
    """Return a copy of a store: what is not ours is not touched."""
    shutil.copytree(results, target)
    return target


def add_one(newest: Path, results: Path) -> Path:
    """Add a result file one day after the newest, and return the store."""
    content = json.loads(newest.read_bytes())
    commit = "f" * 40
    text = newest.read_text().replace(content["commit_hash"], commit)
    text = text.replace(f'"date": {content["date"]}', f'"date": {content["date"] + generate_store.DAY}')
    (results / newest.parent.name / newest.name.replace(content["commit_hash"][:8], commit[:8])).write_text(text)
    return results


if __name__ == "__main__":
    main()
