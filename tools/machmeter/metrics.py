"""Everything that is known of a metric: unit, direction, what counts as a change, and how tables show it.

asv knows units but no directions, so whatever judges, draws or lists a result asks here. A metric with a `column` is in
the tables of terminal, JSON and site; one without is measured, stored, drawn and compared all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypedDict

Direction = Literal["lower", "higher"]
Table = Literal["cells", "ladder", "versions"]


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

    def least(self, base: float, *, once: bool = False) -> float:
        """Return the smallest difference from `base` that counts, in the metric's own unit."""
        return self.absolute or self.smallest(base, once=once) * abs(base)


@dataclass(frozen=True, kw_only=True)
class Column:
    """How tables show a metric."""

    key: str  # in a row and in JSON, with the unit
    heading: str  # over the column
    unit: str  # of the number that is shown
    title: str = ""  # where there is room for words; "": that of the metric
    one: float = 1.0  # of that unit in the metric's own
    digits: int | None = None  # behind the point; None: as many as a throughput of that size has
    tables: tuple[Table, ...] = ("cells",)  # whose rows, JSON and pages have it
    terminal: bool = True  # whether the tables of the terminal have it as well
    page: Literal["", "at first", "on request"] = "on request"  # where the page of a model shows it
    only_where_measured: bool = False  # no column where no row has a number
    order: int = 500  # among the columns of a table, ascending
    spare: int | None = 0  # a narrow terminal leaves out the smallest first; None: it never does
    words: str = ""  # a format for the number in a sentence, "" where sentences leave it out


OFFLINE = "track_throughput_offline"  # the most images per second, when nobody waits for one answer


class Samples(TypedDict):
    """What asv takes of a `track_*` method that has samples: each is of `number` measurements."""

    samples: list[float]
    number: int


class HasFacts(Protocol):
    """A record of the evidence: what was measured once is among its facts, by benchmark name."""

    @property
    def facts(self) -> Mapping[str, int | float | list[float]] | None:
        """Return the facts, None where there are none."""
        ...


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One measured quantity. `benchmark` is the method's name in asv's results."""

    benchmark: str
    title: str
    unit: str  # as asv shows it
    better: Direction
    formula: str = ""  # how it is had from what is measured, in words a reader can check
    short: str = ""  # where there is no room for the title
    evidence: str = ""  # the field of a record that has it; "": it is among the record's facts, by `benchmark`
    limit: Limit | None = None  # what counts as a change; None: its unit decides
    column: Column | None = None

    def recorded(self, record: HasFacts) -> float | None:
        """Return what a record of the evidence says of it, None where it says nothing."""
        found = getattr(record, self.evidence) if self.evidence else (record.facts or {}).get(self.benchmark)
        return float(found) if isinstance(found, int | float) else None


LATENCY = Limit(relative=0.02)

# What every process that opens a cell finds, whatever else it measures.
OPENINGS = ("track_load_time", "track_first_inference_time")

METRICS: tuple[Metric, ...] = (
    Metric(
        benchmark="time_forward",
        title="latency of one forward call",
        unit="seconds",
        better="lower",
        formula="median seconds of a call on one batch, after warm-up with its shape; the output is in host memory",
        short="latency",
        evidence="median_seconds",
        limit=LATENCY,
    ),
    Metric(
        benchmark="peakmem_forward",
        title="peak resident memory",
        unit="bytes",
        better="lower",
        formula="highest resident memory of a process that loads the configuration and runs it",
        short="memory",
        evidence="peak_resident_bytes",
        limit=Limit(relative=0.01, once=0.03),  # processes of a cell differ by up to 0.5 %; a page more is no change
        column=Column(
            key="peak_memory_mb",
            heading="peak MB",
            title="peak memory",
            unit="MB",
            one=1e6,
            digits=0,
            tables=("cells", "ladder", "versions"),
            page="at first",
            order=100,
            spare=30,
            words="{:.0f} MB",
        ),
    ),
    Metric(
        benchmark="track_prepare_time",
        title="cold preparation",
        unit="seconds",
        better="lower",
        formula="seconds to export, quantize and compile from nothing, once per machine",
        limit=Limit(relative=0.10),  # once per machine, and it takes minutes: nobody repeats it
        column=Column(key="prepare_s", heading="prepare s", unit="s", digits=1, terminal=False, page="", order=130),
    ),
    Metric(
        benchmark="track_load_time",
        title="load of a prepared artifact",
        unit="seconds",
        better="lower",
        formula="seconds from a prepared artifact on disk to a session that can be called",
        short="load",
        limit=Limit(relative=0.05),  # loading reads files: it scatters more
        column=Column(key="load_s", heading="load s", title="load", unit="s", digits=2, terminal=False, order=140),
    ),
    Metric(
        benchmark="track_first_inference_time",
        title="first call",
        unit="seconds",
        better="lower",
        formula="seconds of the first call of a fresh process",
        limit=Limit(relative=0.05),  # the first call fills caches
        column=Column(key="first_inference_s", heading="first call s", unit="s", digits=3, terminal=False, order=150),
    ),
    Metric(
        benchmark="track_artifact_size",
        title="artifact size",
        unit="bytes",
        better="lower",
        formula="bytes of what the recipe leaves on disk",
        limit=Limit(relative=0.01, exact=True),
    ),
    Metric(
        benchmark="track_top1_agreement",
        title="top-1 agreement with fp32",
        unit="fraction",
        better="higher",
        formula="images with the same first class as fp32 eager / images, on images that no calibration saw",
        short="top-1",
        limit=Limit(absolute=0.005, exact=True),  # half a point: what a reader would notice
        column=Column(
            key="top1_agreement",
            heading="top-1",
            title="top-1 agreement",
            unit="fraction",
            digits=3,
            tables=("cells", "ladder", "versions"),
            page="at first",
            order=80,
            spare=None,  # a speed without it says little
            words="top-1 {:.3f}",
        ),
    ),
    Metric(
        benchmark="track_sqnr",
        title="signal to quantization noise",
        unit="dB",
        better="higher",
        formula="10 log10(Σ(r - m)² / Σ(r - o)²): outputs o, fp32 outputs r, class means over images m; at most 120",
        short="SQNR",
        limit=Limit(absolute=1.0, exact=True),
        column=Column(
            key="sqnr_db",
            heading="SQNR dB",
            title="SQNR",
            unit="dB",
            digits=1,
            tables=("cells", "ladder", "versions"),
            page="at first",
            order=90,
            spare=50,
            words="SQNR {:.1f} dB",
        ),
    ),
    Metric(
        benchmark="track_throughput",
        title="throughput",
        unit="images/s",
        better="higher",
        formula="sum over instances of the images each finished / the seconds while all of them ran",
        limit=LATENCY,
    ),
    Metric(
        benchmark=OFFLINE,
        title="offline throughput",
        unit="images/s",
        better="higher",
        formula="images finished / seconds, with requests side by side and nobody waiting for one answer",
        limit=LATENCY,
        column=Column(
            key="offline_images_per_second",
            heading="offline",
            unit="images/s",
            only_where_measured=True,
            order=40,
            spare=60,
        ),
    ),
    Metric(
        benchmark="track_device_memory",
        title="peak memory on the device",
        unit="bytes",
        better="lower",
        formula="highest memory of the process on the GPU, its CUDA context included where the driver tells it",
        column=Column(
            key="device_memory_mb", heading="GPU MB", unit="MB", one=1e6, digits=0, terminal=False, page="", order=110
        ),
    ),
    Metric(
        benchmark="track_matrix_product_peak",
        title="peak of a matrix product",
        unit="operations/s",
        better="higher",
        formula="2 n³ / seconds of the fastest kernel and size found for the precision",
        limit=LATENCY,
    ),
    Metric(
        benchmark="track_memory_bandwidth",
        title="memory bandwidth",
        unit="bytes/s",
        better="higher",
        formula="bytes read and written by an addition of large arrays / seconds",
        limit=LATENCY,
    ),
    Metric(
        benchmark="time_matrix_product",
        title="fixed NumPy matrix product",
        unit="seconds",
        better="lower",
        formula="median seconds of one product of fixed size: tells a slow host from slow code",
        limit=LATENCY,
    ),
)

_SAMPLES_NEEDED = {0.50: 1, 0.95: 20, 0.99: 100}  # for a percentile: fewer have none beyond it on average


def metric(benchmark: str) -> Metric:
    """Return the metric that the benchmark method `benchmark` measures. Raises KeyError if there is none."""
    return {known.benchmark: known for known in METRICS}[benchmark]


def in_table(table: Table) -> list[tuple[Metric, Column]]:
    """Return the metrics that the rows of `table` have, with their columns, in order."""
    found = [(item, item.column) for item in METRICS if item.column and table in item.column.tables]
    return sorted(found, key=lambda pair: pair[1].order)


def percentile(samples: Sequence[float], q: float, *, ordered: bool = False) -> float | None:
    """Return the q-quantile of `samples` (linear interpolation), or None where there are too few of them.

    The 95th needs 20 samples and the 99th 100; the median one. What is `ordered` already is not sorted again.
    """
    if len(ascending := samples if ordered else sorted(samples)) < _SAMPLES_NEEDED[q]:
        return None
    below = int(position := q * (len(ascending) - 1))
    low, high = ascending[below], ascending[min(below + 1, len(ascending) - 1)]
    return float(low + (high - low) * (position - below))


def images_per_second(seconds_per_call: float, batch: int) -> float:
    """Return the throughput in images per second of one call that handles `batch` images."""
    return batch / seconds_per_call
