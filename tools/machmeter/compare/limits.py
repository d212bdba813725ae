"""How large a change of each metric must be before anybody wants to hear of it, and how often it must be measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from machmeter import units

# Fewer pairs of processes than this say nothing: their own scatter is not known.
LEAST_PAIRS = 6

# With this many a change of 5 % is found (docs/statistics.md): what to ask for where there were too few.
ENOUGH_PAIRS = 8

# Two sides measured one after the other: the machine alone has made 17 % between such blocks.
BETWEEN_BLOCKS = 0.25

# A geometric mean of fewer cells is a cell's own number under another name.
LEAST_CELLS = 3

CERTAINTY = 0.95
FALSE_DISCOVERIES = 0.05

# A finding that is as sure as this needs no more rounds.
CONFIRMED = 0.005


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What counts as a change of one metric."""

    relative: float = 0.0  # of base
    absolute: float = 0.0  # in the metric's own unit, where a relative change says nothing
    exact: bool = False  # the same every time it is measured: one process is enough, and a p-value has no meaning
    once: float = 0.0  # relative change that counts where few processes measured it; 0: few are not enough

    def smallest(self, base: float, *, once: bool = False) -> float:
        """Return the smallest change that counts, relative to `base`."""
        if self.absolute:
            return self.absolute / abs(base) if base else 0.0
        return self.once if once and self.once else self.relative


LATENCY = Limit(relative=0.02)
_LIMITS: Mapping[str, Limit] = {
    "time_forward": LATENCY,
    "time_matrix_product": LATENCY,
    "track_throughput": LATENCY,
    "track_throughput_offline": LATENCY,
    "track_matrix_product_peak": LATENCY,
    "track_memory_bandwidth": LATENCY,
    # Loading reads files, and the first call fills caches: both scatter more, and are waited for once.
    "track_load_time": Limit(relative=0.05),
    "track_first_inference_time": Limit(relative=0.05),
    # Once per machine, and it takes minutes: nobody repeats it.
    "track_prepare_time": Limit(relative=0.10),
    # Processes of one cell differ by up to 0.5 %; a runtime that grows by a page more is no change.
    "peakmem_forward": Limit(relative=0.01, once=0.03),
    "track_artifact_size": Limit(relative=0.01, exact=True),
    # Half a point of the images, and one decibel: what a reader of a model card would notice.
    "track_top1_agreement": Limit(absolute=0.005, exact=True),
    "track_sqnr": Limit(absolute=1.0, exact=True),
}


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
    if metric in _LIMITS:
        return _LIMITS[metric]
    if unit == "bytes":
        return Limit(relative=0.01, once=0.03)
    return Limit(relative=0.05)
