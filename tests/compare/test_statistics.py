"""The statistics of a comparison: against SciPy's own tests, and on simulated tables of identical code."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import simulate_sides
from machmeter.compare import limits, statistics


def found(differences: simulate_sides.Array) -> simulate_sides.Array:
    """Return +1 where a row is found slower, -1 where faster, 0 else, as the judgement does."""
    estimates = statistics.estimates(statistics.paired(differences, statistics.table(differences)))
    certain = statistics.discoveries(estimates.p) <= limits.FALSE_DISCOVERIES
    told = certain & (np.abs(estimates.middle) >= np.log(1.02))
    return np.asarray(told * np.sign(estimates.middle))


def test_a_small_table_has_student_s_t() -> None:
    """The p-value and the interval are those of SciPy's paired test."""
    differences = np.random.default_rng(1).normal(0.01, 0.02, (3, 8))
    assert statistics.table(differences) is None
    told = statistics.estimates(statistics.paired(differences, None))
    expected = stats.ttest_1samp(differences, 0.0, axis=-1)
    interval = expected.confidence_interval(0.95)
    assert told.p == pytest.approx(expected.pvalue)
    assert told.low == pytest.approx(interval.low)
    assert told.high == pytest.approx(interval.high)


def test_blocks_have_welch_s_t() -> None:
    """As SciPy has it for unequal variances."""
    random = np.random.default_rng(2)
    base, head = random.normal(0.0, 0.01, (4, 8)), random.normal(0.02, 0.05, (4, 6))
    told = statistics.estimates(statistics.blocks(base, head))
    assert told.p == pytest.approx(stats.ttest_ind(head, base, axis=-1, equal_var=False).pvalue)


def test_rows_learn_from_each_other_what_noise_is_usual() -> None:
    """A row whose pairs agree by luck is no surer than the others; one that is clearly noisier is left to itself."""
    differences = np.random.default_rng(3).normal(0.0, 0.02, (200, 8))
    differences[0] = 0.05 + np.array([-1, 1, -1, 1, -1, 1, -1, 1]) * 1e-6
    differences[1] = np.array([-1, 1, -1, 1, -1, 1, -1, 1]) * 0.2
    told = statistics.paired(differences, statistics.table(differences))
    own = differences[1].std(ddof=1) / 8**0.5
    assert told.error[0] > 0.003
    assert told.error[1] == pytest.approx(own)
    assert (told.freedom[0], told.freedom[1]) == (pytest.approx(37.0), 7.0)


def test_a_far_pair_is_drawn_in() -> None:
    """One of eight pairs is 40 % off: it moves the middle by less than 1 %."""
    differences = np.random.default_rng(4).normal(0.0, 0.005, (50, 8))
    differences[0, 3] = 0.4
    told = statistics.paired(differences, statistics.table(differences))
    assert abs(told.middle[0]) < 0.01


@pytest.mark.parametrize("value", [1e-4, 0.01, 0.3, 1.0, 50.0])
def test_the_inverse_of_trigamma(value: float) -> None:
    """Over all values that variances of real tables give."""
    assert special.polygamma(1, statistics._inverse_trigamma(np.array([value])))[0] == pytest.approx(value)


@pytest.mark.parametrize("constant", [0.0, 0.1])
def test_values_without_any_noise(constant: float) -> None:
    """A coarse clock: no warning, no NaN, and a change is certain."""
    differences = np.full((30, 8), constant)
    with np.errstate(all="raise"):
        told = statistics.estimates(statistics.paired(differences, statistics.table(differences)))
    assert np.isfinite([told.middle, told.low, told.high, told.p]).all()
    assert (told.p < 0.001).all() == (constant > 0.0)


# The share of tables with any finding: at most 5 %, of which 200 tables may show 15 by chance.
@pytest.mark.parametrize("name", [name for name in simulate_sides.KINDS if name != "wave"])
def test_identical_code_has_findings_as_rarely_as_stated(name: str) -> None:
    """J4, under every kind of noise that docs/comparisons.md has: process variation, drift, two modes, outliers."""
    medians = simulate_sides.KINDS[name].make(np.random.default_rng(5), (200, 200, 8))
    assert found(medians[:, :, 1] - medians[:, :, 0]).any(axis=-1).sum() <= 15


@pytest.mark.parametrize(("name", "at_least"), [("quiet", 0.9), ("rounds", 0.9), ("outliers", 0.55), ("half", 0.55)])
def test_a_slowdown_of_five_percent_is_found(name: str, at_least: float) -> None:
    """One cell of 200, with 8 pairs; in 90 % of cases where the noise that is each process's own is small."""
    medians = simulate_sides.KINDS[name].make(np.random.default_rng(6), (200, 200, 8))
    medians[:, 0, 1] += np.log(1.05)
    assert np.mean(found(medians[:, :, 1] - medians[:, :, 0])[:, 0] > 0) >= at_least


def test_simulated_rounds_are_in_balanced_order() -> None:
    """A walk that only rises makes head later in even rounds and earlier in odd ones."""
    walks = np.arange(8.0).reshape(1, 1, 8)
    assert simulate_sides._in_turn(walks)[0, 0].tolist() == [[0, 3, 4, 7], [1, 2, 5, 6]]
