"""Two runs side by side: exact lists and words from small stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.asv_files import result, write
from helpers.number_pairs import PAIRS, Pair
from machmeter.compare.runs import ORDER, Comparison, Verdict, column, compare
from machmeter.history.read import read

NAN = float("nan")


def compared(folder: Path, base: dict[str, Any], head: dict[str, Any], **of_head: Any) -> Comparison:
    write(folder, 1, base)
    write(folder, 2, head, **of_head)
    history = read(folder)
    first, second = history.runs
    return compare(column(history, first), column(history, second))


def names(found: Comparison, verdict: Verdict) -> list[str]:
    return [row.about.benchmark.name for row in found.rows if row.verdict == verdict]


def test_both_directions_are_judged(tmp_path: Path) -> None:
    """J1: a throughput that halves is worse, a time that halves is better, and without a direction it is a change."""
    described = {"m.track_rate": {"unit": "images/s"}, "m.track_other": {"unit": "things"}}
    (tmp_path / "benchmarks.json").write_text(json.dumps(described))
    benchmarks = ("m.track_rate", "m.time_x", "m.track_other")
    found = compared(
        tmp_path, {name: result([2.0]) for name in benchmarks}, {name: result([1.0]) for name in benchmarks}
    )
    half = "\N{MINUS SIGN}50.0 %"
    assert [(row.about.benchmark.name, row.verdict, row.words) for row in found.rows] == [
        ("m.track_rate", "worse", half),
        ("m.track_other", "change", half),
        ("m.time_x", "better", half),
    ]


@pytest.mark.parametrize("pair", PAIRS)
def test_a_pair_is_told_as_anywhere_else(tmp_path: Path, pair: Pair) -> None:
    """J7: where there is no ratio there are words."""
    name = {"dB": "m.track_sqnr", "fraction": "m.track_top1_agreement"}.get(pair.unit, "m.track_x")
    (tmp_path / "benchmarks.json").write_text(json.dumps({name: {"unit": pair.unit}}))
    (row,) = compared(tmp_path, {name: result([pair.before])}, {name: result([pair.after])}).rows
    assert (row.verdict, row.words) == (pair.outcome, pair.words)
    assert row.about.benchmark.direction == pair.direction


@pytest.mark.parametrize(
    ("name", "unit", "before", "after", "verdict"),
    [
        ("m.time_forward", "seconds", 1.0, 1.019, "same"),
        ("m.time_forward", "seconds", 1.0, 1.021, "worse"),
        ("m.track_sqnr", "dB", 20.0, 19.5, "same"),
        ("m.track_sqnr", "dB", -20.0, -21.5, "worse"),
        ("m.track_top1_agreement", "fraction", 0.5, 0.504, "same"),
        ("m.track_top1_agreement", "fraction", 0.5, 0.506, "better"),
        ("m.mem_x", "bytes", 1000.0, 1020.0, "same"),
        ("m.mem_x", "bytes", 1000.0, 1040.0, "worse"),
        ("m.time_other", "seconds", 1.0, 1.04, "same"),
        ("m.time_other", "seconds", -1.0, -1.04, "same"),
        ("m.time_other", "seconds", 1.0, 0.94, "better"),
    ],
)
def test_what_counts_is_what_counts_on_the_command_line(
    tmp_path: Path, name: str, unit: str, before: float, after: float, verdict: str
) -> None:
    (tmp_path / "benchmarks.json").write_text(json.dumps({name: {"unit": unit}}))
    (row,) = compared(tmp_path, {name: result([before])}, {name: result([after])}).rows
    assert row.verdict == verdict


def test_what_is_new_removed_or_failed_is_told(tmp_path: Path) -> None:
    found = compared(
        tmp_path,
        {
            "m.time_gone": result([1.0]),
            "m.time_broke": result([1.0]),
            "m.time_mended": result([None]),
            "m.time_never": result([None]),
            "m.time_skipped": result([1.0]),
            "m.time_other": result([1.0], version="old"),
            "m.time_nothing": result([NAN]),
        },
        {
            "m.time_came": result([1.0]),
            "m.time_came_broken": result([None]),
            "m.time_broke": result([None]),
            "m.time_mended": result([1.0]),
            "m.time_never": result([None]),
            "m.time_skipped": result([NAN]),
            "m.time_other": result([9.0], version="new"),
            "m.time_nothing": result([NAN]),
        },
    )
    assert {verdict: names(found, verdict) for verdict in ORDER if names(found, verdict)} == {
        "failed": ["m.time_broke", "m.time_came_broken"],
        "removed": ["m.time_gone", "m.time_skipped"],
        "fixed": ["m.time_mended"],
        "new": ["m.time_came"],
        "not comparable": ["m.time_other"],
    }
    assert [row.reason for row in found.rows] == [
        "failed",
        "failed",
        "not in the newer run",
        "skipped",
        "failed",
        "not in the older run",
        "another version of the benchmark: it measures something else",
    ]
    assert found.summary == "7 numbers: 2 failed, 2 removed, 1 fixed, 1 new, 1 not comparable."


def test_units_are_converted_or_refused(tmp_path: Path) -> None:
    """J6: a store in milliseconds and one in seconds compare; bytes and seconds do not."""
    columns = {}
    for name, unit, value in (("ms", "ms", 500.0), ("s", "s", 1.0), ("bytes", "bytes", 1.0)):
        write(tmp_path / name, 1, {"m.track_x": result([value])})
        (tmp_path / name / "benchmarks.json").write_text(json.dumps({"m.track_x": {"unit": unit}}))
        history = read(tmp_path / name)
        columns[name] = column(history, history.runs[0])
    (row,) = compare(columns["ms"], columns["s"]).rows
    assert row.words == "+100.0 %"
    refused = compare(columns["s"], columns["bytes"])
    assert [(row.verdict, row.reason) for row in refused.rows] == [
        ("not comparable", "the unit was seconds and is bytes")
    ]


def test_the_mean_is_over_what_both_have_and_says_how_many(tmp_path: Path) -> None:
    """J9: of times and rates, by how much they became better; shares and decibels have none."""
    (tmp_path / "benchmarks.json").write_text(
        json.dumps({"m.track_r": {"unit": "x/s"}, "m.track_sqnr": {"unit": "dB"}})
    )
    found = compared(
        tmp_path,
        {"m.time_a": result([1.0, 1.0, 0.0], [["1", "2", "3"]]), "m.track_r": result([1.0]), "m.time_b": result([9.0]),
         "m.track_sqnr": result([9.0])},
        {"m.time_a": result([2.0, 8.0, 5.0], [["1", "2", "3"]]), "m.track_r": result([2.0]), "m.time_c": result([9.0]),
         "m.track_sqnr": result([99.0])},
    )  # fmt: skip
    mean = " Geometric mean ×0.5000 (above 1 is better) over the 3 that both have."
    assert found.summary == f"7 numbers: 1 removed, 3 worse, 2 better, 1 new.{mean}"
    assert compared(tmp_path / "none", {}, {}).summary == "These two have no number in common."


def test_what_the_intervals_of_a_series_hide_is_the_same(tmp_path: Path) -> None:
    """The typical interval of the series counts, as what a page has to compare any two of its runs."""
    params = [["1", "2"]]
    found = compared(
        tmp_path,
        {"m.time_a": result([1.0, 1.0], params, low=[0.9, None], high=[1.1, None])},
        {"m.time_a": result([1.19, 1.19], params, low=[1.0, None], high=[1.4, None])},
    )
    assert {row.about.series.params[0]: row.verdict for row in found.rows} == {"1": "same", "2": "worse"}


def test_another_cpu_is_not_comparable(tmp_path: Path) -> None:
    rows = {"m.time_x": result([1.0])}
    assert compared(tmp_path / "same", rows, rows).incomparable == ""
    other = compared(tmp_path / "other", rows, rows, params={"machine": "here", "cpu": "Other CPU", "os": "Linux 2"})
    assert other.incomparable == "not comparable: CPU Some CPU → Other CPU"
    there = compared(tmp_path / "there", rows, rows, machine="there")
    assert there.incomparable == "not comparable: measured on here and on there"
