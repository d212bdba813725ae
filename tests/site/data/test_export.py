"""What a site exports fits its schemas, and holds what the series hold."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.asv_files import real_store, result, write
from helpers.exporting import NAN, check, exported, small
from machmeter.changes import of_history
from machmeter.history.read import read
from machmeter.site.data import encode, export

GOLDEN = {
    "benchmark": "cpu.openvino.ResNet50.time_forward",
    "changes": [],
    "commit": [0, 3],
    "current": 1,
    "direction": "lower",
    "environment": "env-e95e5d29",
    "key": "620eb5b636f0",
    "machine": "here",
    "params": ["'fp32'", "8"],
    "reasons": {},
    "schema": 1,
    "state": [1, 0, 1, 1, 1, 0],
    "unit": "seconds",
    "value": [0.1, 0.333333],
    "version": [2, 0, 1, 1],
}


def test_a_series_is_exported_like_this(tmp_path: Path) -> None:
    small(tmp_path)
    files = exported(read(tmp_path))
    golden = json.dumps(GOLDEN, sort_keys=True, separators=(",", ":")).encode()
    assert golden in files.values()
    int8 = next(json.loads(text) for text in files.values() if b'"low"' in text)
    assert (int8["low"], int8["high"], int8["state"]) == ([0.03, 0.03], [0.06, 0.06], [2, 0, 1, 2])


def test_the_index_of_a_small_store(tmp_path: Path) -> None:
    small(tmp_path)
    index = json.loads(exported(read(tmp_path))["data/index.json"])
    assert index["commits"] == {
        "hash": ["00" * 20, "01" * 20, "02" * 20],
        "date": [1_600_000_000_000, 1_600_086_400_000, 1_600_172_800_000],
        "position": [],
        "tags": {},
        "orphans": [],
    }
    assert [item["name"] for item in index["benchmarks"]] == ["cpu.openvino.ResNet50.time_forward", "m.track_<b>"]
    assert index["benchmarks"][0]["params"] == [["'int8'", "8"], ["'fp32'", "8"]]
    assert index["left_out"] == [
        {
            "reason": 'm.track_<b>: "x" is no finite number',
            "count": 2,
            "paths": ["here/00000000-env.json", "here/02020202-env.json"],
        }
    ]
    assert index["read"] == {"files": 3, "series": 3, "points": 9, "repository": False}


def test_everything_exported_fits_its_schema(tmp_path: Path) -> None:
    small(tmp_path)
    many = [f"<script>{'x' * 200}", "../..", "a/b?c#d"]
    for number in range(150):
        rows = {
            "m.time_packed": result([1.0 + 0.01 * (number % 7)], low=[0.9], high=[float("inf")]),
            "m.track_wide": result([10.0 ** (number - 75)]),
            "m.track_signed": result([number - 75, -1e308, 1e308], [many]),
            "m.time_same": result([0.25]),
        }
        write(tmp_path, number, rows, environment=many[number % 2])
    files = exported(read(tmp_path))
    check(files)
    assert all(set(path) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/") for path in files)
    assert not any(".." in path for path in files)


def test_an_empty_history_is_exported(tmp_path: Path) -> None:
    check(exported(read(tmp_path)))


def test_real_stores_fit_the_schemas(tmp_path: Path) -> None:
    for name in ("sunpy", "metpy"):
        check(exported(read(real_store(name, tmp_path))))


@pytest.mark.parametrize(("factor", "width"), [(1.0, 2), (1.08, 2), (1.09, 2.5), (2.15, 2.5), (2.16, 3), (1400.0, 3)])
def test_packed_numbers_come_back_within_five_in_a_million(factor: float, width: float) -> None:
    values = np.append(np.random.default_rng(1).uniform(1e-7, factor * 1e-7, 9_999), [1e-7, factor * 1e-7])
    packed = encode.pack(values)
    assert packed["width"] == width
    assert len(packed["text"]) == math.ceil(len(values) / 2) * 5 if width == 2.5 else len(values) * width
    back = encode.unpack(packed, len(values))
    assert np.abs(back / values - 1).max() <= 5.0001e-6
    assert np.allclose(back[-2:], values[-2:], rtol=1e-14)


EXTREME = [5e-324, 1e-310, 2.3e-308, 1e-5, 1.0, 1e300, 1.7e308]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("smallest", EXTREME)
@pytest.mark.parametrize("largest", EXTREME)
def test_huge_and_tiny_numbers_are_exported_without_overflow(tmp_path: Path, smallest: float, largest: float) -> None:
    ends = [smallest, largest]
    for number in range(120):
        value, other = ends[number % 2], ends[(number + 1) % 2]
        rows = {
            "m.time_x": result([value], low=[-1.7e308], high=[1.7e308]),
            "m.track_signed": result([value if number % 3 else -other], low=[-other], high=[value]),
        }
        write(tmp_path, number, rows)
    files = exported(read(tmp_path))
    check(files)
    series = [json.loads(content) for path, content in files.items() if path.startswith("data/series/")]
    found = next(item["value"] for item in series if item["benchmark"] == "m.time_x")
    values = found if isinstance(found, list) else encode.unpack(found, 120).tolist()
    assert values == pytest.approx(ends * 60, rel=5.1e-6, abs=0.0)
    scale = next(json.loads(content) for path, content in files.items() if path.endswith("scale.json"))
    assert (scale["from"][0], scale["to"][0]) == (min(ends), max(ends))
    block = next(json.loads(content) for path, content in files.items() if path.endswith("000.json"))
    low, high = encode.numbers(block["value"][0] + block["value"][1], 2).reshape(2, 2)[:, 0]
    assert {int(low), int(high)} == ({0} if smallest == largest else {0, 8095})


@pytest.mark.parametrize(
    "values", [[0.0, *[1.0] * 200], [-1.0, *[1.0] * 200], [1e-5, *[1.0] * 200], [1.0] * 99], ids=str
)
def test_what_cannot_be_packed_stays_plain(values: list[float]) -> None:
    assert not encode.can_be_packed(np.array(values))


@pytest.mark.parametrize(("most", "width"), [(4e-2, 1), (5e-2, 1.5), (1.6, 1.5), (2.0, 2), (10.0, 2)])
def test_intervals_come_back_within_a_tenth(most: float, width: float) -> None:
    value = np.full(7, 2.0)
    below, above = (
        np.array([0.01, most, 0.01, NAN, 0.02, 0.01, 0.03]),
        np.array([most, 0.01, 0.01, 0.02, NAN, 0.01, most]),
    )
    packed = encode.bounds(value, value * (1 - below), value * (1 + above))
    assert packed["width"] == width
    low, high = encode.unbound(value, packed)
    np.testing.assert_allclose(1 - low / value, below, rtol=0.11)
    np.testing.assert_allclose(high / value - 1, above, rtol=0.11)


def test_intervals_of_no_width_and_without_ends() -> None:
    value = np.array([2.0, 2.0, 2.0])
    low, high = np.array([2.0, NAN, 2.0 - 1e-9]), np.array([2.0, NAN, 2.0 + 1e-5])
    back_low, back_high = encode.unbound(value, encode.bounds(value, low, high))
    np.testing.assert_array_equal(back_low, [2.0, NAN, 2.0])
    np.testing.assert_allclose(back_high - value, [0.0, NAN, 1e-5], rtol=0.11)
    none = encode.bounds(value, value * NAN, value * NAN)
    assert np.isnan(encode.unbound(value, none)).all()


@pytest.mark.parametrize(
    ("ascending", "expected"),
    [([], []), ([0], [0, 1]), ([0, 1, 2], [0, 3]), ([3, 4, 9], [3, 2, 4, 1]), ([5, 7], [5, 1, 1, 1])],
)
def test_positions_are_skips_and_takes(ascending: list[int], expected: list[int]) -> None:
    assert encode.positions(np.array(ascending, np.int32)) == expected


def test_numbers_have_six_digits_and_nothing_else() -> None:
    given = [1 / 3, 123456789.0, 1e-30, 0.0, -2.5, NAN, float("inf"), 1e300, 5.0]
    expected = [0.333333, 123457000, 1e-30, 0, -2.5, None, None, 1e300, 5]
    assert encode.rounded(given) == expected


def test_columns_hold_what_the_series_hold(tmp_path: Path) -> None:
    for number in range(40):
        rows: dict[str, Any] = {"m.time_x": result([1.0 + number, None if number == 3 else NAN], [["1", "2"]])}
        if number != 5:
            rows["m.track_y"] = result([number - 20.0])
        write(tmp_path, number, rows)
    files = {path: json.loads(content) for path, content in exported(read(tmp_path)).items()}
    folder = next(path.rpartition("/")[0] for path in files if path.endswith("/scale.json"))
    scale = files[f"{folder}/scale.json"]
    blocks = [files[f"{folder}/{number:03}.json"] for number in range(3)]
    assert [len(block["commit"]) for block in blocks] == [16, 16, 8]
    codes = np.array([encode.numbers(text, 2) for block in blocks for text in block["value"]])
    assert (scale["from"][0], scale["to"][0], scale["even"]) == (1.0, 40.0, [1, 2])
    assert np.allclose(np.exp(codes[:, 0] / 8095 * np.log(40.0)), np.arange(1, 41), rtol=3e-4)
    assert (codes[3, 1], codes[4, 1], codes[5, 2]) == (8097, 8099, 8096)
    assert np.allclose(-20.0 + codes[[0, 39], 2] / 8095 * 39.0, [-20.0, 19.0])


def test_columns_say_where_a_benchmark_became_another(tmp_path: Path) -> None:
    for number, version in enumerate("aabbb"):
        rows = {"m.time_x": result([1.0], version=version)} if number != 3 else {"m.time_y": result([1.0])}
        write(tmp_path, number, rows)
    files = exported(read(tmp_path))
    scale = json.loads(next(content for path, content in files.items() if path.endswith("scale.json")))
    assert scale["versions"] == {"0": [2, 0, 3, 1]}


def test_changes_are_in_the_series_with_their_verdict(tmp_path: Path) -> None:
    for number in range(60):
        write(tmp_path, number, {"m.time_x": result([(1.0 if number < 30 else 1.5) + 0.001 * (number % 5)])})
    history = read(tmp_path)
    found = of_history.find(history)
    (series,) = history.series
    (change,) = export.series(series, found[series.key])["changes"]
    assert (change["point"], change["last_before"], change["commit"], change["verdict"]) == (30, 29, 30, "regression")
    assert change["ratio"] == pytest.approx(1.5, abs=0.01)
    (listed,) = of_history.listed(history, found)
    assert (listed.commit, listed.last_before, listed.events) == (30, 29, ())


def test_versions_of_a_benchmark_are_never_compared(tmp_path: Path) -> None:
    """R14: another version is another benchmark, not a change."""
    for number in range(60):
        rows = {"m.time_x": result([1.0 if number < 30 else 9.0], version="old" if number < 30 else "new")}
        write(tmp_path, number, rows)
    history = read(tmp_path)
    assert list(of_history.find(history).values()) == [[]]
