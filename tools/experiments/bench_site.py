"""Measure building the site of a large store, step by step: seconds, CPU seconds, peak memory, size.

    python tools/experiments/bench_site.py [--store DIR] [--publish] [--pages] [--markdown FILE]
                                           [--files 1433] [--benchmarks 284]

Without --store, a store is generated (see generate_store.py). With --publish, `asv publish` makes its pages of the
same store in the same run: it needs a repository with the store's commits, which is made beside it. With --pages, what
a visitor waits for is measured too (see bench_pages.py). With --markdown, the table of docs/site.md is written (to
"-": printed). CPU seconds count all processes; they say more than seconds where other work runs.
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

import bench_pages
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


def measured(label: str, results: Path, site: Path, cache: Path) -> dict[str, Any]:
    """Print and return what a build in a process of its own took, starting Python included."""
    command = [sys.executable, __file__, "--build", str(results), str(site), str(cache)]
    began, used = time.monotonic(), cpu_seconds()
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    total = {"s": round(time.monotonic() - began, 2), "CPU s": round(cpu_seconds() - used, 2)}
    found: dict[str, Any] = total | json.loads(answer.stdout)
    print(label, json.dumps(found), flush=True)
    return found


def publish(results: Path, folder: Path) -> dict[str, Any]:
    """Print and return what `asv publish` takes for the same store."""
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
    return found


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(description="Measure the site on a large store.")
    parser.add_argument("--store", type=Path, help="A results folder. Default: one is generated.")
    parser.add_argument("--files", type=int, default=1433)
    parser.add_argument("--benchmarks", type=int, default=284)
    parser.add_argument("--publish", action="store_true", help="Also measure 'asv publish'.")
    parser.add_argument("--pages", action="store_true", help="Also measure what a visitor waits for.")
    parser.add_argument("--markdown", type=Path, help="Write the table there; '-' prints it.")
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
        found = {"first": measured("first build", results, folder / "site", cache)}
        measured("nothing new", results, folder / "same", cache)
        newest = max(results.glob("*/*-*.json"), key=lambda path: json.loads(path.read_bytes()).get("date") or 0)
        added = add_one(newest, results if not options.store else copy(results, folder / "copy"))
        # In the place of the site before, as it is done day by day.
        found["again"] = measured("one new file", added, folder / "site", cache)
        if options.publish:
            (folder / "asv").mkdir()
            found["asv"] = publish(results, folder / "asv")
        if options.pages:
            found["pages"] = pages(folder / "site", folder / "long")
    if options.markdown:
        text = table(found)
        print(text) if str(options.markdown) == "-" else options.markdown.write_text(text + "\n")


def pages(site: Path, folder: Path) -> dict[str, Any]:
    """Print and return what a visitor waits for: of the site, and of one with a long series, made in `folder`."""
    size, page = bench_pages.first_visit(site)
    long = bench_pages.long_series(folder)
    (series,) = (long / "data" / "series").glob("*.json")
    found = {
        "first visit kB": round(size / 1e3, 1),
        "of": page,
        "series kB": round(bench_pages.compressed(series) / 1e3, 1),
        "drawn ms": bench_pages.drawn_after(long),
    }
    print("pages", json.dumps(found), flush=True)
    return found


def table(found: dict[str, Any]) -> str:
    """Return what was measured as a Markdown table with the budgets beside it."""
    first, again = found["first"], found["again"]
    asv, seen = found.get("asv"), found.get("pages", {})

    def seconds(step: dict[str, Any]) -> str:
        return f"{step['s']:.1f} s ({step['CPU s']:.1f} CPU s)"

    said = [
        ("first build, change detection included", "25 s", seconds(first), seconds(asv) if asv else None),
        ("after one new result file", "3 s", seconds(again), seconds(asv) if asv else None),
        ("peak memory of a process", "2 GB", f"{first['peak MB']} MB", None),
        ("site", "33 MB", f"{again['site MB']} MB", f"{asv['site MB']} MB" if asv else None),
        ("files of the site", None, again["site files"], asv["site files"] if asv else None),
        ("heaviest page, first visit, compressed", "100 kB", _unit(seen.get("first visit kB"), "kB"), None),
        ("a series of 10,000 points, compressed", "70 kB", _unit(seen.get("series kB"), "kB"), None),
        ("that series drawn after its data arrived", "100 ms", _unit(seen.get("drawn ms"), "ms"), None),
    ]
    lines = ["| | budget | machmeter | `asv publish` |", "|---|---|---|---|"]
    for what, *cells in said:
        lines.append(f"| {' | '.join([what, *(str(cell) if cell is not None else '–' for cell in cells)])} |")
    return "\n".join(lines)


def _unit(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{value:g} {unit}"


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
