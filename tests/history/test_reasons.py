"""Units, directions and settings; reasons and events from the evidence; real stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helpers import evidence
from helpers.asv_files import commit_hash, real_store, result, write
from helpers.histories import GOOD, NAN
from machmeter.errors import BadSetting
from machmeter.history.read import read
from machmeter.store import columns, settings
from machmeter.store.columns import FAILED, NOT_AVAILABLE, NOT_RUN, OK, SKIPPED


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


def write_evidence(results: Path, number: int, cells: dict[str, dict[str, Any]], **run: Any) -> None:
    """Write the evidence of one commit."""
    evidence.write(results, evidence.single(cells), commit=commit_hash(number), **run)


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
    write_evidence(results, 2, cells)
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
    write_evidence(results, 1, {}, host=old, versions={"torch": "2.13.0", "numpy": "2.0", "gone": "1"})
    write_evidence(results, 2, {}, host=old, versions={"torch": "2.14.1", "numpy": "2.0", "added": "3"})
    write_evidence(results, 3, {}, host=new, versions={"torch": "2.14.1", "numpy": "2.0", "added": "3"})
    write_evidence(
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
