"""Steps in series: found at their first new point, and not where there are none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

import simulate_series
from helpers.series import INF, NAN, wobbling
from machmeter.changes import detect, doubts, ranks, segments
from machmeter.changes.detect import Step


def indices(values: Sequence[float]) -> list[int]:
    return [step.index for step in detect.detect(values)]


def test_a_step_has_its_first_new_point_and_the_levels_around_it() -> None:
    assert detect.detect([10.0] * 30 + [12.0] * 30) == [
        Step(index=30, before=10.0, after=12.0, p=pytest.approx(2 / 137846528820))
    ]


def test_steps_up_and_down_in_a_series_with_noise() -> None:
    found = detect.detect(wobbling((100, 40), (110, 25), (55, 50)))
    assert [step.index for step in found] == [40, 65]
    assert [(round(step.before), round(step.after)) for step in found] == [(100, 110), (110, 55)]


def test_a_tenfold_step_does_not_hide_a_later_one_of_a_fifth() -> None:
    assert indices(wobbling((1, 50), (10, 50), (12, 50))) == [50, 100]
    assert indices(wobbling((10, 50), (1, 50), (0.8, 50))) == [50, 100]


@pytest.mark.parametrize("points", [60, 200, 1400])
def test_a_step_of_five_percent_is_found_four_points_after_it_came(points: int) -> None:
    assert indices(wobbling((1, points - 4), (1.05, 4))) == [points - 4]
    assert indices(wobbling((1, points - 4), (0.95, 4))) == [points - 4]


def test_three_points_are_not_yet_a_step() -> None:
    assert indices(wobbling((1, 100), (1.5, 3))) == []


def test_the_smallest_step_is_two_percent_of_the_median() -> None:
    assert indices([1.0] * 40 + [1.019] * 40) == []
    assert indices([1.0] * 40 + [1.021] * 40) == [40]


@pytest.mark.parametrize("factor", [1e-12, 1e-3, 1.0, 1e12])
def test_the_unit_does_not_matter(factor: float) -> None:
    values = np.array(wobbling((100, 40), (110, 40)))
    assert indices(list(values * factor)) == [40]
    assert indices(list(factor / values)) == [40]


def test_a_short_series_shows_a_step_that_nobody_can_overlook() -> None:
    assert indices([1.0, 1.01, 0.99, 1.0, 1.02, 2.0, 2.02, 1.98, 2.0, 2.01]) == [5]
    assert indices([1.0, 1.01, 0.99, 1.0, 1.02, 1.05, 1.04, 1.06, 1.05, 1.05]) == []


def test_noise_has_no_steps() -> None:
    assert indices(wobbling((1, 400))) == []


@pytest.mark.parametrize("points", [1, 2, 3, 4, 5])
def test_a_few_points_elsewhere_are_a_burst(points: int) -> None:
    assert indices(wobbling((1, 50), (1.6, points), (1, 50))) == []


def test_a_stay_of_ten_points_is_two_steps() -> None:
    assert indices(wobbling((1, 50), (1.6, 10), (1, 50))) == [50, 60]


def test_single_outliers_are_no_steps_and_hide_none() -> None:
    values = wobbling((1, 50), (1.1, 50))
    for at in (7, 23, 41, 48, 52, 60, 77, 95):
        values[at] *= 8
    assert indices(values) == [50]


def test_a_drift_is_no_step() -> None:
    values = np.array(wobbling((1, 300))) * np.linspace(1, 1.3, 300)
    assert indices(list(values)) == []


def test_two_modes_are_no_steps_and_a_step_of_both_is_one() -> None:
    modes = np.where(np.random.default_rng(3).random(200) < 0.3, 1.05, 1.0) * np.array(wobbling((1, 200))) ** 0.3
    assert indices(list(modes)) == []
    modes[120:] *= 1.2
    assert indices(list(modes)) == [120]


def test_the_last_digits_of_a_constant_series_are_no_steps() -> None:
    assert indices([1.0] * 50 + [1.0 + 1e-9] * 50) == []


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0],
        [1.0, 2.0],
        [1.0, 2.0, 3.0],
        [0.0] * 100,
        [5.0] * 100,
        [-5.0] * 100,
        [NAN] * 100,
        [INF] * 100,
        [-INF, INF] * 50,
        [NAN] * 99 + [1.0],
        [1.0, NAN] * 2,
        [1e308, -1e308] * 50,
        [1e-300] * 20 + [1e140] * 2 + [0.0],
    ],
)
def test_degenerate_series_have_no_steps(values: list[float]) -> None:
    """Warnings are errors here: a division by zero or an overflow would be one."""
    with np.errstate(all="raise"):
        assert detect.detect(values) == []


def test_gaps_do_not_shift_steps() -> None:
    values = wobbling((1, 30), (1.2, 30))
    for at in (0, 5, 29, 30, 31, 44, 59):
        values[at] = NAN
    values[10], values[50] = INF, -INF
    assert indices(values) == [32]


@pytest.mark.parametrize(("before", "after"), [(0.0, 5.0), (5.0, 0.0), (-3.0, 3.0), (-3.0, -6.0), (1e-300, 1.0)])
def test_levels_need_not_be_positive(before: float, after: float) -> None:
    """J7, and bytes that are always 0, counts, decibels."""
    step = detect.detect([before] * 20 + [after] * 20)
    assert [(one.index, one.before, one.after) for one in step] == [(20, before, after)]


def test_a_few_zeros_are_outliers_and_hide_no_step() -> None:
    """One broken run must not turn a series of times into one without logarithms."""
    values = wobbling((100, 60), (1, 60), (1.2, 60))
    values[5] = values[100] = 0.0
    assert indices(values) == [60, 120]


def test_the_array_that_is_given_stays_as_it_is() -> None:
    values = np.array([3.0, 2.0, NAN] * 20)
    before = values.copy()
    detect.detect(values)
    assert np.array_equal(values, before, equal_nan=True)


def test_many_series_give_what_each_gives_alone() -> None:
    """They are cut in batches and padded: lengths and numbers of levels must not show."""
    histories = [
        simulate_series.history(kind, points, number, stationary=points < 20).values
        for number, points in enumerate((0, 1, 7, 30, 61, 200, 457))
        for kind in simulate_series.TUNED
    ]
    together = detect.detect_many(histories)
    assert together == [detect.detect(values) for values in histories]
    assert sum(map(len, together)) > 50


def test_processes_give_the_same_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detect, "WORTH_PROCESSES", 4)
    histories = [simulate_series.history("gaussian", 80 + number, number).values for number in range(7)]
    assert detect.detect_many(histories, processes=2) == detect.detect_many(histories)


def test_a_long_series_is_cut_in_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are bounded by what is remembered, too: two series of this length would be too much for one."""
    batches: list[int] = []
    cut = segments._cut
    monkeypatch.setattr(segments, "_cut", lambda series, levels: (batches.append(len(series)), cut(series, levels))[1])
    values = np.repeat([0.0, 50.0, 0.0], 3000)
    assert segments.cut([values] * 3) == [[3000, 6000]] * 3
    assert batches == [3]
    monkeypatch.setattr(segments, "REMEMBERED", 2 * 9000)
    assert segments.cut([values] * 3) == [[3000, 6000]] * 3
    assert batches == [3, 1, 1, 1]


def test_the_cheapest_cut_is_found() -> None:
    """Against all cuts of a short series, counted one by one."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        values = np.round(rng.standard_normal(9) + np.repeat(rng.choice([0.0, 8.0], 3), 3), 1)
        levels = segments._levels(values)

        def cost(starts: tuple[int, ...], values: np.ndarray = values, levels: np.ndarray = levels) -> float:
            bounds = [0, *starts, len(values)]
            pieces = [values[left:right] for left, right in pairwise(bounds)]
            each = [np.minimum((piece[:, None] - levels) ** 2 / 2, segments.CAP).sum(axis=0).min() for piece in pieces]
            return float(sum(each)) + segments.PENALTY * len(starts)

        every = [tuple(at for at in range(1, 9) if chosen >> at & 1) for chosen in range(0, 512, 2)]
        assert cost(tuple(segments.cut([values])[0])) == pytest.approx(min(map(cost, every)))


def test_cuts_of_another_search_are_doubted_alike() -> None:
    values = wobbling((1, 30), (1.3, 30))
    assert [step.index for step in detect.confirmed(values, [12, 30, 44])] == [30]


@pytest.mark.parametrize(
    ("before", "after", "p"),
    [
        ([1, 2, 3], [4, 5, 6], 2 / 20),
        ([4, 5, 6], [1, 2, 3], 2 / 20),
        ([1, 2, 3], [3.5, 5, 2.5], 4 / 20),
        (range(20), range(20, 24), 2 / 10626),
        (range(20), range(20, 23), 2 / 1771),
        ([1, 2, 4, 5, 8], [3, 6, 7, 9, 10], 0.15079365),
        ([1, 1, 1], [1, 1, 1], 1.0),
        ([], [1, 2], 1.0),
    ],
)
def test_rank_test_is_exact(before: Sequence[float], after: Sequence[float], p: float) -> None:
    assert ranks.p_value(np.array(before, float), np.array(after, float)) == pytest.approx(p)


def test_ties_make_the_rank_test_more_careful() -> None:
    tied = ranks.p_value(np.array([1.0, 1, 1, 2]), np.array([2.0, 3, 3, 3]))
    assert ranks.p_value(np.array([1.0, 1, 1, 2]), np.array([2.1, 3, 3, 3])) < tied < 0.2


def test_gain_of_a_kernel_grows_with_the_points_and_not_with_the_distance() -> None:
    few, many = np.zeros(4), np.zeros(20)
    assert doubts.gain(many, many + 10, 1.0) == pytest.approx(20.0)
    assert doubts.gain(many, many + 1000, 1.0) == pytest.approx(20.0)
    assert doubts.gain(many, few + 10, 1.0) == pytest.approx(2 * 80 / 24)
    assert doubts.gain(many, many, 1.0) == 0.0
