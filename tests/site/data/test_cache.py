"""The cache of parsed results, the bytes of an export, badges, runs and reasons."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from helpers.asv_files import result, write
from helpers.exporting import NAN, check, exported, small
from machmeter.changes import of_history
from machmeter.changes.detect import Step
from machmeter.history.read import read
from machmeter.site.data import export
from machmeter.store import asv_files


def steps_of(values: list[Any]) -> list[list[Step]]:
    return [[Step(index=1, before=1.0, after=2.0, p=0.001)] if len(item) > 1 else [] for item in values]


def test_a_step_is_placed_among_all_points_of_its_series(tmp_path: Path) -> None:
    for number, value in enumerate([None, 1.0, NAN, 2.0]):
        write(tmp_path, number, {"m.time_x": result([value])})
    history = read(tmp_path)
    ((change,),) = of_history.find(history, detector=steps_of).values()
    assert (change.index, change.last_before, change.verdict) == (3, 1, "regression")


def age(results: Path) -> None:
    """Make all files old enough for their times to be trusted."""
    for path in results.rglob("*.json"):
        os.utime(path, (time.time() - 100, time.time() - 100))


def test_with_and_without_a_cache_the_bytes_are_the_same(tmp_path: Path) -> None:
    results, cache = tmp_path / "results", tmp_path / "cache"
    small(results)
    for number in range(30):
        write(results, number, {"m.time_x": result([1.0 + (number > 15) + 0.01 * (number % 3)])}, machine="other")
    age(results)

    def both() -> tuple[dict[str, bytes], dict[str, bytes]]:
        kept = read(results, cache=cache)
        return exported(read(results)), dict(export.files(kept, of_history.find(kept, cache=cache)))

    for _ in range(2):
        fresh, kept = both()
        assert kept == fresh
    write(results, 99, {"m.time_x": result([5.0])}, machine="other")
    (results / "here" / "odd.json").write_text("{")
    fresh, kept = both()
    assert kept == fresh
    assert any(b"half-written" in content for content in kept.values())
    (results / "here" / "odd.json").unlink()
    next((results / "other").glob("05*.json")).unlink()
    fresh, kept = both()
    assert kept == fresh


def test_only_what_is_new_is_parsed_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results, cache = tmp_path / "results", tmp_path / "cache"
    small(results)
    (results / "here" / "odd.json").write_text("{")
    parsed: list[str] = []
    parse = asv_files.parse

    def noted(content: bytes, path: str) -> Any:
        parsed.append(path)
        return parse(content, path)

    monkeypatch.setattr(asv_files, "parse", noted)

    def pieces() -> list[str]:
        age(results)
        parsed.clear()
        read(results, cache=cache)
        return sorted(path.name for path in cache.glob("columns-*"))

    assert (pieces(), len(parsed)) == (["columns-000000001.bin"], 4)
    assert (pieces(), parsed) == (["columns-000000001.bin"], [])
    write(results, 7, {"m.time_x": result([7.0])})
    assert (pieces(), parsed) == (["columns-000000001.bin", "columns-000000002.bin"], ["here/07070707-env.json"])
    assert (pieces(), parsed) == (["columns-000000001.bin", "columns-000000002.bin"], [])
    for path in sorted(results.rglob("0*.json"))[1:]:  # most of what is kept is of no use any more
        path.unlink()
    assert (pieces(), parsed) == (["columns-000000003.bin"], [])


def test_a_file_that_changed_is_read_again_whatever_its_time_says(tmp_path: Path) -> None:
    results, cache = tmp_path / "results", tmp_path / "cache"
    path = write(results, 1, {"m.time_x": result([1.0])})
    read(results, cache=cache)
    before = path.stat()
    path.write_text(path.read_text().replace("[[1.0]", "[[2.0]"))
    os.utime(path, ns=(before.st_mtime_ns, before.st_mtime_ns))
    (series,) = read(results, cache=cache).series
    assert series.value.tolist() == [2.0]


@pytest.mark.parametrize("damage", [b"", b"not a cache", None])
def test_a_damaged_cache_is_none(tmp_path: Path, damage: bytes | None) -> None:
    results, cache = tmp_path / "results", tmp_path / "cache"
    small(results)
    history = read(results, cache=cache)
    of_history.find(history, cache=cache)
    for path in cache.iterdir():
        path.write_bytes(path.read_bytes()[:-20] if damage is None else damage)
    again = read(results, cache=cache)
    assert dict(export.files(again, of_history.find(again, cache=cache))) == exported(read(results))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_bytes_do_not_depend_on_the_time_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    small(tmp_path)
    expected = exported(read(tmp_path))
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    assert exported(read(tmp_path)) == expected
    monkeypatch.undo()
    time.tzset()


OURS = "cpu.openvino.ResNet50.time_forward"


def badges_of(results: Path) -> list[dict[str, Any]]:
    """Return the badges of the only cell: images/s, trend."""
    files = exported(read(results))
    check(files)
    return [json.loads(files[path]) for path in sorted(files, key=len) if path.startswith("data/badges/")]


@pytest.mark.parametrize(
    ("before", "after", "message", "colour"),
    [
        (0.05, 0.04, "faster, +25 % over 20 points", "brightgreen"),
        (0.04, 0.05, "slower, \N{MINUS SIGN}20 % over 20 points", "red"),
        (0.04, 0.04, "steady over 20 points", "blue"),
    ],
)
def test_badges_say_images_per_second_and_the_trend(
    tmp_path: Path, before: float, after: float, message: str, colour: str
) -> None:
    for number in range(30):
        write(tmp_path, number, {OURS: result([before if number < 15 else after], [["'int8'"], ["8"]])})
    label = "ResNet50 openvino int8, batch 8"
    assert badges_of(tmp_path) == [
        {"schemaVersion": 1, "label": label, "message": f"{8 / after:.1f} images/s", "color": "blue"},
        {"schemaVersion": 1, "label": f"{label}: trend", "message": message, "color": colour},
    ]


def test_badges_of_a_cell_that_fails_or_is_new(tmp_path: Path) -> None:
    write(tmp_path, 0, {OURS: result([0.04], [["'int8'"], ["8"]])})
    assert [badge["message"] for badge in badges_of(tmp_path)] == ["200.0 images/s", "too few points (1)"]
    write(tmp_path, 1, {OURS: result([None], [["'int8'"], ["8"]])})
    assert [(badge["message"], badge["color"]) for badge in badges_of(tmp_path)] == [("failed", "lightgrey")] * 2


def test_a_change_long_ago_is_no_trend(tmp_path: Path) -> None:
    for number in range(60):
        write(tmp_path, number, {OURS: result([0.05 if number < 15 else 0.04], [["'int8'"], ["8"]])})
    assert badges_of(tmp_path)[1]["message"] == "steady over 20 points"


def test_runs_hold_each_host_and_each_set_of_packages_once(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path, number, {"m.time_x": result([1.0])}, params={"machine": "here", "cpu": "AAB"[number]})
    runs = json.loads(exported(read(tmp_path))["data/runs.json"])
    started = [1_700_000_000_000] * 3
    assert runs == {
        "schema": 1,
        "runs": [
            {
                "machine": 0,
                "environment": 0,
                "commit": [0, 1, 2],
                "started": started,
                "host": [0, 0, 1],
                "packages": [0, 0, 0],
            }
        ],
        "hosts": [{"CPU": "A"}, {"CPU": "B"}],
        "noted": [None, None],
        "packages": [{}],
    }


def test_reasons_without_end_are_counted(tmp_path: Path) -> None:
    write(tmp_path, 1, {f"m.track_{number}": result([f"text {number}"]) for number in range(250)})
    left_out = json.loads(exported(read(tmp_path))["data/index.json"])["left_out"]
    assert len(left_out) == 201
    assert left_out[-1] == {"reason": "50 further reasons", "count": 50, "paths": []}
