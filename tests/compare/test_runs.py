"""Two runs side by side, and how things stand now: exact lists and words from small stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.asv_files import DAY, result, write
from machmeter.compare import runs as comparing
from machmeter.compare.runs import Comparison, column, compare
from machmeter.history.missing import missing, standings
from machmeter.history.read import read
from machmeter.store.columns import FAILED

NAN = float("nan")


def compared(folder: Path, base: dict[str, Any], head: dict[str, Any], **of_head: Any) -> Comparison:
    write(folder, 1, base)
    write(folder, 2, head, **of_head)
    history = read(folder)
    first, second = history.runs
    return compare(column(history, first), column(history, second))


def test_both_directions_are_judged(tmp_path: Path) -> None:
    """J1: a throughput that halves is worse, a time that halves is better, and without a direction it is different."""
    described = {"m.track_rate": {"unit": "images/s"}, "m.track_other": {"unit": "things"}}
    (tmp_path / "benchmarks.json").write_text(json.dumps(described))
    names = ("m.track_rate", "m.time_x", "m.track_other")
    found = compared(tmp_path, {name: result([2.0]) for name in names}, {name: result([1.0]) for name in names})
    assert {pair.head.benchmark.name: (pair.ratio, pair.verdict, pair.words) for pair in found.pairs} == {
        "m.track_rate": (0.5, "worse", "0.5"),
        "m.time_x": (0.5, "better", "0.5"),
        "m.track_other": (0.5, "different", "0.5"),
    }
    assert found.pairs[0].verdict == "worse"  # of equal effects, what is worse comes first


@pytest.mark.parametrize(
    ("before", "after", "verdict", "words"),
    [
        (0, 0, "same", "unchanged at 0"),
        (0, 5, "worse", "was 0, is 5"),
        (5, 0, "better", "was 5, is 0"),
        (-1, 1, "worse", "was -1, is 1"),
        (1e-300, 1e300, "worse", "was 1e-300, is 1e+300"),
        (3, 3, "same", "unchanged at 3"),
        (4, 5, "worse", "1.25"),
    ],
)
def test_ratios_that_do_not_exist_are_words(
    tmp_path: Path, before: float, after: float, verdict: str, words: str
) -> None:
    """J7."""
    (pair,) = compared(tmp_path, {"m.mem_x": result([before])}, {"m.mem_x": result([after])}).pairs
    assert (pair.verdict, pair.words) == (verdict, words)


def test_what_is_new_removed_or_failed_has_its_own_list(tmp_path: Path) -> None:
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
            "m.time_broke": result([None]),
            "m.time_mended": result([1.0]),
            "m.time_never": result([None]),
            "m.time_skipped": result([NAN]),
            "m.time_other": result([9.0], version="new"),
            "m.time_nothing": result([NAN]),
        },
    )
    names = {
        name: sorted(item.name for item in getattr(found, name))
        for name in ("failed", "refused", "new", "removed", "still_without")
    }
    assert names == {
        "failed": ["m.time_broke"],
        "refused": ["m.time_other"],
        "new": ["m.time_came", "m.time_mended"],
        "removed": ["m.time_gone", "m.time_skipped"],
        "still_without": ["m.time_never"],
    }
    assert found.pairs == ()


def test_units_are_converted_or_refused(tmp_path: Path) -> None:
    """J6: a store in milliseconds and one in seconds compare; bytes and seconds do not."""
    columns = {}
    for name, unit, value in (("ms", "ms", 500.0), ("s", "s", 1.0), ("bytes", "bytes", 1.0)):
        write(tmp_path / name, 1, {"m.track_x": result([value])})
        (tmp_path / name / "benchmarks.json").write_text(json.dumps({"m.track_x": {"unit": unit}}))
        history = read(tmp_path / name)
        columns[name] = column(history, history.runs[0])
    (pair,) = compare(columns["ms"], columns["s"]).pairs
    assert pair.ratio == 2.0
    refused = compare(columns["s"], columns["bytes"])
    assert refused.pairs == ()
    assert [item.reason for item in refused.refused] == ["the unit was seconds and is bytes"]


def test_the_mean_is_over_what_both_have_and_says_how_many(tmp_path: Path) -> None:
    """J9: times and rates have a mean of their own."""
    (tmp_path / "benchmarks.json").write_text(json.dumps({"m.track_r": {"unit": "x/s"}}))
    found = compared(
        tmp_path,
        {"m.time_a": result([1.0, 1.0, 0.0], [["1", "2", "3"]]), "m.track_r": result([1.0]), "m.time_b": result([9.0])},
        {"m.time_a": result([2.0, 8.0, 5.0], [["1", "2", "3"]]), "m.track_r": result([3.0]), "m.time_c": result([9.0])},
    )
    assert {what: (pytest.approx(mean), count) for what, (mean, count) in found.means.items()} == {
        "seconds, lower is better": (4.0, 2),
        "x/s, higher is better": (3.0, 1),
    }


def test_intervals_that_overlap_are_flagged(tmp_path: Path) -> None:
    params = [["1", "2", "3"]]
    found = compared(
        tmp_path,
        {"m.time_a": result([1.0, 1.0, 1.0], params, low=[0.9, 0.9, None], high=[1.1, 1.1, None])},
        {"m.time_a": result([1.2, 1.3, 1.0], params, low=[1.0, 1.2, 0.9], high=[1.4, 1.4, 1.1])},
    )
    assert {pair.head.params[0]: pair.overlap for pair in found.pairs} == {"1": True, "2": False, "3": None}


def test_another_cpu_is_not_comparable(tmp_path: Path) -> None:
    rows = {"m.time_x": result([1.0])}
    assert compared(tmp_path / "same", rows, rows).incomparable == ""
    other = compared(tmp_path / "other", rows, rows, params={"machine": "here", "cpu": "Other CPU", "os": "Linux 2"})
    assert other.incomparable == "not comparable: CPU Some CPU → Other CPU"
    there = compared(tmp_path / "there", rows, rows, machine="there")
    assert there.incomparable == "not comparable: measured on here and on there"


def test_a_run_is_found_by_its_names(tmp_path: Path) -> None:
    write(tmp_path, 1, {"m.time_x": result([1.0])})
    history = read(tmp_path)
    run = history.runs[0]
    assert comparing.find(history, "here", run.environment.slug, "0101") == run
    assert comparing.find(history, "here", run.environment.key, "02") is None


def test_what_has_no_number_is_listed_with_since_when(tmp_path: Path) -> None:
    for number, values in enumerate([(1.0, 1.0, None), (None, 1.0, 1.0), (None, None, 1.0)]):
        write(tmp_path, number, {"m.time_x": result(list(values), [["1", "2", "3"]])})
    found = [(item.series.params, item.state, item.since, item.last_number) for item in missing(read(tmp_path))]
    assert found == [(("1",), FAILED, 1, 0), (("2",), FAILED, 2, 1)]


def test_how_old_the_newest_run_of_each_machine_is(tmp_path: Path) -> None:
    """J16."""
    start = 1_700_000_000_000
    write(tmp_path, 1, {"m.time_x": result([1.0, None, NAN], [["1", "2", "3"]], started=start)})
    write(tmp_path, 2, {"m.time_x": result([1.0], started=start + 20 * DAY)}, machine="new")
    old, new = standings(read(tmp_path))
    assert (old.machine.name, old.age_days, old.stale) == ("here", 20.0, True)
    assert (old.cells, old.ok, old.failed, old.without, old.failed_share) == (3, 1, 1, 1, 0.5)
    assert (new.machine.name, new.age_days, new.stale) == ("new", 0.0, False)
    assert standings(read(tmp_path), now=start + 40 * DAY)[1].stale
