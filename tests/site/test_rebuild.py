"""A site that is built again: whatever changed since, its bytes are those of a site that is built the first time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import machmeter
from helpers import stores
from machmeter import errors
from machmeter.site import build, progress, writing
from machmeter.site.render import find_folder
from machmeter.store import parallel, parsing

TOOLS = Path(machmeter.__file__).parents[1]


def made(folder: Path, *, cache: Path | None = None, **more: Any) -> dict[str, bytes]:
    """Build the site of the store in `folder`/results and return its files."""
    output = folder / ("first" if cache is None else "html")
    request = build.Request(results=folder / "results", output=output, title="suite", cache=cache, **more)
    build.run(request, lambda *_: None)
    return {path.relative_to(output).as_posix(): path.read_bytes() for path in output.rglob("*") if path.is_file()}


def age(folder: Path) -> None:
    """Make all files old enough for their times to be trusted."""
    for path in folder.rglob("*.json"):
        os.utime(path, (time.time() - 100, time.time() - 100))


def newest(folder: Path) -> Path:
    return max((folder / "results").glob("*/*-*.json"), key=lambda path: json.loads(path.read_text())["date"])


def add(folder: Path) -> None:
    path = newest(folder)
    content = json.loads(path.read_text())
    text = path.read_text().replace(content["commit_hash"], "f" * 40)
    path.with_name("ffffffff-new.json").write_text(text.replace(str(content["date"]), str(content["date"] + 9)))


def add_older(folder: Path) -> None:
    path = newest(folder)
    content = json.loads(path.read_text()) | {"commit_hash": "e" * 40, "date": 1_500_000_000_000}
    path.with_name("eeeeeeee-old.json").write_text(json.dumps(content))


def remove(folder: Path) -> None:
    newest(folder).unlink()


def remove_most(folder: Path) -> None:
    for path in sorted((folder / "results").glob("*/*-*.json"))[3:]:
        path.unlink()


def edit(folder: Path) -> None:
    path = sorted((folder / "results").glob("*/*-*.json"))[0]
    path.write_text(path.read_text().replace("[0.2", "[0.3"))


def break_one(folder: Path) -> None:
    newest(folder).write_text("{")


def describe(folder: Path) -> None:
    path = folder / "results" / "benchmarks.json"
    path.write_text(path.read_text().replace('"seconds"', '"bytes"').replace('"points"', '"points/s"'))


def settle(folder: Path) -> None:
    (folder / "machmeter.toml").write_text('[directions]\n".*" = "higher"\n')


@pytest.mark.parametrize("change", [add, add_older, remove, remove_most, edit, break_one, describe, settle])
def test_a_site_that_is_built_again_is_as_if_it_were_the_first(tmp_path: Path, change: Callable[[Path], None]) -> None:
    stores.foreign(tmp_path / "results")
    age(tmp_path / "results")
    before = made(tmp_path, cache=tmp_path / "cache")
    assert made(tmp_path, cache=tmp_path / "cache") == before
    change(tmp_path)
    again = made(tmp_path, cache=tmp_path / "cache")
    assert again == made(tmp_path)
    assert again != before


def test_new_evidence_is_seen(tmp_path: Path) -> None:
    stores.own(tmp_path / "results")
    evidence = sorted((tmp_path / "evidence").rglob("*.json"))
    late = evidence[-1].read_bytes()
    evidence[-1].unlink()
    age(tmp_path)
    before = made(tmp_path, cache=tmp_path / "cache")
    evidence[-1].write_bytes(late)
    again = made(tmp_path, cache=tmp_path / "cache")
    assert again == made(tmp_path)
    assert again != before


def test_an_edited_template_is_seen(tmp_path: Path) -> None:
    stores.foreign(tmp_path / "results", 12)
    shutil.copytree(find_folder(), tmp_path / "site")
    before = made(tmp_path, cache=tmp_path / "cache", templates=tmp_path / "site")
    base = tmp_path / "site" / "templates" / "base.html"
    base.write_text(base.read_text().replace("Skip to the content", "Skip"))
    again = made(tmp_path, cache=tmp_path / "cache", templates=tmp_path / "site")
    assert again == made(tmp_path, templates=tmp_path / "site")
    assert {name for name in before if before[name] != again[name]} == {
        name for name in before if name.endswith(".html")
    }


HISTORY = """
import json, sys
from pathlib import Path
from machmeter.changes import of_history
from machmeter.history import read
cache = Path(sys.argv[2]) if len(sys.argv) > 2 else None
history = read.read(Path(sys.argv[1]), cache=cache)
found = of_history.find(history, cache=cache)
steps = {key: [change.index for change in changes] for key, changes in found.items()}
print(json.dumps([{item.key: item.value.tolist() for item in history.series}, steps]))
"""
MODULES = "import json, sys, {0}; print(json.dumps([name for name in sys.modules if name.startswith('machmeter.')]))"


def run_code(tools: Path, code: str, *arguments: Path) -> Any:
    """Run `code` with the package in `tools` and return the JSON that it prints."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    variables = {**os.environ, "PYTHONPATH": str(tools)}
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, env=variables).stdout)


@pytest.fixture(scope="module")
def read_before(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A store, with the cache that the present code made of it beside it; and what it found in it."""
    folder = tmp_path_factory.mktemp("store")
    stores.foreign(folder / "results")
    age(folder / "results")
    return folder, run_code(TOOLS, HISTORY, folder / "results", folder / "cache")


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("changes/doubts.py", "SMALLEST_CHANGE = 0.02", "SMALLEST_CHANGE = 9.0"),
        ("changes/series.py", "LEAST_NOISE = 0.004", "LEAST_NOISE = 4.0"),
        ("changes/segments.py", "PENALTY = 9.0", "PENALTY = 9e9"),
        ("store/asv_files.py", "json.loads(content)", "json.loads(content.replace(b'0.2', b'0.4'))"),
        ("store/parsing.py", "parse(content, path)", "parse(content.replace(b'0.2', b'0.4'), path)"),
    ],
)
def test_what_older_code_read_and_detected_is_not_used(
    tmp_path: Path, read_before: tuple[Path, Any], module: str, old: str, new: str
) -> None:
    """A copy of the package with one line edited, which finds a cache of the code before."""
    store, before = read_before
    shutil.copytree(TOOLS / "machmeter", tmp_path / "machmeter", ignore=shutil.ignore_patterns("__pycache__"))
    edited = tmp_path / "machmeter" / module
    assert edited.read_text().count(old) == 1
    edited.write_text(edited.read_text().replace(old, new))
    shutil.copytree(store / "cache", tmp_path / "cache")
    again = run_code(tmp_path, HISTORY, store / "results", tmp_path / "cache")
    assert again == run_code(tmp_path, HISTORY, store / "results")
    assert again != before


@pytest.mark.parametrize(
    ("module", "floors"),
    [
        ("machmeter.changes.detect", {"changes"}),
        ("machmeter.store.parsing", {"store", "errors", "atomic", "metrics"}),
    ],
)
def test_no_code_decides_that_is_outside_the_folder_whose_code_counts(module: str, floors: set[str]) -> None:
    """Steps are those of all code in `changes`, and a file is read as all code in `store` reads it."""
    assert {name.split(".")[1] for name in run_code(TOOLS, MODULES.format(module))} <= floors


@pytest.mark.alone
def test_several_processes_write_what_one_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores.own(tmp_path / "results")
    one = made(tmp_path)
    monkeypatch.setattr(build, "_WORTH_PROCESSES", 1)
    assert made(tmp_path, jobs=2) == one


@pytest.mark.alone
def test_a_process_that_fails_is_one_clear_error(tmp_path: Path) -> None:
    """What a process cannot write is one clear error here, and so is a process that is killed."""
    (tmp_path / "data").write_text("in the way")
    jobs: list[writing.Job] = [lambda: [("data/a.json", "{}")], lambda: [("b.json", "{}")]]
    with pytest.raises(errors.StoreUnwritable, match="cannot write the site"):
        writing.write(tmp_path, jobs, 2, lambda _: None)
    killed: list[writing.Job] = [lambda: os._exit(9), lambda: []]
    with pytest.raises(errors.SiteUnbuildable, match="was killed"):
        writing.write(tmp_path, killed, 2, lambda _: None)


@pytest.mark.alone
def test_processes_share_the_work_in_order() -> None:
    parts = parallel.share(lambda items: (os.getpid(), list(items)), list(range(40)), 2)
    assert [items for _, items in parts] == [list(range(40))[first :: len(parts)] for first in range(len(parts))]
    assert os.getpid() not in {process for process, _ in parts}


@pytest.mark.alone
def test_the_progress_display_has_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one, nothing would be shared among processes wherever somebody looks."""
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    with progress.shown() as say:
        say("reading", 1, 2)
        assert threading.active_count() == 1


@pytest.mark.alone
def test_files_parsed_by_several_processes_are_what_one_parses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores.foreign(tmp_path / "results")
    (tmp_path / "results" / "box" / "odd.json").write_text("{")
    one = made(tmp_path)
    monkeypatch.setattr(parsing, "_WORTH_PROCESSES", 1)
    assert made(tmp_path, jobs=2) == one


def test_where_threads_run_nothing_is_forked() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert parallel.share(lambda items: (os.getpid(), list(items)), [1, 2, 3], 2) == [(os.getpid(), [1, 2, 3])]
    finally:
        stop.set()
        thread.join()
