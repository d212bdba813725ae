"""What is judged between two sides, from rounds of processes: direction, noise, drift, disturbance."""

from __future__ import annotations

import math
import random

import pytest

from helpers.judging import once, only
from helpers.measurements import BASE, CELL, SAME, measured, row, timed
from machmeter.compare import judge


@pytest.mark.parametrize(
    ("metric", "unit", "factor", "verdict"),
    [
        ("time_forward", "seconds", 1.05, "regression"),
        ("time_forward", "seconds", 0.95, "improvement"),
        ("track_throughput", "images/s", 0.5, "regression"),
        ("track_throughput", "images/s", 2.0, "improvement"),
        ("track_other", "things", 2.0, "changed"),
    ],
)
def test_both_directions(metric: str, unit: str, factor: float, verdict: str) -> None:
    """J1: a throughput that halves is a regression, a time that falls is none; without a direction it only changed."""
    found = only(timed(factor, metric=metric, unit=unit, better="unknown"))
    assert (found.verdict, round(found.ratio or 0.0, 2), found.pairs) == (verdict, factor, 8)
    assert found.low is not None
    assert found.high is not None
    assert found.low < factor * 1.001 < found.high * 1.002


def test_our_own_table_of_metrics_is_believed_before_the_measurements() -> None:
    """An untrusted head cannot say that a longer time is better."""
    assert only(timed(1.05, better="higher")).verdict == "regression"


def test_sides_that_do_not_agree_on_a_direction_have_none() -> None:
    """Of a metric that is not ours."""
    base = row(BASE, metric="track_x", unit="things", better="lower")
    head = row([2 * value for value in SAME], metric="track_x", unit="things", better="higher", side="head")
    assert only(measured([base], [head])).verdict == "changed"


def test_identical_code_is_no_change() -> None:
    """The interval lies within 2 % of 1 and nothing is said but that."""
    found = only(timed())
    assert (found.verdict, found.words, found.minimum) == ("no change", "", 0.02)
    assert judge.compare(timed()).result == "no regression"


def test_a_certain_change_below_what_counts_is_no_change() -> None:
    """1 % of a latency is certain here, and nobody wants to hear of it."""
    found = only(timed(1.01))
    assert found.verdict == "no change"
    assert found.q is not None
    assert found.q < 0.001


def test_noise_that_hides_a_change_is_undecided() -> None:
    """More rounds would help, and the words say what cannot be excluded."""
    noisy = measured(
        [row([1.0, 1.1, 0.9, 1.05, 0.95, 1.08, 0.92, 1.0])],
        [row([1.1, 0.93, 1.02, 1.1, 0.9, 0.97, 1.05, 0.94], side="head")],
    )
    found = only(noisy)
    assert (found.verdict, found.words) == ("undecided", "a change of 2 % cannot be excluded")
    assert judge.undecided(noisy) == {(CELL, "time_forward")}
    assert judge.compare(noisy).result == "could not judge"


def test_a_finding_that_only_just_is_one_deserves_more_rounds() -> None:
    """Otherwise what is looked at after every round is found by chance in the end; a sure one needs no more."""
    late = [math.exp(by) for by in (0.0, 0.1, 0.02, 0.08, 0.0, 0.09, 0.03, 0.06)]
    weak = measured([row([1.0] * 8)], [row(late, side="head")])
    found = only(weak)
    assert found.verdict == "regression"
    assert 0.005 < (found.q or 0.0) < 0.05
    assert judge.undecided(weak) == {(CELL, "time_forward")}
    assert judge.undecided(timed(1.1)) == set()


def test_what_is_usual_is_told_from_as_many_rounds_of_every_row() -> None:
    """Rows that got more rounds were noisier; their rounds beyond those of all others do not count for it."""
    generator = random.Random(3)

    def values(count: int) -> list[float]:
        return [math.exp(generator.gauss(0.0, 0.01)) for _ in range(count)]

    counts = [6] * 40 + [12] * 60
    base = [row(values(count), cell=f"c{number}") for number, count in enumerate(counts)]
    head = [row(values(count), cell=f"c{number}", side="head") for number, count in enumerate(counts)]
    wild = [
        item if len(item.processes) == 6 else row([*values(6), *[9.0] * 6], cell=item.cell, side="head")
        for item in head
    ]
    for calm, rough in zip(head, wild, strict=True):
        rough.processes[:6] = calm.processes[:6]
    first = {item.cell: item for item in judge.compare(measured(base, head)).findings}
    second = {item.cell: item for item in judge.compare(measured(base, wild)).findings}
    assert [first[f"c{number}"].low for number in range(40)] == [second[f"c{number}"].low for number in range(40)]


def test_an_outlier_does_not_hide_a_slowdown_in_a_table_that_knows_its_noise() -> None:
    """One of sixteen processes took 40 % longer; the cells beside it tell that this is no noise of every process."""
    base = [row([0.01 * value for value in BASE], cell=f"c{number}") for number in range(30)]
    head = [row([0.01 * value for value in SAME], cell=f"c{number}", side="head") for number in range(30)]
    slower = [0.0105 * value for value in SAME]
    slower[3] *= 1.4
    head[7] = row(slower, cell="c7", side="head")
    found = judge.compare(measured(base, head))
    assert [item.cell for item in found.findings if item.verdict == "regression"] == ["c7"]


def test_too_few_rounds_are_not_judged() -> None:
    """The words say how many are needed, and more rounds would help."""
    few = measured([row(BASE[:3])], [row([2 * value for value in SAME[:3]], side="head")])
    found = only(few)
    assert found.verdict == "not judged"
    assert found.words == "3 undisturbed rounds: at least 6 are needed, 8 to see 5 %"
    assert found.ratio == pytest.approx(2.0, rel=0.01)
    assert (found.low, found.p) == (None, None)
    assert judge.undecided(few) == {(CELL, "time_forward")}
    assert judge.compare(few).result == "could not judge"


def test_disturbed_processes_are_left_out() -> None:
    """A round in which others had more than a tenth of the CPUs says nothing, and a note says how many there were."""
    values = [0.01 * value for value in SAME]
    values[2] = 0.05
    quiet: list[float | None] = [0.01] * 8
    base, head = (
        row([0.01 * value for value in BASE], disturbed=quiet),
        row(values, side="head", disturbed=[*quiet[:2], 0.7, *quiet[3:]]),
    )
    found = judge.compare(measured([base], [head]))
    assert (found.findings[0].verdict, found.findings[0].pairs) == ("no change", 7)
    assert found.notes == ["1 measurement was left out: other programs had the CPUs meanwhile"]


def test_too_many_disturbed_rounds_are_not_judged() -> None:
    """And the words say why."""
    busy = [0.5, 0.5, 0.5, *[0.0] * 5]
    sides = [row(BASE, disturbed=busy), row([2 * value for value in SAME], side="head")]
    found = only(measured(sides[:1], sides[1:]))
    assert found.words == (
        "5 undisturbed rounds, and 3 in which other programs had the CPUs: at least 6 are needed, 8 to see 5 %"
    )


def test_base_always_first_is_not_judged() -> None:
    """J3: the place in a round and the change are one."""
    biased = timed(1.05, base_always_first=True)
    found = only(biased)
    assert found.verdict == "not judged"
    assert found.words == "base was measured first in 8 of 8 rounds: its place and the change are one"


def test_drift_between_rounds_is_no_finding() -> None:
    """J2: a machine that becomes 17 % slower meanwhile, measured in turn: no finding, and a narrow interval."""
    drift = [1.0 + 0.17 * number / 7 for number in range(8)]
    found = only(
        measured(
            [row([one * slow for one, slow in zip(BASE, drift, strict=True)])],
            [row([one * slow for one, slow in zip(SAME, drift, strict=True)], side="head")],
        )
    )
    assert found.verdict == "no change"


def test_two_blocks_with_drift_are_no_finding() -> None:
    """J2: all of base, then all of head, 17 % slower by drift alone."""
    blocks = measured([row(BASE)], [row([1.17 * value for value in SAME], side="head")], interleaved=False)
    found = only(blocks)
    assert (found.verdict, found.minimum) == ("not judged", 0.25)
    assert found.words == "measured one after the other: less than 25 % may be the machine"


def test_two_blocks_are_judged_beyond_what_drift_does() -> None:
    """A factor of two is a regression whatever the machine did."""
    blocks = measured([row(BASE)], [row([2.0 * value for value in SAME], side="head")], interleaved=False)
    assert only(blocks).verdict == "regression"


def test_samples_of_one_process_are_not_judged() -> None:
    """Any asv project's results: asv keeps no boundaries of processes."""
    single = measured([row(BASE[:1])], [row([2.0], side="head")], interleaved=False)
    found = only(single)
    assert (found.verdict, found.words) == ("not judged", "samples of one process: at least 6 rounds are needed")


@pytest.mark.parametrize(("count", "times"), [(1, "once"), (2, "twice"), (3, "3 times")])
@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize(("metric", "unit"), [("track_size", "things"), ("track_load_time", "seconds")])
def test_what_is_not_measured_in_rounds_says_how_often_it_was(
    metric: str, unit: str, interleaved: bool, count: int, times: str
) -> None:
    """A metric of somebody else, or a load: more rounds would not measure it more often."""
    about = {"metric": metric, "unit": unit}
    sides = [row([5.0] * count, **about), row([7.0] * count, side="head", **about)]
    found = only(measured(sides[:1], sides[1:], interleaved=interleaved))
    assert found.verdict == "not judged"
    assert found.words == f"measured {times} a side: at least 6 times are needed to tell a change from scatter"


@pytest.mark.parametrize(
    ("metric", "unit", "base", "head", "verdict", "words"),
    [
        ("track_artifact_size", "bytes", 1000, 1009, "no change", ""),
        ("track_artifact_size", "bytes", 1000, 1011, "regression", ""),
        ("track_artifact_size", "bytes", 1000, 900, "improvement", ""),
        ("peakmem_forward", "bytes", 1000, 1020, "no change", ""),
        ("peakmem_forward", "bytes", 1000, 1040, "regression", ""),
        ("track_top1_agreement", "fraction", 0.99, 0.986, "no change", ""),
        ("track_top1_agreement", "fraction", 0.99, 0.98, "regression", "\N{MINUS SIGN}1.0 points"),
        ("track_top1_agreement", "fraction", 0.5, 0.52, "improvement", "+2.0 points"),
        ("track_sqnr", "dB", 20.0, 19.5, "no change", ""),
        ("track_sqnr", "dB", 20.0, 18.5, "regression", "\N{MINUS SIGN}1.5 dB"),
    ],
)
def test_what_is_known_once_is_judged_by_its_size(
    metric: str, unit: str, base: float, head: float, verdict: str, words: str
) -> None:
    """No p-value: it is the same every time. Shares and decibels count in their own unit."""
    found = once(base, head, metric, unit)
    assert (found.verdict, found.words, found.p, found.q) == (verdict, words, None, None)


@pytest.mark.parametrize(
    ("count", "factor", "verdict"), [(3, 1.02, "no change"), (3, 1.04, "regression"), (8, 1.02, "regression")]
)
def test_memory_needs_few_processes(count: int, factor: float, verdict: str) -> None:
    """Few count by their size, 3 %; from six pairs on the statistics see 1 %."""
    about = {"metric": "peakmem_forward", "unit": "bytes"}
    base = row([1e8 * (1.0 + 1e-4 * number) for number in range(count)], **about)
    head = row([1e8 * factor * (1.0 + 1e-4 * number) for number in range(count)], side="head", **about)
    assert only(measured([base], [head])).verdict == verdict
