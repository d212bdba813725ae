"""Steps judged by direction, those beyond doubt, and how well they are found in simulated histories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pytest

import simulate_series
from helpers.series import INF, NAN, wobbling
from machmeter.changes import beyond_doubt, detect, judge
from machmeter.metrics import metric


@pytest.mark.parametrize(
    ("benchmark", "before", "after", "verdict"),
    [
        ("time_forward", 0.010, 0.012, "regression"),
        ("time_forward", 0.012, 0.010, "improvement"),
        ("track_throughput", 200.0, 100.0, "regression"),
        ("track_throughput", 100.0, 200.0, "improvement"),
        ("track_top1_agreement", 0.98, 0.81, "regression"),
        ("peakmem_forward", 4e8, 3e8, "improvement"),
    ],
)
def test_the_direction_of_the_metric_decides(benchmark: str, before: float, after: float, verdict: str) -> None:
    """J1: a halved throughput is a regression, a halved time is none."""
    values = [before] * 20 + [after] * 20
    (change,) = judge.judge(values, detect.detect(values), metric(benchmark).better)
    assert (change.verdict, change.index, change.last_before) == (verdict, 20, 19)


def test_without_a_direction_a_change_is_a_change() -> None:
    values = [1.0] * 20 + [2.0] * 20
    assert [change.verdict for change in judge.judge(values, detect.detect(values), None)] == ["change"]
    assert judge.verdict(3.0, 3.0, "lower") is None


def test_a_change_begins_after_the_last_point_that_has_a_value() -> None:
    values = [1.0] * 20 + [NAN, NAN, INF] + [2.0] * 20
    (change,) = judge.judge(values, detect.detect(values), "lower")
    assert (change.last_before, change.index, change.ratio) == (19, 23, 2.0)


def test_changes_are_strict_json() -> None:
    for before, after in [(0.0, 5.0), (5.0, 0.0), (-3.0, 3.0), (1e-300, 1e100)]:
        values = [before] * 20 + [after] * 20
        changes = judge.judge(values, detect.detect(values), "lower")
        assert len(changes) == 1
        json.dumps([asdict(change) for change in changes], allow_nan=False)


def test_a_regression_weighs_as_much_as_an_improvement_by_its_square() -> None:
    values = [0.0] * 20 + [5.0] * 20 + [6.0] * 20 + [3.0] * 20 + [3.6] * 20 + [3.0] * 20
    changes = judge.judge(values, detect.detect(values), "lower")
    ordered = sorted(changes, key=lambda change: (-change.importance, -change.index))
    assert [(one.index, one.verdict, one.words) for one in ordered] == [
        (20, "regression", "from 0 to 5.000"),
        (60, "improvement", "\N{MINUS SIGN}50.0 %"),
        (80, "regression", "+20.0 %"),
        (40, "regression", "+20.0 %"),
        (100, "improvement", "\N{MINUS SIGN}16.7 %"),
    ]


def test_an_alert_needs_more_than_the_kernel() -> None:
    """Two of seven processes are 50 % slower: the kernel sees a step of 8 % among 18 points, ranks are not so sure."""
    values = wobbling((1, 18), (1.08, 18))
    values = [1.5 * value if at % 7 in (1, 4) else value for at, value in enumerate(values)]
    steps = detect.detect(values)
    assert [step.index for step in steps] == [18]
    assert beyond_doubt.alerting(values, steps) == []


def test_a_certain_step_raises_an_alert() -> None:
    values = wobbling((1, 60), (1.2, 60))
    assert [step.index for step in beyond_doubt.alerting(values, detect.detect(values))] == [60]


def test_a_clear_step_in_a_short_series_is_shown_and_raises_no_alert() -> None:
    values = [1.0, 1.01, 0.99, 1.0, 1.02, 2.0, 2.02, 1.98, 2.0, 2.01]
    steps = detect.detect(values)
    assert len(steps) == 1
    assert beyond_doubt.alerting(values, steps) == []


def test_alerts_count_gaps_and_stay_inside_the_stretches() -> None:
    values = [NAN, *wobbling((1, 40), (1.3, 12), (1.0, 40))]
    values[20] = INF
    steps = detect.detect(values)
    assert [step.index for step in steps] == [41, 53]
    assert beyond_doubt.alerting(values, steps) == steps


def test_histories_are_the_same_every_time() -> None:
    history = simulate_series.history("gaussian", 200, 3)
    again = simulate_series.history("gaussian", 200, 3)
    assert np.array_equal(history.values, again.values)
    assert history.steps == again.steps
    assert simulate_series.history("gaussian", 200, 4).steps != history.steps
    assert simulate_series.history("gaussian", 200, 3, stationary=True).steps == ()


@pytest.mark.parametrize(
    ("found", "true", "right", "wrong", "missed"),
    [
        ([], [], 0, 0, 0),
        ([50], [50], 1, 0, 0),
        ([53], [50], 1, 0, 0),
        ([54], [50], 0, 1, 1),
        ([49, 51], [50], 1, 1, 0),
        ([50, 50], [50], 1, 0, 0),
        ([51, 54], [50, 52], 2, 0, 0),
        ([51], [50, 52], 1, 0, 1),
    ],
)
def test_a_found_step_counts_once_within_three_points(
    found: list[int], true: list[int], right: int, wrong: int, missed: int
) -> None:
    assert simulate_series.match(found, true) == simulate_series.Score(right=right, wrong=wrong, missed=missed)


def test_f1() -> None:
    assert simulate_series.Score(right=8, wrong=1, missed=3).f1 == pytest.approx(2 * 8 / (2 * 8 + 1 + 3))
    assert simulate_series.Score().f1 == 1.0


def score(kinds: Sequence[str], points: int, histories: int) -> float:
    made = [simulate_series.history(kind, points, number) for kind in kinds for number in range(histories)]
    found = detect.detect_many([one.values for one in made])
    pairs = zip(found, made, strict=True)
    return sum((simulate_series.match([s.index for s in a], b.steps) for a, b in pairs), simulate_series.Score()).f1


TUNED_WITHOUT_BURSTS = [kind for kind in simulate_series.TUNED if kind != "bursts"]


def test_f1_at_200_points() -> None:
    assert score(TUNED_WITHOUT_BURSTS, 200, 40) >= 0.96
    assert score(list(simulate_series.TUNED), 200, 40) >= 0.96
    assert score(list(simulate_series.HELD_OUT), 200, 40) >= 0.93


def test_f1_at_60_points() -> None:
    assert score(TUNED_WITHOUT_BURSTS, 60, 40) >= 0.90
    assert score(list(simulate_series.HELD_OUT), 60, 40) >= 0.90


@pytest.mark.parametrize("points", [200, 1400])
def test_false_alarms_on_stationary_noise(points: int) -> None:
    kinds = (*simulate_series.STATIONARY, *simulate_series.STATIONARY_HELD_OUT)
    histories = 28_000 // points
    noise = [
        simulate_series.history(kind, points, n, stationary=True).values for kind in kinds for n in range(histories)
    ]
    false = sum(map(len, detect.detect_many(noise)))
    assert 1000 * false / sum(map(len, noise)) <= 0.05
