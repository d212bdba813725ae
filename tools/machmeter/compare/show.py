"""A comparison as text for a terminal: failures first, then what got worse, then what got better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from machmeter import metrics
from machmeter.compare.model import Comparison, Described, Finding, Lone

_STYLES = {"regression": "red", "improvement": "green", "changed": "yellow"}
_HEADINGS = {
    "failed": "failed in head, worked in base",
    "refused": "not compared",
    "failing": "failed in head",
    "removed": "only in base",
    "fixed": "failed in base, works in head",
    "new": "only in head",
    "n/a": "not available on either side",
}
_LISTED = 20  # of what was not judged or cannot be compared, by kind; `--json` has all
_TITLES = {
    "time_forward": "latency",
    "peakmem_forward": "memory",
    "track_load_time": "load",
    "track_top1_agreement": "top-1",
    "track_sqnr": "SQNR",
}


def print_comparison(found: Comparison, console: Console) -> None:
    """Print everything that a reader must know, the result last."""
    for line in _heads(found):
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    for reason in found.incomparable:
        console.print(f"not comparable: {reason}", style="red", highlight=False, soft_wrap=True, markup=False)
    if found.shift:
        console.print(
            f"the machine itself moved: {found.shift.control} by a factor of {found.shift.ratio:.3f} "
            f"({found.shift.low:.3f} to {found.shift.high:.3f}); nothing finer is judged",
            style="yellow",
            highlight=False,
            soft_wrap=True,
            markup=False,
        )
    _print_lone([item for item in found.lone if item.kind == "failed"], console, len(found.lone))
    for verdict, items in groupby(found.findings, key=lambda item: item.verdict):
        if verdict in _STYLES:
            _print_findings(verdict, list(items), console)
    _print_undecided(found.findings, console)
    _print_lone([item for item in found.lone if item.kind != "failed"], console, _LISTED)
    console.print()
    for line in [*_packages(found), *_means(found)]:
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    for note in found.notes:
        console.print(f"note: {note}", style="yellow", highlight=False, soft_wrap=True, markup=False)
    console.print(_total(found), style="bold", highlight=False, soft_wrap=True, markup=False)


def _heads(found: Comparison) -> list[str]:
    how = "in turn" if found.interleaved else "one after the other"
    rounds = f", {found.rounds} rounds measured {how}" if found.rounds else ""
    return [
        f"machine {found.machine}{rounds}",
        f"base {_described(found.base)}",
        f"head {_described(found.head)}",
    ]


def _described(side: Described) -> str:
    parts = [side.label]
    if side.commit and not side.label.startswith(side.commit[:7]):
        parts.append(side.commit[:8])
    if side.environment and side.environment != side.label:
        parts.append(f"in {side.environment}")
    return " ".join(parts) + (f": {side.error}" if side.error else "")


def _print_findings(verdict: str, items: list[Finding], console: Console) -> None:
    grid = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    grid.add_column("cell", overflow="fold", ratio=1)
    grid.add_column("metric", no_wrap=True)
    for title in ("base", "head", "ratio", "95 %"):
        grid.add_column(title, justify="right", no_wrap=True)
    for item in items:
        low, high = item.low, item.high
        grid.add_row(
            Text(item.cell),
            Text(_title(item.metric)),
            _amount(item.base, item.unit),
            _amount(item.head, item.unit),
            f"{item.ratio:.3f}" if item.ratio is not None else "–",
            f"{low:.3f}–{high:.3f}" if low is not None and high is not None else item.words or "–",
        )
    console.print(Text(f"\n{verdict}: {len(items)}", style=_STYLES[verdict]))
    console.print(grid)


def _print_undecided(findings: Iterable[Finding], console: Console) -> None:
    """Print what nothing can be said of: once for each reason."""
    reasons = Counter(
        (item.verdict, _title(item.metric), item.words)
        for item in findings
        if item.verdict in ("undecided", "not judged")
    )
    if reasons:
        console.print()
    for (verdict, metric, words), count in reasons.most_common(_LISTED):
        line = f"{verdict}: {metric} of {_cells(count)}{f': {words}' if words else ''}"
        console.print(line, style="yellow", highlight=False, soft_wrap=True, markup=False)
    _more(len(reasons) - _LISTED, console)


def _print_lone(lone: list[Lone], console: Console, most: int) -> None:
    for kind, items in groupby(lone, key=lambda item: item.kind):
        some = list(items)
        console.print(Text(f"\n{_HEADINGS[kind]}: {len(some)}", style="red" if kind == "failed" else "yellow"))
        for item in some[:most]:
            reason = f": {item.reason}" if item.reason else ""
            console.print(Text(f"  {item.cell} {_title(item.metric)}{reason}"), highlight=False, soft_wrap=True)
        _more(len(some) - most, console)


def _more(count: int, console: Console) -> None:
    if count > 0:
        console.print(f"  and {count} more: --json has all", highlight=False)


def _packages(found: Comparison) -> list[str]:
    some = [
        f"{item.name} {item.base or 'none'} → {item.head or 'none'}{'' if item.pinned else ' (not pinned)'}"
        for item in found.packages[:_LISTED]
    ]
    more = f", {len(found.packages) - _LISTED} more" if len(found.packages) > _LISTED else ""
    return [f"libraries: {', '.join(some)}{more}"] if some else []


def _means(found: Comparison) -> list[str]:
    return [
        f"geometric mean of {_title(item.metric)}: {item.ratio:.3f} over {_cells(item.cells)} that both sides have"
        for item in found.means
    ]


def _total(found: Comparison) -> str:
    counts: Counter[Any] = Counter(item.verdict for item in found.findings)
    failed = sum(item.kind == "failed" for item in found.lone)
    parts = [f"{count} {verdict}" for verdict, count in counts.items()]
    parts += [f"{failed} failed"] if failed else []
    return f"{found.result}: {len(found.findings)} compared" + (f" ({', '.join(parts)})" if parts else "")


def _cells(count: int) -> str:
    return f"{count} cell{'' if count == 1 else 's'}"


def _title(metric: str) -> str:
    if metric in _TITLES:
        return _TITLES[metric]
    try:
        return metrics.metric(metric).title
    except KeyError:
        return metric


def _amount(value: float, unit: str) -> str:
    """Return a value with a unit that suits it."""
    if unit == "seconds":
        for factor, name in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
            if abs(value) * factor >= 1.0:
                return f"{value * factor:.4g} {name}"
        return f"{value * 1e9:.4g} ns" if value else "0 s"
    if unit == "bytes":
        return f"{value / 1e6:.4g} MB" if abs(value) >= 1e5 else f"{value:.6g} bytes"
    return f"{value:.4g}{'' if unit in ('', 'fraction') else f' {unit}'}"
