"""Reading any asv store as a history: exact points from small stores, one for each kind of fault."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.asv_files import DAY, commit_hash, real_store, result, write
from machmeter.errors import BadSetting
from machmeter.history.read import read
from machmeter.store import columns, settings
from machmeter.store.columns import FAILED, NOT_AVAILABLE, NOT_RUN, OK, SKIPPED, UNREADABLE

NAN = float("nan")
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


GOOD = {"m.time_x": result([1.0])}


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


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=n", "-c", "user.email=n@example.invalid", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def make_repository(folder: Path, commits: int, date: int = 1_600_000_000) -> list[str]:
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    stream = "".join(
        f"commit refs/heads/main\nmark :{number}\ncommitter n <n@example.invalid> {date + number} +0000\ndata 1\nx\n"
        for number in range(1, commits + 1)
    )
    subprocess.run(["git", "-C", str(folder), "fast-import", "--quiet"], input=stream.encode(), check=True)
    return git(folder, "rev-list", "--reverse", "main").split()


def test_the_repository_orders_commits_and_unknown_ones_stand_by_their_date(tmp_path: Path) -> None:
    """R3, R12: dates that contradict git's order do not matter; a commit that is gone is shown and counted."""
    first, second, third = make_repository(tmp_path / "repository", 3)
    git(tmp_path / "repository", "tag", "v1", second)
    results = tmp_path / "results"
    start = 1_600_000_000_000
    for name, day in ((first, 5), (second, 2), (third, 9), ("e" * 40, 7), ("d" * 40, 20)):
        write(results, name, GOOD, date=start + day * DAY)
    history = read(results, git=tmp_path / "repository")
    assert [commit.hash for commit in history.commits] == [first, second, "e" * 40, third, "d" * 40]
    assert [commit.orphan for commit in history.commits] == [False, False, True, False, True]
    assert [commit.position for commit in history.commits] == [0, 1, None, 2, None]
    assert [commit.tags for commit in history.commits] == [(), ("v1",), (), (), ()]
    assert (history.orphans, history.has_repository) == (2, True)


def test_tags_take_one_call_of_git_however_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R15: 400 tags."""
    commits = make_repository(tmp_path / "repository", 400)
    lines = "".join(f"create refs/tags/v{number:03} {name}\n" for number, name in enumerate(commits))
    subprocess.run(
        ["git", "-C", str(tmp_path / "repository"), "update-ref", "--stdin"], input=lines.encode(), check=True
    )
    write(tmp_path / "results", commits[7], GOOD)
    calls = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *given, **named: (calls.append(given), run(*given, **named))[1])
    history = read(tmp_path / "results", git=tmp_path / "repository")
    assert history.commits[0].tags == ("v007",)
    assert len(calls) == 1


def test_without_a_usable_repository_dates_decide(tmp_path: Path) -> None:
    write(tmp_path / "results", 1, GOOD)
    (tmp_path / "empty").mkdir()
    history = read(tmp_path / "results", git=tmp_path / "absent")
    assert (history.orphans, history.has_repository) == (0, False)


def test_environments_that_asv_writes_alike_are_kept_apart(tmp_path: Path) -> None:
    """R5: "a/b" and "a?b" have one name and one file in asv; names over 128 characters have a file of their hash."""
    long = "virtualenv-py3.11-" + "-".join(f"package{number}" for number in range(20))
    write(tmp_path, 1, GOOD, environment="env-x_y", env_vars={"FLAGS": "x/y"})
    write(tmp_path, 2, GOOD, environment="env-x_y", env_vars={"FLAGS": "x?y"})
    write(tmp_path, 3, GOOD, environment=long, file="03030303-env-0123456789abcdef0123456789abcdef.json")
    write(tmp_path, 3, GOOD, environment=long + "2", file="03030303-env-1123456789abcdef0123456789abcdef.json")
    history = read(tmp_path)
    assert len(history.series) == 4
    assert len({item.key for item in history.series}) == 4
    assert len({item.slug for item in history.environments}) == 4
    labels = [item.label for item in history.environments]
    assert {"FLAGS x/y", "FLAGS x?y", long, long + "2"} == set(labels)
    assert all(set(item.slug) <= set(SAFE) and len(item.slug) <= 70 for item in history.environments)


SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"


@pytest.mark.parametrize(
    "name", ["../../etc", "<img src=x onerror=1>", "a/b?c#d", "..", "Ünïcode", "", "CON", "x" * 300]
)
def test_any_name_makes_a_safe_file_name_of_its_own(tmp_path: Path, name: str) -> None:
    """R5, R13."""
    write(tmp_path, 1, {f"{name}.time_x": result([1.0, 2.0], [[repr(name), "'other'"]])}, machine=name, folder="f")
    write(tmp_path, 1, {f"{name}.time_x": result([1.0])}, machine=name + "_", folder="g", environment=name)
    history = read(tmp_path)
    slugs = [item.slug for some in (history.machines, history.environments, history.benchmarks) for item in some]
    assert len(set(slugs)) == 5
    for slug in slugs:
        assert set(slug) <= set(SAFE)
        assert slug.strip(".")


def test_parameters_that_read_alike_are_all_kept(tmp_path: Path) -> None:
    write(tmp_path, 1, {"m.time_x": result([1.0, 2.0, 3.0], [["<f>", "<f>", "'<f>'"]])})
    assert [(item.params, item.value.tolist()) for item in read(tmp_path).series] == [
        (("<f>",), [1.0]),
        (("<f> #2",), [2.0]),
        (("'<f>'",), [3.0]),
    ]


def test_two_machines_with_one_name_are_two(tmp_path: Path) -> None:
    write(tmp_path, 1, GOOD, machine="same", folder="a")
    write(tmp_path, 1, GOOD, machine="same", folder="b")
    history = read(tmp_path)
    assert [(item.name, item.folder) for item in history.machines] == [("same", "a"), ("same", "b")]
    assert len({item.slug for item in history.machines}) == 2
    assert len(history.series) == 2


def test_a_machine_is_known_by_what_there_is_of_it(tmp_path: Path) -> None:
    """R6: without machine.json by the files' own facts, and without those by its folder."""
    write(tmp_path, 1, GOOD, machine="noted")
    (tmp_path / "noted" / "machine.json").write_text('{"machine": "noted", "cpu": "Noted CPU", "version": 1}')
    write(tmp_path, 1, GOOD, machine="bare", params={})
    write(tmp_path, 1, GOOD, machine="broken", params={"machine": "broken", "ram": "5"})
    (tmp_path / "broken" / "machine.json").write_text("[]")
    history = read(tmp_path)
    assert {item.name: dict(item.facts) for item in history.machines} == {
        "bare": {},
        "broken": {"ram": "5"},
        "noted": {"cpu": "Noted CPU", "os": "Linux 1"},
    }
    assert [(item.path, item.reason) for item in history.left_out] == [
        ("broken/machine.json", "is not asv's note of a machine")
    ]


def test_points_of_older_versions_are_kept_and_marked(tmp_path: Path) -> None:
    """R14."""
    for number, version in ((1, "old"), (2, "old"), (3, "new")):
        write(tmp_path, number, {"m.time_x": result([1.0 * number], version=version)})
    (series,) = read(tmp_path).series
    assert series.benchmark.versions == ("old", "new")
    assert series.version.tolist() == [0, 0, 1]
    assert series.older.tolist() == [True, True, False]
    described = {"m.time_x": {"name": "m.time_x", "version": "next"}, "version": 2}
    (tmp_path / "benchmarks.json").write_text(json.dumps(described))
    (series,) = read(tmp_path).series
    assert series.benchmark.versions == ("old", "new", "next")
    assert series.older.tolist() == [True, True, True]


def test_the_newer_of_two_files_of_one_commit_counts(tmp_path: Path) -> None:
    params = [["1", "2"]]
    write(tmp_path, 1, {"m.time_x": result([1.0, 2.0], params, started=1000)}, file="a.json")
    write(tmp_path, 1, {"m.time_x": result([3.0, NAN], params, started=2000)}, file="0.json")
    history = read(tmp_path)
    assert [item.value.tolist() for item in history.series] == [[3.0], [2.0]]
    assert {(item.path, item.reason) for item in history.left_out} == {
        ("here/0.json", "1 results: another file has newer ones of this commit"),
        ("here/a.json", "1 results: another file has newer ones of this commit"),
    }


@pytest.mark.parametrize(
    ("name", "unit", "value", "shown", "direction"),
    [
        ("m.time_x", None, 1.0, "seconds", "lower"),
        ("m.track_x", "ms", 0.001, "seconds", "lower"),
        ("m.track_x", "MiB", 1048576.0, "bytes", "lower"),
        ("m.track_x", "KB", 1.0, "KB", None),
        ("m.track_x", "items/s", 1.0, "items/s", "higher"),
        ("m.track_x", "images per second", 1.0, "images per second", "higher"),
        ("m.track_x", "unit", 1.0, "", None),
        ("m.peakmem_x", None, 1.0, "bytes", "lower"),
        ("cpu.eager.ResNet50.track_sqnr", "dB", 1.0, "dB", "higher"),
        ("m.track_sqnr", "points", 1.0, "points", None),
    ],
)
def test_units_and_directions(
    tmp_path: Path, name: str, unit: str | None, value: float, shown: str, direction: str | None
) -> None:
    """J1, J6: what is certain is converted and judged, the rest is left as it is."""
    write(tmp_path, 1, {name: result([1.0], low=[0.5], high=[2.0])})
    (tmp_path / "benchmarks.json").write_text(json.dumps({name: {"unit": unit} if unit else {}, "version": 2}))
    (series,) = read(tmp_path).series
    assert (series.value[0], series.benchmark.unit, series.benchmark.direction) == (value, shown, direction)
    assert (series.low[0], series.high[0]) == (0.5 * value, 2.0 * value)


def test_a_project_sets_directions_itself(tmp_path: Path) -> None:
    file = tmp_path / settings.FILE
    file.write_text('[directions]\n"track_acc" = "higher"\n"time_wait$" = "none"\n')
    names = ("m.track_accuracy", "m.track_other", "m.time_wait")
    write(tmp_path / "results", 1, {name: result([1.0]) for name in names})
    history = read(tmp_path / "results", settings=settings.load(file))
    assert {item.name: item.direction for item in history.benchmarks} == {
        "m.track_accuracy": "higher",
        "m.track_other": None,
        "m.time_wait": None,
    }
    assert settings.load(tmp_path / "absent.toml") == settings.Settings()


@pytest.mark.parametrize("text", ["[directions]\nx = 5", '[directions]\n"(" = "lower"', "directions = 3", "[", "\x00"])
def test_settings_that_cannot_be_used_say_so(tmp_path: Path, text: str) -> None:
    (tmp_path / settings.FILE).write_text(text)
    with pytest.raises(BadSetting, match=r"machmeter\.toml"):
        settings.load(tmp_path / settings.FILE)


@pytest.mark.parametrize("text", ["{", "[]", '{"m.time_x": 5}'])
def test_descriptions_that_cannot_be_read_are_named(tmp_path: Path, text: str) -> None:
    write(tmp_path, 1, GOOD)
    (tmp_path / "benchmarks.json").write_text(text)
    history = read(tmp_path)
    assert history.benchmarks[0].unit == "seconds"
    assert [item.path for item in history.left_out] == ["benchmarks.json"]


def evidence(results: Path, number: int, cells: dict[str, dict[str, Any]], **run: Any) -> None:
    described = {
        "started": "2026-01-01T00:00:00Z",
        "cells": {key: {"p": record} for key, record in cells.items()},
        **run,
    }
    content = {"schema": 1, "machine": "here", "commit": commit_hash(number), "environment": "env"}
    path = results.parent / "evidence" / "here" / f"{commit_hash(number)[:8]}-env.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**content, "runs": {"r": described}}))


OURS = "cpu.openvino.ResNet50.time_forward"


def test_the_evidence_says_why_there_is_no_number(tmp_path: Path) -> None:
    """R7: n/a, failed and not run are three different things, and two have a reason."""
    results = tmp_path / "results"
    for number in (1, 2):
        write(results, number, {OURS: result([1.0, NAN, None, NAN], [["'fp32'", "'bf16'", "'int8'", "'fp16'"], ["8"]])})
    cells = {
        "cpu.openvino.ResNet50(bf16, 8)": {"status": "n/a", "reason": "no bf16", "started_at": 1.0},
        "cpu.openvino.ResNet50(int8, 8)": {"status": "failed", "reason": "crashed (signal 11)", "started_at": 1.0},
    }
    evidence(results, 2, cells)
    found = {item.label: (item.state.tolist(), dict(item.reasons)) for item in read(results).series}
    assert found == {
        "fp32, 8": ([OK, OK], {}),
        "bf16, 8": ([SKIPPED, NOT_AVAILABLE], {1: "no bf16"}),
        "int8, 8": ([FAILED, FAILED], {1: "crashed (signal 11)"}),
        "fp16, 8": ([SKIPPED, NOT_RUN], {}),
    }


def test_events_name_what_changed_between_runs(tmp_path: Path) -> None:
    results = tmp_path / "results"
    for number in (1, 2, 3, 4):
        write(results, number, {OURS: result([1.0], [["'fp32'"], ["8"]])})
    write(results, 5, {OURS: result([1.0], [["'fp32'"], ["8"]])})
    old = {"cpu": {"model": "CPU A"}, "kernel": "6.1", "thread_budget": 2}
    new = {**old, "kernel": "6.2"}
    evidence(results, 1, {}, host=old, versions={"torch": "2.13.0", "numpy": "2.0", "gone": "1"})
    evidence(results, 2, {}, host=old, versions={"torch": "2.14.1", "numpy": "2.0", "added": "3"})
    evidence(results, 3, {}, host=new, versions={"torch": "2.14.1", "numpy": "2.0", "added": "3"})
    evidence(
        results, 5, {}, host=new, versions={"torch": "2.14.2", "numpy": "2.0", "added": "3"}
    )  # the fourth has none
    events = read(results).events
    assert [(item.commit, item.kind, item.text) for item in events] == [
        (1, "packages", "torch 2.13.0 → 2.14.1, added none → 3, gone 1 → none"),
        (2, "host", "kernel 6.1 → 6.2"),
        (4, "packages", "torch 2.14.1 → 2.14.2"),
    ]
    assert events[0].details == (("torch", "2.13.0", "2.14.1"), ("added", "", "3"), ("gone", "1", ""))


def test_events_of_a_foreign_project_come_from_its_own_files(tmp_path: Path) -> None:
    for number, cpu in ((1, "A"), (2, "A"), (3, "B")):
        write(tmp_path, number, GOOD, params={"machine": "here", "cpu": cpu, "ram": str(number)})
    assert [(item.commit, item.text) for item in read(tmp_path).events] == [(2, "CPU A → B")]


def test_unreadable_evidence_is_named(tmp_path: Path) -> None:
    write(tmp_path / "results", 1, GOOD)
    (tmp_path / "evidence" / "here").mkdir(parents=True)
    (tmp_path / "evidence" / "here" / "x.json").write_text("{")
    (item,) = read(tmp_path / "results").left_out
    assert item.path == "evidence/here/x.json"


def test_combinations_are_numbered_where_they_repeat() -> None:
    assert columns.combinations(()) == [()]
    assert columns.combinations((("1", "1"), ("x",))) == [("1", "x"), ("1", "x #2")]


def test_a_real_store_with_one_noisy_machine(tmp_path: Path) -> None:
    history = read(real_store("sunpy", tmp_path))
    assert (history.files, len(history.series), len(history.commits), history.left_out) == (1396, 10, 1396, ())
    zero = next(item for item in history.series if item.benchmark.name.endswith("mem_is_time"))
    assert set(zero.value.tolist()) == {0.0}
    assert {item.benchmark.unit for item in history.series} == {"seconds", "bytes"}


def test_a_real_store_whose_failures_were_mended(tmp_path: Path) -> None:
    history = read(real_store("metpy", tmp_path))
    assert (history.files, len(history.series), history.left_out) == (59, 128, ())
    failed = [0] * len(history.commits)
    for item in history.series:
        for commit in item.commits[item.state == FAILED].tolist():
            failed[commit] += 1
    assert (failed[0], max(failed), failed[-1]) == (14, 14, 0)
