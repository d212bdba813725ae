"""Units, directions, percentiles and throughput."""

from __future__ import annotations

import re

import pytest

from machmeter import metrics, suite


def test_throughput_counts_images() -> None:
    assert metrics.images_per_second(0.010, 1) == pytest.approx(100.0)
    assert metrics.images_per_second(0.010, 8) == pytest.approx(800.0)


@pytest.mark.parametrize(("q", "needed"), [(0.50, 1), (0.95, 20), (0.99, 100)])
def test_percentiles_are_withheld_from_too_few_samples(q: float, needed: int) -> None:
    """M22: ten samples have no 95th percentile."""
    samples = [float(number) for number in range(needed)]
    assert metrics.percentile(samples, q) is not None
    assert metrics.percentile(samples[1:], q) is None


def test_percentile_interpolates_between_neighbours() -> None:
    assert metrics.percentile([4.0, 1.0, 3.0, 2.0], 0.50) == 2.5
    assert metrics.percentile([float(number) for number in range(101)], 0.95) == 95.0


def test_every_benchmark_has_its_unit_and_direction_from_one_place() -> None:
    kinds = (suite.Timing, suite.Surveyed, suite.Inference, suite.DeviceInference)
    methods = {name: vars(kind)[name] for kind in kinds for name in vars(kind) if re.match("time_|peak|track", name)}
    assert len(methods) == 10
    for name, method in methods.items():
        metric = metrics.metric(name)
        assert method.unit == metric.unit
        assert metric.better in ("lower", "higher")


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("time_forward", "lower"),
        ("peakmem_forward", "lower"),
        ("track_top1_agreement", "higher"),
        ("track_sqnr", "higher"),
        ("track_matrix_product_peak", "higher"),
        ("track_memory_bandwidth", "higher"),
    ],
)
def test_directions(name: str, better: str) -> None:
    assert metrics.metric(name).better == better
