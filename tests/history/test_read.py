"""A store read into series: points, states, left-out files, intervals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.asv_files import commit_hash, result, write
from helpers.histories import GOOD, NAN
from machmeter.history.read import read
from machmeter.store.columns import FAILED, OK, SKIPPED, UNREADABLE

INFINITY = float("inf")


def test_a_series_has_its_points_in_the_order_of_dates(tmp_path: Path) -> None:
    for number, value in ((2, 0.3), (1, 0.2), (3, 0.4)):
        write(tmp_path, number, {"m.time_x": result([value], low=[0.1], high=[0.9], repeat=[7])})
    history = read(tmp_path)
    (series,) = history.series
    assert [commit.hash for commit in history.commits] == [commit_hash(number) for number in (1, 2, 3)]
    assert series.value.tolist() == [0.2, 0.3, 0.4]
    assert (series.low.tolist(), series.high.tolist()) == ([0.1] * 3, [0.9] * 3)
    assert series.samples.tolist() == [7, 7, 7]
    assert series.commits.tolist() == [0, 1, 2]
    assert (series.benchmark.unit, series.benchmark.direction, series.benchmark.kind) == ("seconds", "lower", "time")
    assert (history.files, history.left_out, history.orphans, history.has_repository) == (3, (), 0, False)


def test_the_key_of_a_series_never_changes(tmp_path: Path) -> None:
    """Links are kept by others: this key must be the same in every later version."""
    write(tmp_path, 1, {"m.time_x": result([1.0, 2.0], [["'a'", "'b'"]])})
    assert [item.key for item in read(tmp_path).series] == KEYS
    write(tmp_path, 2, {"m.time_x": result([1.0, 2.0, 3.0], [["'0'", "'a'", "'b'"]]), "a.time_a": result([1.0])})
    assert set(KEYS) < {item.key for item in read(tmp_path).series}


KEYS = ["c1e79484c472", "c597801d14ab"]


def test_failed_skipped_and_unreadable_are_three_things(tmp_path: Path) -> None:
    """R1, R7: null failed, NaN was skipped, and what is no finite number is unreadable and listed."""
    params = [["1", "2", "3", "4", "5", "6", "7", "8", "9"]]
    odd = [None, NAN, "hello", True, [[1, 2]], INFINITY, 1e308, 10**400, 5]
    write(tmp_path, 1, {"m.track_x": result(odd, params), "m.time_y": result([0.5])})
    history = read(tmp_path)
    states = [int(item.state[0]) for item in history.series if item.benchmark.name == "m.track_x"]
    bad = UNREADABLE
    assert states == [FAILED, SKIPPED, bad, bad, bad, bad, OK, bad, OK]
    numbers = [item.value[0] for item in history.series if item.state[0] == OK]
    assert numbers == [0.5, 1e308, 5.0]
    assert all(np.isnan(item.value[0]) for item in history.series if item.state[0] != OK)
    (item,) = history.left_out
    assert item.reason == 'm.track_x: "hello" and 4 more is no finite number'


def test_a_benchmark_that_failed_as_a_whole_failed_in_every_cell(tmp_path: Path) -> None:
    write(tmp_path, 1, {"m.time_x": [None, [["1", "2"]]]})
    assert [item.state.tolist() for item in read(tmp_path).series] == [[FAILED], [FAILED]]


def test_helping_processes_end_without_a_word() -> None:
    """The command line makes an interruption of being told to end; processes it forked must not."""
    program = """
import signal
def interrupted(*_): raise KeyboardInterrupt
signal.signal(signal.SIGTERM, interrupted)
from machmeter.store import parallel
print([parallel.share(sum, range(1, 6), 2) for _ in range(20)][-1])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[1, 2, 3, 4, 5]\n", "")


def test_the_path_of_an_interpreter_is_no_label(tmp_path: Path) -> None:
    """`asv run --python=same` names the environment by the interpreter's path, which says where, not what."""
    for python in ("/home/you/.venv/bin/python", "3.11"):
        write(tmp_path, 1, {"m.time_x": result([1.0])}, python=python, environment=python)
    assert [item.label for item in read(tmp_path).environments] == ["Python (existing)", "Python 3.11"]


def test_an_infinite_interval_is_none(tmp_path: Path) -> None:
    """asv writes Infinity for the interval of a single sample (R2)."""
    write(tmp_path, 1, {"m.time_x": result([1.0], low=[-INFINITY], high=[INFINITY], repeat=[1])})
    (series,) = read(tmp_path).series
    assert np.isnan(series.low[0])
    assert np.isnan(series.high[0])


def test_rounded_intervals_hold_their_value(tmp_path: Path) -> None:
    write(tmp_path, 1, {"m.time_x": result([1.00000004], low=[1.0001], high=[0.9999])})
    (series,) = read(tmp_path).series
    assert series.low[0] <= series.value[0] <= series.high[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ('{"commit_hash": "ab", "results": {"m.ti', "is not valid JSON, perhaps half-written"),
        ("\udcff", "is not valid JSON, perhaps half-written"),
        ("[" * 100_000, "is not an asv result file"),
        ("[]", "is not an asv result file"),
        ("null", "is not an asv result file"),
        ('{"version": 2}', "is not an asv result file"),
        (
            '{"commit_hash": "ab", "results": {"m.x": {"result": [1]}}, "version": 1}',
            "is in asv's old format (version 1): 'asv update' converts it",
        ),
        ('{"commit_hash": "ab", "results": {}, "version": 3}', "has format version 3 instead of 2"),
        ('{"commit_hash": "ab", "results": {}}', "has format version null instead of 2"),
        ('{"commit_hash": "ab", "results": {}, "version": 2}', "is not an asv result file: it has no result_columns"),
        (
            '{"commit_hash": 5, "results": {}, "version": 2, "result_columns": ["result", "params"]}',
            "names no commit",
        ),
        (
            '{"commit_hash": "ab", "results": 5, "version": 2, "result_columns": ["result", "params"]}',
            "is not an asv result file: its results are no object",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_the_rest_is_read(tmp_path: Path, text: str, reason: str) -> None:
    """R4, R8, R10: nothing is touched, nothing else is lost."""
    write(tmp_path, 1, GOOD)
    odd = tmp_path / "here" / "odd.json"
    odd.write_bytes(text.encode("utf-8", errors="surrogateescape"))
    before = odd.read_bytes()
    history = read(tmp_path)
    assert len(history.series) == 1
    assert [(item.path, item.reason) for item in history.left_out] == [("here/odd.json", reason)]
    assert odd.read_bytes() == before


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (5, "m.odd: is no row of results"),
        ([[1.0, 2.0], [["1"]]], "m.odd: 2 results for 1 combinations of parameters"),
        ([[1.0], "1"], "m.odd: its parameters cannot be read"),
        ([[1.0], [["1"] * 1100] * 2 + [["1"]]], "m.odd: its parameters cannot be read"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(tmp_path: Path, row: Any, reason: str) -> None:
    write(tmp_path, 1, {**GOOD, "m.odd": row})
    history = read(tmp_path)
    assert [item.benchmark.name for item in history.series] == ["m.time_x"]
    assert [item.reason for item in history.left_out] == [reason]


def test_files_beside_the_machines_folders_are_named_too(tmp_path: Path) -> None:
    write(tmp_path, 1, GOOD)
    (tmp_path / "notes.json").write_text("{}")
    (tmp_path / "here" / "README.txt").write_text("not ours")
    assert [(item.path, item.reason) for item in read(tmp_path).left_out] == [
        ("notes.json", "is not an asv result file")
    ]


def test_the_folder_of_one_machine_is_a_store_too(tmp_path: Path) -> None:
    write(tmp_path, 1, GOOD)
    (machine,) = read(tmp_path / "here").machines
    assert (machine.name, machine.folder) == ("here", "")


def test_a_store_without_results_is_an_empty_history(tmp_path: Path) -> None:
    history = read(tmp_path)
    assert (history.series, history.commits, history.machines, history.newest) == ((), (), (), None)
    assert read(tmp_path / "absent").series == ()
