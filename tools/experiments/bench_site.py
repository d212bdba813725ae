"""Measure building the sites of two large stores, step by step: seconds, CPU seconds, peak memory, files opened, size.

    python tools/experiments/bench_site.py [--only foreign|own] [--store DIR] [--publish] [--pages] [--markdown FILE]
                                           [--files 1433] [--benchmarks 284] [--nights 300]

Two stores are generated: a foreign project's (see generate_store.py) and one of our own results with its evidence (see
generate_own_store.py). --store DIR measures that store instead; evidence is looked for beside it. With --publish,
`asv publish` makes its pages of the foreign store in the same run: it needs a repository with the commits of the store,
which is made beside it. With --pages, what a visitor waits for is measured too (see bench_pages.py). With --markdown,
the table of docs/site.md is written (to "-": printed). CPU seconds count all processes; they say more than seconds
where other work runs.
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
from collections import Counter
from pathlib import Path
from typing import Any

import bench_pages
import generate_own_store
import generate_store
from machmeter.results_branch import paths

PROCESSES = len(os.sched_getaffinity(0))


def cpu_seconds() -> float:
    """Return the CPU time of this process and of all its children that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in used)


def peak_megabytes() -> float:
    """Return the larger of the peaks of this process and of any of its children."""
    used = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return max(used) / 1024


class Opened:
    """Counts how often files in `folders` are opened, by this process and those that it forks."""

    def __init__(self, folders: list[Path]) -> None:
        self._folders = tuple(f"{folder.resolve()}/" for folder in folders)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - as long as this process
        sys.addaudithook(self._hear)

    def _hear(self, event: str, about: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(about[0], str) and about[0].endswith(".json"):
            path = os.path.abspath(about[0])  # noqa: PTH100 - as fast as can be
            if path.startswith(self._folders):
                os.write(self._log.fileno(), path.encode() + b"\0")  # whole, whichever process it is

    def counts(self) -> dict[str, int]:
        """Return how many files were opened, and how often the one that was opened most."""
        self._log.seek(0)
        times = Counter(self._log.read().split(b"\0")[:-1])
        return {"files opened": len(times), "most often": max(times.values(), default=0)}


def build(results: Path, site: Path, cache: Path) -> dict[str, Any]:
    """Build the site in this process; return what each step took."""
    from machmeter.site import build as site_build

    found: dict[str, Any] = {}
    opened = Opened([results, results.parent / "evidence"])
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
        **opened.counts(),
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
    parser = argparse.ArgumentParser(description="Measure the sites of large stores.")
    parser.add_argument("--only", choices=("foreign", "own"), help="Measure one of the two generated stores.")
    parser.add_argument("--store", type=Path, help="A results folder. Default: two are generated.")
    parser.add_argument("--files", type=int, default=1433, help="Of the foreign store.")
    parser.add_argument("--benchmarks", type=int, default=284, help="Of the foreign store.")
    parser.add_argument("--nights", type=int, default=300, help="Of our own store.")
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
        found: dict[str, Any] = {}
        if options.store:
            found["foreign"] = twice(copy(options.store, folder / "store"), folder)
        if not options.store and options.only != "own":
            results = folder / "foreign" / "results"
            size = generate_store.generate(results, options.files, options.benchmarks)
            print(f"a foreign store: {options.files} files, {size / 1e6:.0f} MB", flush=True)
            found["foreign"] = twice(results, folder / "foreign")
        if not options.store and options.only != "foreign":
            files, size = generate_own_store.generate(folder / "own", options.nights)
            print(f"our own store: {files} files, {size / 1e6:.0f} MB", flush=True)
            found["own"] = twice(folder / "own" / "results", folder / "own")
        measured_site = folder / ("own" if options.only == "own" else "." if options.store else "foreign") / "site"
        if options.publish and not options.store:
            (folder / "asv").mkdir()
            found["asv"] = publish(folder / "foreign" / "results", folder / "asv")
        if options.pages:
            found["pages"] = pages(measured_site, folder / "long")
    if options.markdown:
        text = table(found)
        print(text) if str(options.markdown) == "-" else options.markdown.write_text(text + "\n")


def twice(results: Path, folder: Path) -> dict[str, Any]:
    """Print and return what the first build takes, and one after one new file of each kind."""
    first = measured("first build", results, folder / "site", folder / "cache")
    measured("nothing new", results, folder / "same", folder / "cache")
    add_one(results)
    # In the place of the site before, as it is done day by day.
    return {"first": first, "again": measured("one new file", results, folder / "site", folder / "cache")}


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
    foreign, own = found.get("foreign", {}), found.get("own", {})
    asv, seen = found.get("asv"), found.get("pages", {})

    def seconds(step: dict[str, Any] | None) -> str | None:
        return f"{step['s']:.1f} s ({step['CPU s']:.1f} CPU s)" if step else None

    def of(store: dict[str, Any], step: str, what: str, unit: str = "") -> str | None:
        return f"{store[step][what]} {unit}".strip() if store else None

    said = [
        ("first build, change detection included", "25 s", *(seconds(one.get("first")) for one in (foreign, own))),
        ("after one new file", "3 s", *(seconds(one.get("again")) for one in (foreign, own))),
        ("peak memory of a process", "2 GB", *(of(one, "first", "peak MB", "MB") for one in (foreign, own))),
        ("site", "33 MB", *(of(one, "again", "site MB", "MB") for one in (foreign, own))),
        ("files of the site", None, *(of(one, "again", "site files") for one in (foreign, own))),
        ("files opened by the first build", None, *(of(one, "first", "files opened") for one in (foreign, own))),
        ("most often opened, of these", "1", *(of(one, "first", "most often") for one in (foreign, own))),
        ("heaviest page, first visit, compressed", "100 kB", _unit(seen.get("first visit kB"), "kB"), None),
        ("a series of 10,000 points, compressed", "70 kB", _unit(seen.get("series kB"), "kB"), None),
        ("that series drawn after its data arrived", "100 ms", _unit(seen.get("drawn ms"), "ms"), None),
    ]
    beside = [seconds(asv), seconds(asv), None, f"{asv['site MB']} MB", asv["site files"]] if asv else []
    beside += [None] * (len(said) - len(beside))
    lines = ["| | budget | foreign project | our own results | `asv publish` |", "|---|---|---|---|---|"]
    for (what, *cells), more in zip(said, beside, strict=True):
        shown = [str(cell) if cell is not None else "–" for cell in (what, *cells, more)]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


def _unit(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{value:g} {unit}"


def copy(results: Path, folder: Path) -> Path:
    """Return a copy of a store, and of the evidence beside it: what is not ours is not touched."""
    if (evidence := results.parent / "evidence").is_dir():
        shutil.copytree(evidence, folder / "evidence")
    return Path(shutil.copytree(results, folder / "results"))


def add_one(results: Path) -> None:
    """Add a result file one day after the newest, and the evidence of its run where there is any."""
    dates = {path: json.loads(path.read_bytes()).get("date") or 0 for path in sorted(results.glob("*/*-*.json"))}
    newest = max(dates, key=lambda path: (dates[path], path.stat().st_size))
    commit, old = "f" * 40, json.loads(newest.read_bytes())["commit_hash"]
    text = newest.read_text().replace(old, commit)
    for space in ("", " "):
        text = text.replace(f'"date":{space}{dates[newest]}', f'"date":{space}{dates[newest] + generate_store.DAY}')
    _put("result", newest, text.encode())
    stem = paths.local_name(newest.name) or (newest.stem,)
    evidence = results.parent / "evidence" / newest.parent.name
    for path in sorted(evidence.glob(f"{old[:8]}-*.json")):
        if (paths.local_name(path.name) or ("",))[0] == stem[0]:
            _put("evidence", path, path.read_bytes().replace(old.encode(), commit.encode()))


def _put(kind: paths.Kind, beside: Path, content: bytes) -> None:
    stem, hashed = paths.local_name(beside.name) or (beside.stem, None)
    name = Path(paths.path_of(kind, "m", "f" * 8 + stem[8:], content)).name
    beside.with_name(name if hashed else f"{'f' * 8}{stem[8:]}.json").write_bytes(content)


if __name__ == "__main__":
    main()
