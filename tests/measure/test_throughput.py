"""Adding up the calls of several instances. All numbers are literal."""

from __future__ import annotations

import pytest

from machmeter.errors import CellFailed
from machmeter.measure import throughput

pytestmark = pytest.mark.quiet

MS = 1_000_000  # nanoseconds


def back_to_back(begin: int, duration: int, calls: int) -> list[tuple[int, int]]:
    return [(begin + i * duration, begin + (i + 1) * duration) for i in range(calls)]


def test_images_are_counted_not_batches() -> None:
    """M1: 8 images every 10 ms are 800 images/s."""
    assert throughput.rates([back_to_back(0, 10 * MS, 6)], 8) == pytest.approx([800.0] * 5)


def test_instances_are_summed_not_averaged() -> None:
    """M20: two equal instances are twice one."""
    one = back_to_back(0, 10 * MS, 21)
    assert throughput.rates([one, one], 1) == pytest.approx([200.0] * 20)


def test_only_the_common_time_counts() -> None:
    """An instance that begins late and one that ends early are not credited for the time they were alone."""
    early, late = back_to_back(0, 10 * MS, 40), back_to_back(200 * MS, 10 * MS, 40)
    assert throughput.common_window([early, late]) == (200 * MS, 390 * MS)
    assert throughput.rates([early, late], 1) == pytest.approx([200.0] * 19)


def test_a_slow_instance_adds_what_it_does() -> None:
    fast, slow = back_to_back(0, 10 * MS, 100), back_to_back(0, 100 * MS, 10)
    assert throughput.rates([fast, slow], 1) == pytest.approx([110.0] * 9)


def test_calls_in_flight_together_count_each() -> None:
    """Two requests at a time, each 20 ms: 100 images/s."""
    calls = sorted(back_to_back(0, 20 * MS, 11) + back_to_back(10 * MS, 20 * MS, 11))
    assert sum(throughput.rates([calls], 1)) / len(throughput.rates([calls], 1)) == pytest.approx(100.0, rel=0.03)


def test_a_pause_is_seen_in_its_slice() -> None:
    calls = back_to_back(0, 10 * MS, 10) + back_to_back(200 * MS, 10 * MS, 11)
    found = throughput.rates([calls], 1)
    assert min(found) == 0.0
    assert max(found) == pytest.approx(100.0)


def test_instances_that_never_ran_together_have_no_sum() -> None:
    with pytest.raises(CellFailed, match="never ran at the same time"):
        throughput.rates([back_to_back(0, MS, 5), back_to_back(100 * MS, MS, 5)], 1)
