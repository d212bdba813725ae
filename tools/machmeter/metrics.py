"""Unit and direction of every metric: the only place where they are written down.

asv knows units but no directions, so whatever judges or draws a result asks here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Direction = Literal["lower", "higher"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One measured quantity. `benchmark` is the method's name in asv's results."""

    benchmark: str
    title: str
    unit: str  # as asv shows it
    better: Direction
    formula: str = ""  # how it is had from what is measured, in words a reader can check


# What every process that opens a cell finds, whatever else it measures.
OPENINGS = ("track_load_time", "track_first_inference_time")

METRICS: tuple[Metric, ...] = (
    Metric(
        benchmark="time_forward",
        title="latency of one forward call",
        unit="seconds",
        better="lower",
        formula="median seconds of a call on one batch, after warm-up with its shape; the output is in host memory",
    ),
    Metric(
        benchmark="peakmem_forward",
        title="peak resident memory",
        unit="bytes",
        better="lower",
        formula="highest resident memory of a process that loads the configuration and runs it",
    ),
    Metric(
        benchmark="track_prepare_time",
        title="cold preparation",
        unit="seconds",
        better="lower",
        formula="seconds to export, quantize and compile from nothing, once per machine",
    ),
    Metric(
        benchmark="track_load_time",
        title="load of a prepared artifact",
        unit="seconds",
        better="lower",
        formula="seconds from a prepared artifact on disk to a session that can be called",
    ),
    Metric(
        benchmark="track_first_inference_time",
        title="first call",
        unit="seconds",
        better="lower",
        formula="seconds of the first call of a fresh process",
    ),
    Metric(
        benchmark="track_artifact_size",
        title="artifact size",
        unit="bytes",
        better="lower",
        formula="bytes of what the recipe leaves on disk",
    ),
    Metric(
        benchmark="track_top1_agreement",
        title="top-1 agreement with fp32",
        unit="fraction",
        better="higher",
        formula="images with the same first class as fp32 eager / images, on images that no calibration saw",
    ),
    Metric(
        benchmark="track_sqnr",
        title="signal to quantization noise",
        unit="dB",
        better="higher",
        formula="10 log10(Σ(r - m)² / Σ(r - o)²): outputs o, fp32 outputs r, class means over images m; at most 120",
    ),
    Metric(
        benchmark="track_throughput",
        title="throughput",
        unit="images/s",
        better="higher",
        formula="sum over instances of the images each finished / the seconds while all of them ran",
    ),
    Metric(
        benchmark="track_throughput_offline",
        title="offline throughput",
        unit="images/s",
        better="higher",
        formula="images finished / seconds, with requests side by side and nobody waiting for one answer",
    ),
    Metric(
        benchmark="track_device_memory",
        title="peak memory on the device",
        unit="bytes",
        better="lower",
        formula="highest memory of the process on the GPU, its CUDA context included where the driver tells it",
    ),
    Metric(
        benchmark="track_matrix_product_peak",
        title="peak of a matrix product",
        unit="operations/s",
        better="higher",
        formula="2 n³ / seconds of the fastest kernel and size found for the precision",
    ),
    Metric(
        benchmark="track_memory_bandwidth",
        title="memory bandwidth",
        unit="bytes/s",
        better="higher",
        formula="bytes read and written by an addition of large arrays / seconds",
    ),
    Metric(
        benchmark="time_matrix_product",
        title="fixed NumPy matrix product",
        unit="seconds",
        better="lower",
        formula="median seconds of one product of fixed size: tells a slow host from slow code",
    ),
)

_BY_BENCHMARK = {metric.benchmark: metric for metric in METRICS}

# Fewer samples than this cannot carry the percentile: 1 / (1 - q) samples lie beyond it on average.
_SAMPLES_NEEDED = {0.50: 1, 0.95: 20, 0.99: 100}


def metric(benchmark: str) -> Metric:
    """Return the metric that the benchmark method `benchmark` measures. Raises KeyError if there is none."""
    return _BY_BENCHMARK[benchmark]


def percentile(samples: Sequence[float], q: float) -> float | None:
    """Return the q-quantile of `samples` (linear interpolation), or None where there are too few of them.

    The 95th percentile needs 20 samples and the 99th needs 100; the median needs one.
    """
    if len(samples) < _SAMPLES_NEEDED[q]:
        return None
    ordered = sorted(samples)
    position = q * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (ordered[above] - ordered[below]) * (position - below))


def images_per_second(seconds_per_call: float, batch: int) -> float:
    """Return the throughput in images per second of one call that handles `batch` images."""
    return batch / seconds_per_call
