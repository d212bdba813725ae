"""How a comparison writes its numbers: values with units, changes with intervals, in Markdown that is inert."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from machmeter import backends, metrics
from machmeter.compare.documents import Comparison, Difference, Finding
from machmeter.text import numbers, two_numbers
from machmeter.text.inert import code
from machmeter.text.numbers import grouped


def metric(name: str) -> str:
    """Return what a reader calls the metric `name`."""
    return next((known.title for known in metrics.METRICS if known.benchmark == name), "") or code(name, cell=True)


def value(number: float, unit: str) -> str:
    """Return a number with its unit."""
    return numbers.value(number, unit) if _is_ours(unit) else code(f"{numbers.digits(number)} {unit}", 60, cell=True)


def words(text: str, unit: str) -> str:
    """Return words that `two_numbers` said of numbers in `unit`, which may be text of others."""
    return text if _is_ours(unit) else code(text, cell=True)


def _is_ours(unit: str) -> bool:
    """Return whether `unit` is no text of others."""
    return unit in ("seconds", "bytes", "") or any(metric.unit == unit for metric in metrics.METRICS)


def change(finding: Finding) -> str:
    """Return by how much head differs from base, with the interval, or why there is none."""
    if difference := two_numbers.difference(finding.head - finding.base, finding.unit):
        return f"{difference} ({interval_of_difference(finding) or _without_interval(finding)})"
    if finding.ratio is None:
        return code(finding.words or two_numbers.words(finding.base, finding.head, finding.unit), cell=True)
    if finding.low is None or finding.high is None:
        return f"{ratio(finding.ratio)} ({_without_interval(finding)})"
    return f"{ratio(finding.ratio)} ({interval(finding.ratio, finding.low, finding.high)})"


def interval_of_difference(finding: Finding) -> str:
    """Return the interval of a ratio in the unit of what it is the ratio of; "" where there is none."""
    if finding.low is None or finding.high is None:
        return ""
    ends = [two_numbers.difference(finding.base * (end - 1), finding.unit) for end in (finding.low, finding.high)]
    return " to ".join(end for end in ends if end)


def _without_interval(finding: Finding) -> str:
    return "no interval" if finding.pairs > 1 else "one value each"


def ratio(found: float) -> str:
    """Return a ratio as people say it: "+4.2 %", "× 3.40"."""
    return two_numbers.factor(found)


def interval(found: float, low: float, high: float) -> str:
    """Return the interval of a ratio, written as `ratio` writes the ratio itself."""
    if found < two_numbers.TIMES:
        return f"{two_numbers.percent(low).removesuffix(' %')} to {two_numbers.percent(high)}"
    return f"{numbers.digits(low, 3)} to {numbers.digits(high, 3)}"


def difference(package: Difference) -> str:
    """Return a library with both versions, as plain text."""
    return f"{package.name} {package.base or 'none'} → {package.head or 'none'}"


def explaining(cell: str, packages: Sequence[Difference]) -> list[Difference]:
    """Return those of the libraries that differ which the backend of `cell` runs on."""
    parts = cell.split("(", 1)[0].split(".")
    known = backends.distributions()
    runtimes = {name for part in parts[:-1] for name in known.get(part, ())}
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
