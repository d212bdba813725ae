"""How a comparison writes its numbers: values with units, changes with intervals, in Markdown that is inert."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from machmeter import metrics
from machmeter.changes.judge import TIMES
from machmeter.compare.documents import Comparison, Difference, Finding
from machmeter.text import numbers
from machmeter.text.inert import code
from machmeter.text.numbers import grouped

# What a backend runs on: a change of these versions may explain a change of its cells.
_RUNTIMES: dict[str, tuple[str, ...]] = {
    "eager": ("torch", "torchvision", "timm"),
    "inductor": ("torch", "torchvision", "timm", "triton"),
    "torchao": ("torchao", "torch"),
    "ipex": ("intel-extension-for-pytorch", "torch"),
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu", "onnx"),
    "openvino": ("openvino", "nncf", "onnx"),
    "tensorrt": ("tensorrt", "tensorrt-cu12", "tensorrt-cu13", "onnx"),
}


def metric(name: str) -> str:
    """Return what a reader calls the metric `name`."""
    return next((known.title for known in metrics.METRICS if known.benchmark == name), "") or code(name, cell=True)


def value(number: float, unit: str) -> str:
    """Return a number with its unit."""
    known = {metric.unit for metric in metrics.METRICS} | {"seconds", "bytes", ""}
    return numbers.value(number, unit) if unit in known else code(f"{numbers.digits(number)} {unit}", 60, cell=True)


def change(finding: Finding) -> str:
    """Return by how much head differs from base, with the interval, or why there is none."""
    difference = finding.head - finding.base
    if finding.unit == "fraction" and finding.low is None:
        return f"{numbers.signed(100 * difference)} points (one value each)"
    if finding.unit == "dB" and finding.low is None:
        return f"{numbers.signed(difference)} dB (one value each)"
    if finding.ratio is None:
        return code(finding.words or f"from {finding.base:.6g} to {finding.head:.6g}", cell=True)
    if finding.low is None or finding.high is None:
        return (
            f"{ratio(finding.ratio)} (no interval)" if finding.pairs > 1 else f"{ratio(finding.ratio)} (one value each)"
        )
    return f"{ratio(finding.ratio)} ({interval(finding.ratio, finding.low, finding.high)})"


def ratio(found: float) -> str:
    """Return a ratio as people say it: "+4.2 %", "× 3.4"."""
    return f"{numbers.signed(100 * (found - 1))} %" if found < TIMES else f"× {numbers.digits(found, 3)}"


def interval(found: float, low: float, high: float) -> str:
    """Return the interval of a ratio, written as `ratio` writes the ratio itself."""
    if found < TIMES:
        return f"{numbers.signed(100 * (low - 1))} to {numbers.signed(100 * (high - 1))} %"
    return f"{numbers.digits(low, 3)} to {numbers.digits(high, 3)}"


def difference(package: Difference) -> str:
    """Return a library with both versions, as plain text."""
    return f"{package.name} {package.base or 'none'} → {package.head or 'none'}"


def explaining(cell: str, packages: Sequence[Difference]) -> list[Difference]:
    """Return those of the libraries that differ which the backend of `cell` runs on."""
    parts = cell.split("(", 1)[0].split(".")
    runtimes = {name for part in parts[:-1] for name in _RUNTIMES.get(part, ())}
    return [package for package in packages if package.name in runtimes]


def result(found: Comparison) -> str:
    """Return the result in words: that there is none is only said where everything was judged."""
    return "no regression found" if found.result == "no regression" and open_ones(found) else found.result


def open_ones(found: Comparison) -> list[str]:
    """Return how much of what was compared nothing is known of: "4 of 5 undecided"."""
    counts = Counter(item.verdict for item in found.findings)
    whole = grouped(len(found.findings))
    return [
        f"{grouped(counts[verdict])} of {whole} {verdict}"
        for verdict in ("undecided", "not judged")
        if counts[verdict] and not found.incomparable
    ]
