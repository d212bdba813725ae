"""What is measured of both sides, how often, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from machmeter import errors
from machmeter.pull_request import plan
from machmeter.pull_request.plan import Key, Task
from machmeter.text import durations


def described(kind: str = "time", **more: Any) -> dict[str, Any]:
    return {"type": kind, "version": "1", "unit": "seconds" if kind == "time" else "unit", **more}


MODEL = {"params": [["'fp32'", "'int8'"], ["1", "8"]]}
SUITE = {
    "cpu.openvino.ResNet50.time_forward": described(**MODEL),
    "cpu.openvino.ResNet50.track_load_time": described("track", **MODEL),
    "cpu.openvino.ResNet50.track_sqnr": described("track", **MODEL),
    "cpu.openvino.ResNet50.track_throughput_offline": described("track", **MODEL),
    "cpu.inductor.ResNet50.time_forward": described(params=[["'fp32'"], ["'compile'", "'aot'"], ["1"]]),
    "control.Machine.time_matrix_product": described(),
    "control.Null.time_forward": described(params=[["'fp32'"], ["1"]]),
    "control.MachinePeak.track_matrix_product_peak": described("track", params=[["'fp32'"]]),
    "tuning.ResNet50.track_throughput": described("track", params=[["'eager'"]]),
}


def keys(*patterns: str) -> list[Key]:
    return [*plan.items(SUITE, patterns)]


def test_a_selection_keeps_to_asvs_rule_and_adds_the_control() -> None:
    """A pattern is searched in the name with its parameters, as `asv run -b` does it."""
    assert keys(r"openvino.ResNet50.*int8', 8\)") == [
        ("cpu.openvino.ResNet50(int8, 8)", "time_forward"),
        ("cpu.openvino.ResNet50(int8, 8)", "track_load_time"),
        ("cpu.openvino.ResNet50(int8, 8)", "track_sqnr"),
        ("control.Machine", "time_matrix_product"),
    ]
    chosen = plan.items(SUITE, ["time_forward"])
    assert chosen["control.Machine", "time_matrix_product"].control
    assert not chosen["cpu.openvino.ResNet50(int8, 8)", "time_forward"].control


def test_what_takes_minutes_is_measured_only_where_it_is_named() -> None:
    assert not [key for key in keys() if key[1] == "track_throughput_offline" or key[0].startswith("tuning")]
    assert not [key for key in keys("ResNet50") if "aot" in key[0]]
    assert ("cpu.inductor.ResNet50(fp32, aot, 1)", "time_forward") in keys("inductor.*'aot'")
    assert ("tuning.ResNet50(eager)", "track_throughput") in keys("^tuning")
    assert ("control.MachinePeak(fp32)", "track_matrix_product_peak") not in keys("control")


def test_controls_are_judged_where_nothing_else_was_chosen() -> None:
    chosen = plan.items(SUITE, ["^control"])
    assert [(key[0], item.control) for key, item in chosen.items()] == [
        ("control.Machine", False),
        ("control.Null(fp32, 1)", False),
    ]


def test_the_null_backend_is_no_control() -> None:
    """Its time is that of our harness, which a change may make slower: the machine did not move."""
    assert [item.cell for item in plan.items(SUITE, ["openvino"]).values() if item.control] == ["control.Machine"]
    assert "control.Null(fp32, 1)" not in [cell for cell, _ in keys("openvino")]


def test_names_units_and_directions() -> None:
    chosen = plan.items(SUITE, ["int8', 8"])
    item = chosen["cpu.openvino.ResNet50(int8, 8)", "time_forward"]
    assert item.name == "cpu.openvino.ResNet50.time_forward('int8', 8)"
    assert item.pattern == r"^cpu\.openvino\.ResNet50\.time_forward\('int8',\ 8\)$"
    assert (item.place, item.values, item.unit, item.better) == (3, ("'int8'", "8"), "seconds", "lower")
    sqnr = chosen["cpu.openvino.ResNet50(int8, 8)", "track_sqnr"]
    assert (sqnr.unit, sqnr.better, sqnr.timed) == ("dB", "higher", False)
    loading = chosen["cpu.openvino.ResNet50(int8, 8)", "track_load_time"]
    assert (loading.unit, loading.timed, loading.bounded) == ("seconds", True, True)


@pytest.mark.parametrize(
    ("name", "unit", "timed"),
    [
        ("track_swaps", "unit", True),  # nobody knows whether it scatters: one number of each side is never judged
        ("track_latency", "seconds", True),
        ("track_heap", "bytes", False),  # judged by its size
        ("track_sqnr", "dB", False),
        ("track_prepare_time", "seconds", False),  # minutes
        ("peakmem_sort", "bytes", False),
    ],
)
def test_what_is_measured_in_rounds(name: str, unit: str, timed: bool) -> None:
    (item,) = plan.items({f"sort.Sort.{name}": described(name.partition("_")[0], unit=unit)}, []).values()
    assert item.timed is timed


def test_a_foreign_benchmark_and_a_name_that_is_too_long() -> None:
    suite = {"fft.time_it": described(), "sort.Sort.track_swaps": described("track", params=[["'" + "x" * 400 + "'"]])}
    first, second = plan.items(suite, []).values()
    assert (first.cell, first.metric) == ("fft", "time_it")
    assert len(second.cell) == 300
    assert (second.unit, second.better) == ("", "unknown")


def test_how_often() -> None:
    """What only one side has, or what measures something else now, cannot be compared: once is enough."""
    chosen = plan.items(SUITE, ["openvino"])
    timing = chosen["cpu.openvino.ResNet50(int8, 8)", "time_forward"]
    loading = chosen["cpu.openvino.ResNet50(int8, 8)", "track_load_time"]
    other = plan.items({**SUITE, timing.benchmark: described(**MODEL, version="2")}, ["openvino"])[timing.key]
    assert plan.wanted_rounds(timing, timing, 8) == 8
    assert plan.wanted_rounds(loading, loading, 8) == 8
    assert plan.wanted_rounds(loading, loading, 8, seconds=11.0) == 1  # no timing is worth that
    assert plan.wanted_rounds(timing, timing, 8, seconds=11.0) == 8
    assert [plan.wanted_rounds(*pair, 8) for pair in ((None, timing), (timing, None), (timing, other))] == [1, 1, 1]


def test_each_class_has_its_turn() -> None:
    """Where time is short, something is known of every backend, not everything of the first."""
    cells = ["a.X(1)", "a.X(2)", "a.X(3)", "b.X(1)", "c(1)", "c(2)"]
    turns = [key[0] for key in plan.spread((cell, "time") for cell in cells)]
    assert turns == ["a.X(1)", "b.X(1)", "c(1)", "a.X(2)", "c(2)", "a.X(3)"]


def test_one_call_measures_one_cell_or_several_small_ones() -> None:
    chosen = plan.items(SUITE, ["openvino"])
    timings = [key for key in chosen if key[1] == "time_forward"]
    assert plan.blocks(chosen, timings, {}, {}) == [Task(keys=(key,), repeat="repeat=(5,1000,3.0)") for key in timings]
    small = plan.blocks(chosen, timings, dict.fromkeys(timings, 3.0), {})
    assert [len(task.keys) for task in small] == [3, 1]
    # Those that stand at another round come first on the other side: they are not measured in one call.
    apart = plan.blocks(chosen, timings, dict.fromkeys(timings, 1.0), {timings[0]: 1})
    assert [len(task.keys) for task in apart] == [1, 3]
    # What one process of a cell finds for others is one call, whatever it takes.
    facts = ("track_sqnr", "track_top1_agreement", "track_load_time", "track_first_inference_time")
    units = ("dB", "fraction", "seconds", "seconds")
    suite = {f"cpu.A.{name}": described("track", unit=unit, **MODEL) for name, unit in zip(facts, units, strict=True)}
    once = plan.items(suite, [])
    tasks = plan.blocks(once, plan.spread(once), dict.fromkeys(once, 60.0), {})
    assert [tuple(key[1] for key in task.keys) for task in tasks] == [facts[:2], facts[2:]] * 4


def test_each_side_is_first_as_often() -> None:
    assert [plan.base_first(done) for done in range(4)] == [True, False, True, False]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30m", 1800), ("1h30m", 5400), ("90s", 90), ("2h", 7200), (" 5min ", 300), ("1h1m1s", 3661), ("1H", 3600)],
)
def test_a_budget(text: str, seconds: float) -> None:
    assert durations.parse(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "half an hour", "-5m", "0s", "1.5h", "30m1h", "1e9h", "9" * 30 + "h", "٣m"])
def test_a_budget_that_cannot_be_read(text: str) -> None:
    with pytest.raises(errors.BadBudget, match=r"write a time such as 30m, 1h30m or 90s") as caught:
        durations.parse(text)
    assert caught.value.exit_code == 28


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (40.4, "40 s"), (89, "89 s"), (90, "2 min"), (1500, "25 min"), (3900, "1 h 5 min")],
)
def test_time_as_a_person_says_it(seconds: float, text: str) -> None:
    assert durations.shown(seconds) == text
