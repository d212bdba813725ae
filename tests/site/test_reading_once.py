"""The site of our own results opens each file once, be it built for the first time or again."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from helpers import stores
from machmeter.site import build

_heard: list[str] | None = None


def _hear(event: str, about: tuple[object, ...]) -> None:
    if _heard is not None and event == "open" and isinstance(about[0], str | os.PathLike):
        _heard.append(os.fspath(about[0]))


sys.addaudithook(_hear)  # it cannot be taken away again


@contextmanager
def opened(*folders: Path) -> Iterator[Counter[str]]:
    """Count how often each file below `folders` is opened, by its name there."""
    global _heard
    counted: Counter[str] = Counter()
    _heard = []
    try:
        yield counted
    finally:
        heard, _heard = _heard, None
        for folder in folders:
            inside = (Path(path) for path in heard if Path(path).is_relative_to(folder))
            counted.update(f"{folder.name}/{path.relative_to(folder).as_posix()}" for path in inside)


def made(folder: Path, name: str, cache: Path | None = None) -> dict[str, bytes]:
    """Build the site of the store in `folder` in one process, and return its files."""
    output = folder / name
    request = build.Request(results=folder / "results", output=output, title="suite", cache=cache)
    build.run(request, lambda *_: None)
    return {path.relative_to(output).as_posix(): path.read_bytes() for path in output.rglob("*") if path.is_file()}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a folder with results and evidence of ours, old enough for their times to be trusted."""
    stores.own(tmp_path / "results")
    for path in tmp_path.rglob("*.json"):
        os.utime(path, (time.time() - 100, time.time() - 100))
    return tmp_path


def named(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for top in ("results", "evidence")
        for path in folder.glob(f"{top}/*/*-*.json")
    }


def test_each_file_is_opened_once(store: Path) -> None:
    for cache in (None, store / "cache"):
        with opened(store / "results", store / "evidence") as counted:
            made(store, "html", cache)
        assert named(store) <= set(counted)
        assert set(counted.values()) == {1}


def test_only_what_is_new_is_opened_again(store: Path) -> None:
    late = sorted(named(store) & {path.relative_to(store).as_posix() for path in store.glob("*/*/00000002-env.json")})
    assert len(late) == 2
    kept = {name: (store / name).read_bytes() for name in late}
    for name in late:
        (store / name).unlink()
    before = made(store, "html", store / "cache")
    assert before == made(store, "first")
    for name in late:
        (store / name).write_bytes(kept[name])
    with opened(store / "results", store / "evidence") as counted:
        again = made(store, "html", store / "cache")
    assert {name: times for name, times in counted.items() if "-" in name} == dict.fromkeys(late, 1)
    assert again == made(store, "first")
    assert again != before


def test_changed_damaged_and_removed_evidence_is_seen(store: Path) -> None:
    path = store / "evidence" / "box" / "00000001-env.json"
    sound = path.read_text()
    made(store, "html", store / "cache")
    path.write_text(sound.replace("crashed (signal 11)", "crashed (signal 7)"))
    changed = made(store, "html", store / "cache")
    assert changed == made(store, "first")
    path.write_text(sound[:-9])
    damaged = made(store, "html", store / "cache")
    assert damaged == made(store, "first")
    assert b"is unreadable" in damaged["data/index.json"]
    path.unlink()
    assert made(store, "html", store / "cache") == made(store, "first")


def test_what_runs_now_is_looked_at_again(store: Path) -> None:
    """Whether a process that is on record as running still is, is nothing that its file can tell."""
    path = store / "evidence" / "box" / "00000002-env.json"
    running = '"status": "running", "pid": 1, "process": "nobody", "reason": "crashed (signal 11)"'
    path.write_text(path.read_text().replace('"status": "failed", "reason": "crashed (signal 11)"', running))
    os.utime(path, (time.time() - 100, time.time() - 100))
    made(store, "html", store / "cache")
    with opened(store / "evidence") as counted:
        made(store, "html", store / "cache")
    assert dict(counted) == {"evidence/box/00000002-env.json": 1}


@pytest.mark.parametrize("damage", [b"", b"\xff" * 40])
def test_a_damaged_cache_is_as_good_as_none(store: Path, damage: bytes) -> None:
    made(store, "html", store / "cache")
    (piece,) = (store / "cache").glob("runs-*.bin")
    piece.write_bytes(damage)
    assert made(store, "html", store / "cache") == made(store, "first")
