"""What a whole comparison says: values of any kind, lists of one side, order, means, a machine that moved."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from helpers.judging import once, only
from helpers.measurements import BASE, CELL, SAME, failed, measured, row
from machmeter.compare import judge
from machmeter.compare.documents import Measurements


@pytest.mark.parametrize(
    ("base", "head", "verdict", "words"),
    [
        (0, 0, "no change", ("unchanged", "unchanged")),
        (0, 5, "regression", ("from 0 B to 5.000 B", "from 0 ns to 5.000 s")),
        (5, 0, "improvement", ("from 5.000 B to 0 B", "from 5.000 s to 0 ns")),
    ],
)
def test_ratios_that_do_not_exist_are_words(base: float, head: float, verdict: str, words: tuple[str, str]) -> None:
    """J7, with units, of what is known once and of what was measured in rounds."""
    found = once(base, head, "track_artifact_size", "bytes")
    assert (found.verdict, found.words, found.ratio) == (verdict, words[0], None)
    timing = only(measured([row([base] * 8)], [row([head] * 8, side="head")]))
    assert (timing.verdict, timing.words, timing.ratio) == (verdict, words[1], None)


@pytest.mark.parametrize(
    ("metric", "unit"),
    [("time_forward", "seconds"), ("track_artifact_size", "bytes"), ("track_throughput", "images/s"),
     ("track_top1_agreement", "fraction"), ("track_wait", "ms")],
)  # fmt: skip
@pytest.mark.parametrize(("base", "head"), [(-1.0, 1.0), (1.0, -1.0), (-2.0, -1.0)])
def test_what_cannot_be_negative_is_not_judged(metric: str, unit: str, base: float, head: float) -> None:
    """Times, sizes, rates and shares below zero are no measurements, however often they were made."""
    for count in (1, 8):
        sides = [
            row([value] * count, metric=metric, unit=unit, side=side)
            for side, value in (("base", base), ("head", head))
        ]
        found = only(measured(sides[:1], sides[1:]))
        assert (found.verdict, found.words) == ("not judged", "a value is negative, which nothing in this unit can be")


def test_what_may_be_negative_is_judged() -> None:
    """A SQNR below 0 dB is an answer, a bad one; so is a temperature."""
    assert once(-1.0, -3.0, "track_sqnr", "dB", "higher").verdict == "regression"
    assert only(
        measured(
            [row([-1.0] * 8, metric="track_x", unit="C", better="higher")],
            [row([-9.0] * 8, metric="track_x", unit="C", better="higher", side="head")],
        )
    ).verdict == ("regression")


@pytest.mark.parametrize(("base", "head"), [(1e-300, 1e300), (5e-324, 1.0), (1e300, 1e-300)])
def test_numbers_that_no_document_can_hold_are_cut(base: float, head: float) -> None:
    """Minutes are converted to seconds: 60 times as much would be too large."""
    sides = [row([base] * 8, metric="time_x", unit="min"), row([head] * 8, metric="time_x", unit="s", side="head")]
    found = only(measured(sides[:1], sides[1:]))
    assert abs(found.base) <= 1e300


@pytest.mark.parametrize(("base", "head"), [(1e-300, 1e300), (5e-324, 1.0), (1e300, 1e-300)])
def test_a_ratio_that_no_number_can_hold_is_words(base: float, head: float) -> None:
    """JSON stays strict whatever comes."""
    assert only(measured([row([base] * 8)], [row([head] * 8, side="head")])).ratio is None


def test_milliseconds_are_converted() -> None:
    """J6: 10 ms and 0.01 s are the same."""
    base = row([10.0 * value for value in BASE], metric="time_x", unit="ms")
    head = row([0.01 * value for value in SAME], metric="time_x", unit="seconds", side="head")
    found = only(measured([base], [head]))
    assert (found.verdict, found.unit) == ("no change", "seconds")
    assert found.base == pytest.approx(0.01, rel=0.01)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"unit": "bytes"}, "the unit was seconds and is bytes"),
        ({"version": "2"}, "another version of the benchmark: it measures something else"),
    ],
)
def test_what_measures_something_else_is_refused(more: dict[str, Any], reason: str) -> None:
    """J6: bytes are never compared with seconds, nor two versions of a benchmark with each other."""
    found = judge.compare(measured([row(BASE, metric="time_x")], [row(SAME, metric="time_x", side="head", **more)]))
    assert found.findings == []
    assert [(item.kind, item.reason) for item in found.lone] == [("refused", reason)]
    assert found.result == "could not judge"


def test_lists_say_what_only_one_side_has() -> None:
    """J8: failures come first; what was not run anywhere is not told."""
    base = [row(BASE, cell=name) for name in ("works", "breaks", "goes", "n/a now")]
    base += [failed("out of memory", cell=name) for name in ("mended", "still")] + [failed("", cell="x", status="n/a")]
    head = [row(SAME, cell=name, side="head") for name in ("works", "mended", "comes", "x")]
    head += [failed(cell="breaks"), failed("wrong label", cell="still"), failed("no AMX", cell="n/a now", status="n/a")]
    head += [failed("new and broken", cell="both"), failed("", cell="never", status="not run")]
    found = judge.compare(measured(base, head))
    assert [(item.kind, item.cell, item.reason) for item in found.lone] == [
        ("failed", "breaks", "killed (signal 9)"),
        ("failing", "still", "wrong label"),
        ("failing", "both", "new and broken"),
        ("removed", "goes", "not in head"),
        ("removed", "n/a now", "no AMX"),
        ("fixed", "mended", "out of memory"),
        ("new", "x", "n/a in base"),
        ("new", "comes", "not in base"),
    ]
    assert found.result == "regression"


def test_a_head_that_does_not_build_is_a_regression() -> None:
    """All that worked in base failed."""
    found = judge.compare(measured([row(BASE)], [], of_head={"error": "does not build: no such file"}))
    assert [(item.kind, item.reason) for item in found.lone] == [("failed", "does not build: no such file")]
    assert found.result == "regression"


def test_a_base_that_does_not_build_cannot_be_judged() -> None:
    """Nor can a head that is new."""
    found = judge.compare(measured([], [row(SAME, side="head")], of_base={"error": "does not build"}))
    assert (found.result, found.base.error) == ("could not judge", "does not build")


@pytest.mark.parametrize("cells", [[], ["other"]])
def test_no_common_cells_cannot_be_judged(cells: list[str]) -> None:
    """And a note says so."""
    head = [row(SAME, cell=name, side="head") for name in cells]
    found = judge.compare(measured([row(BASE)] if cells else [], head))
    assert found.result == "could not judge"
    assert found.notes[0].startswith("there is nothing to compare")


def test_what_is_there_twice_is_refused() -> None:
    """A side that names a cell twice could hide one of them."""
    found = judge.compare(measured([row(BASE)], [row(SAME, side="head"), row([2.0] * 8, side="head")]))
    assert [(item.kind, item.reason) for item in found.lone] == [("refused", "it is there twice on one side")]


def test_findings_are_in_the_order_of_reading() -> None:
    """Regressions by their size, then improvements, and what did not change last."""
    factors = {"a": 1.0, "b": 1.1, "c": 0.8, "d": 1.5, "e": 0.5}
    base = [row(BASE, cell=name) for name in factors]
    head = [row([value * factor for value in SAME], cell=name, side="head") for name, factor in factors.items()]
    found = judge.compare(measured(base, head))
    assert [(item.cell, item.verdict) for item in found.findings] == [
        ("d", "regression"),
        ("b", "regression"),
        ("e", "improvement"),
        ("c", "improvement"),
        ("a", "no change"),
    ]


def test_means_are_over_what_both_sides_have() -> None:
    """J9: the cells that only one side ran do not count, and the number of those that do is told."""
    base = [row([1.0] * 8, cell=name) for name in ("a", "b", "c", "only base")]
    factors = (("a", 2.0), ("b", 0.5), ("c", 1.0), ("only head", 9.0))
    head = [row([value] * 8, cell=name, side="head") for name, value in factors]
    once_each = [row([0.5], metric="track_top1_agreement", unit="fraction", side=side) for side in ("base", "head")]
    found = judge.compare(measured([*base, once_each[0]], [*head, once_each[1]]))
    assert [(item.metric, round(item.ratio, 9), item.cells) for item in found.means] == [("time_forward", 1.0, 3)]


def test_means_are_of_at_least_three_judged_cells() -> None:
    """A number that nobody could judge is no part of a summary, and one or two cells are none."""
    noisy = [1.0, 1.1, 0.9, 1.05, 0.95, 1.08, 0.92, 1.0]
    base = [row(BASE, cell="a"), row(BASE, cell="b"), row(noisy, cell="c")]
    head = [row(SAME, cell="a", side="head"), row(SAME, cell="b", side="head"), row(noisy[::-1], cell="c", side="head")]
    found = judge.compare(measured(base, head))
    assert [item.verdict for item in found.findings] == ["undecided", "no change", "no change"]
    assert found.means == []
    third = judge.compare(measured([*base, row(BASE, cell="d")], [*head, row(SAME, cell="d", side="head")]))
    assert [(item.metric, item.cells, round(item.ratio, 4)) for item in third.means] == [("time_forward", 3, 1.0)]


CONTROL = {"cell": "control.Machine", "metric": "time_matrix_product", "control": True}


def shifted(control: float, factor: float) -> Measurements:
    slow = [value * factor for value in SAME]
    return measured(
        [row(BASE, **CONTROL), row(BASE)],
        [row([value * control for value in SAME], side="head", **CONTROL), row(slow, side="head")],
    )


def test_nothing_finer_than_the_shift_of_the_machine_is_judged() -> None:
    """The control became 8 % slower: 6 % of a cell say nothing, 30 % do."""
    found = judge.compare(shifted(1.08, 1.06))
    assert found.shift is not None
    assert (found.shift.control, round(found.shift.ratio, 2)) == ("control.Machine", 1.08)
    assert [item.verdict for item in found.findings] == ["not judged"]
    words = "the machine itself moved: control.Machine by a factor of 1.08, and this not beyond it"
    assert found.findings[0].words == words
    assert [item.verdict for item in judge.compare(shifted(1.08, 1.3)).findings] == ["regression"]


def test_a_change_whose_interval_reaches_into_the_shift_is_not_judged() -> None:
    """A change of 9.5 % may be nothing but the machine's 9 %."""
    found = judge.compare(shifted(1.09, 1.095))
    assert found.shift is not None
    assert [item.verdict for item in found.findings] == ["not judged"]


def test_no_change_on_a_machine_that_moved_is_not_judged() -> None:
    """A cell that stays as it was on a machine that became 9 % faster runs slower code: the shift hides it."""
    found = judge.compare(shifted(0.91, 1.0))
    assert [item.verdict for item in found.findings] == ["not judged"]
    assert found.result == "could not judge"
    assert judge.undecided(shifted(0.91, 1.0)) == set()


def test_more_rounds_may_tell_a_change_beyond_the_shift() -> None:
    """What is far and uncertain stays undecided, and gets more rounds."""
    told = shifted(1.08, 1.0)
    wild = [1.0, 2.0, 0.9, 1.9, 1.0, 2.1, 0.8, 2.0]
    told.head.rows[1] = row(wild, side="head")
    (found,) = judge.compare(told).findings
    assert (found.verdict, found.words) == ("undecided", "a change beyond that of the machine cannot be excluded")
    assert judge.undecided(told) == {(CELL, "time_forward")}


@pytest.mark.parametrize(
    ("metric", "unit", "count", "verdict"),
    [
        ("time_forward", "seconds", 8, "not judged"),
        ("track_throughput", "images/s", 8, "not judged"),
        ("track_other", "things", 8, "not judged"),
        ("peakmem_forward", "bytes", 8, "no change"),
        ("peakmem_forward", "bytes", 1, "no change"),
        ("track_artifact_size", "bytes", 1, "no change"),
        ("track_top1_agreement", "fraction", 1, "no change"),
        ("track_sqnr", "dB", 1, "no change"),
    ],
)
def test_the_speed_of_the_machine_moves_no_sizes_and_answers(metric: str, unit: str, count: int, verdict: str) -> None:
    """They are judged whatever the controls did; what nobody knows may follow the machine."""
    about = {"metric": metric, "unit": unit}
    told = shifted(1.08, 1.3)
    told.base.rows.append(row(BASE[:count], cell="x", **about))
    told.head.rows.append(row(BASE[:count], cell="x", side="head", **about))
    found = judge.compare(told)
    assert [item.verdict for item in found.findings if item.cell == "x"] == [verdict]


def test_controls_that_stay_are_no_shift() -> None:
    """And are no finding either."""
    found = judge.compare(shifted(1.0, 1.06))
    assert found.shift is None
    assert [item.cell for item in found.findings if item.verdict == "regression"] == [CELL]


def test_identical_tables_have_findings_as_rarely_as_stated() -> None:
    """J4: 200 cells of identical code with 2 % of noise, 60 tables: at most 5 % of them have any finding."""
    generator = random.Random(7)

    def values() -> list[float]:
        return [0.01 * math.exp(generator.gauss(0.0, 0.02)) for _ in range(8)]

    alarms = 0
    for _ in range(60):
        base = [row(values(), cell=f"c{number}") for number in range(200)]
        head = [row(values(), cell=f"c{number}", side="head") for number in range(200)]
        alarms += any(
            item.verdict in ("regression", "improvement") for item in judge.compare(measured(base, head)).findings
        )
    assert alarms <= 3
