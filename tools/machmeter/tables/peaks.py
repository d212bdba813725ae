"""The highest rates of a machine, as its newest measurement of them says, and the share of them that a cell reaches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from machmeter.measure import peak
from machmeter.measure.evidence_shape import Record, Run
from machmeter.store.values import ResultFile, Value
from machmeter.workload.names import PEAK, peak_key

PRECISIONS = peak.PRECISIONS

_PRODUCT = f"{PEAK}.track_matrix_product_peak"
_BANDWIDTH = f"{PEAK}.track_memory_bandwidth"
BENCHMARKS = (_PRODUCT, _BANDWIDTH)
MEMORY = "memory"


def newest(files: Iterable[ResultFile]) -> dict[str, float]:
    """Return the newest peak of each precision, in operations per second, and of "memory", in bytes per second.

    The files must be of one machine. What was not measured, or failed, is left out.
    """
    found: dict[str, Value] = {}
    for file in files:
        for (benchmark, parameters), value in file.tried:
            what = MEMORY if benchmark == _BANDWIDTH else parameters[0] if benchmark == _PRODUCT and parameters else ""
            if not what or value.number is None or value.number <= 0.0:
                continue
            if what not in found or value.started > found[what].started:
                found[what] = value
    return {what: value.number for what, value in found.items() if value.number is not None}


def kind(precision: str) -> str:
    """Return the precision whose peak bounds `precision`: dynamic int8 multiplies in int8 as well."""
    return precision.removesuffix("-dynamic")


def share(operations_per_image: float | None, images_per_second: float | None, peak_rate: float | None) -> float | None:
    """Return operations per image × images/s over `peak_rate` (operations per second), None where one is unknown.

    Operations are those of the plain algorithm. One that needs fewer (Winograd's convolution) can come out above 1.
    """
    if not operations_per_image or not images_per_second or not peak_rate:
        return None
    return operations_per_image * images_per_second / peak_rate


def records(runs: Iterable[Run]) -> dict[str, Record]:
    """Return what the newest of `runs` (of the evidence) put on record of each precision, and of "memory"."""
    found: dict[str, Record] = {}
    for run in sorted(runs, key=lambda run: run.started):
        for what in (*PRECISIONS, MEMORY):
            for record in run.cells.get(peak_key(what), {}).values():
                found[what] = record
    return found


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a machine can do at best, how that was measured, and how many images/s of each model that would be."""

    rates: Mapping[str, float]  # operations per second by precision; "memory" in bytes per second
    how: Mapping[str, str]  # kernel and size, or why there is no rate
    operations: Mapping[str, float | None]  # per image, by model; None where they cannot be counted

    def images_per_second(self, model: str, precision: str) -> float | None:
        """Return the throughput at which `model` would use all of the peak in `precision`."""
        rate, operations = self.rates.get(precision), self.operations.get(model)
        return rate / operations if rate and operations else None

    def as_json(self) -> dict[str, object]:
        """Return the same as plain data."""
        return {
            "operations_per_second": {name: self.rates[name] for name in PRECISIONS if name in self.rates},
            "bytes_per_second": self.rates.get(MEMORY),
            "how": dict(self.how),
            "models": {
                model: {
                    "operations_per_image": operations,
                    "images_per_second_at_peak": {name: self.images_per_second(model, name) for name in PRECISIONS},
                }
                for model, operations in self.operations.items()
            },
        }


def limits(files: Iterable[ResultFile], runs: Iterable[Run], operations: Mapping[str, float | None]) -> Limits:
    """Return the limits of the machine whose result `files` and `runs` of evidence these are."""
    found = records(runs)
    how = {what: _how(what, record) for what, record in found.items()}
    return Limits(rates=newest(files), how=how, operations=operations)


def _how(what: str, record: Record) -> str:
    if record.status != "ok":
        return f"{record.status}: {record.reason}"
    size = record.size or 0
    large = f"arrays of {size / 1e6:.0f} MB" if what == MEMORY else f"{size} × {size}"
    return f"{record.kernel}, {large}"


def lines(of_machine: Limits) -> list[str]:
    """Return what `machmeter peak` prints."""
    text = [f"{'':<8}{'Gop/s':>9}{'GMAC/s':>9}"]
    for precision in PRECISIONS:
        rate = of_machine.rates.get(precision)
        numbers = f"{rate / 1e9:>9.0f}{rate / 2e9:>9.0f}" if rate else f"{'–':>9}{'–':>9}"
        text.append(f"{precision:<8}{numbers}  {of_machine.how.get(precision, '')}".rstrip())
    bandwidth = f"{of_machine.rates[MEMORY] / 1e9:.1f} GB/s" if MEMORY in of_machine.rates else "–"
    text.append(f"{MEMORY:<8}{bandwidth:>18}  {of_machine.how.get(MEMORY, '')}".rstrip())
    text += ["", f"{'':<20}{'GMAC/image':>10}   images/s at the peak: {'  '.join(f'{name:>7}' for name in PRECISIONS)}"]
    for model, operations in of_machine.operations.items():
        counted = f"{operations / 2e9:.2f}" if operations else "–"
        speeds = [of_machine.images_per_second(model, precision) for precision in PRECISIONS]
        shown = "  ".join(f"{'–' if speed is None else f'{speed:.1f}':>7}" for speed in speeds)
        text.append(f"{model:<20}{counted:>10}{'':<25}{shown}")
    return text
