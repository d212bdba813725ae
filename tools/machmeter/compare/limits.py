"""How often a metric must be measured to be judged, and what counts as a change where `metrics.py` does not say."""

from __future__ import annotations

from collections.abc import Mapping

from machmeter import metrics, units
from machmeter.metrics import Limit

# Fewer pairs of processes than this say nothing: their own scatter is not known.
LEAST_PAIRS = 6

# With this many a change of 5 % is found (docs/comparisons.md): what to ask for where there were too few.
ENOUGH_PAIRS = 8

# Two sides measured one after the other: the machine alone has made 17 % between such blocks.
BETWEEN_BLOCKS = 0.25

# A geometric mean of fewer cells is a cell's own number under another name.
LEAST_CELLS = 3

CERTAINTY = 0.95
FALSE_DISCOVERIES = 0.05

# A finding that is as sure as this needs no more rounds.
CONFIRMED = 0.005


# What counts where nobody said it of the metric itself: half a point and one decibel are what a reader would notice.
_OF_UNITS: Mapping[str, Limit] = {
    "bytes": Limit(relative=0.01, once=0.03),
    "fraction": Limit(absolute=0.005),
    "dB": Limit(absolute=1.0),
}
_OF_OTHERS = Limit(relative=0.05)


def follows_the_machine(metric: str, unit: str) -> bool:
    """Return whether a machine that becomes slower moves `metric`: not sizes, memory and shares of right answers."""
    found = limit(metric, units.base(unit)[1])
    return not (found.exact or found.absolute or units.base(unit)[1] in ("bytes", "fraction", "dB"))


def is_repeated(metric: str, unit: str) -> bool:
    """Return whether every round measures `metric` anew, so that more rounds say more of it."""
    return metric.partition("_")[0] in ("time", "timeraw") or units.is_rate(unit)


def cannot_be_negative(unit: str) -> bool:
    """Return whether a number in `unit` below zero is no measurement: times, sizes, shares and rates."""
    return units.base(unit)[1] in ("seconds", "bytes", "fraction") or units.is_rate(unit)


def limit(metric: str, unit: str) -> Limit:
    """Return what counts as a change of `metric`; of an unknown one, by its base `unit`."""
    known = next((item.limit for item in metrics.METRICS if item.benchmark == metric), None)
    return known or _OF_UNITS.get(unit, _OF_OTHERS)
