"""A comparison as text for a terminal: failures first, then what got worse, then what got better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from machmeter import metrics
from machmeter.compare import figures
from machmeter.compare.documents import Comparison, Described, Finding, Lone
from machmeter.text import two_numbers
from machmeter.text.inert import plain
from machmeter.text.numbers import plural, value

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
_LONGEST = 1500  # characters of a line that are shown


def print_comparison(found: Comparison, console: Console) -> None:
    """Print everything that a reader must know, the result last."""
    for line in _heads(found):
        _say(line, console)
    for reason in found.incomparable:
        _say(f"not comparable: {reason}", console, "red")
    if found.shift:
        _say(
            f"the machine itself moved: {found.shift.control} by a factor of {found.shift.ratio:.3f} "
            f"({found.shift.low:.3f} to {found.shift.high:.3f}); of timings only what changed by more is judged",
            console,
            "yellow",
        )
    _print_lone([item for item in found.lone if item.kind == "failed"], console, len(found.lone))
    for verdict, items in groupby(found.findings, key=lambda item: item.verdict):
        if verdict in _STYLES:
            _print_findings(verdict, list(items), console)
    _print_undecided(found.findings, console)
    _print_lone([item for item in found.lone if item.kind != "failed"], console, _LISTED)
    console.print()
    for line in [*_packages(found), *_means(found)]:
        _say(line, console)
    for note in found.notes:
        _say(f"note: {note}", console, "yellow")
    _say(_total(found), console, "bold")


def _say(line: str, console: Console, style: str = "", *, indent: str = "") -> None:
    """Print a line of text that others may have written: what would move the cursor or turn the text is named."""
    text = Text(indent + plain(line, _LONGEST))
    console.print(text, style=style, highlight=False, soft_wrap=True)


def _heads(found: Comparison) -> list[str]:
    how = "in turn" if found.interleaved else "one after the other"
    rounds = f", {plural(found.rounds, 'round')} measured {how}" if found.rounds else ""
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
    rows = [
        [plain(item.cell), plain(_title(item.metric)), *_amounts(item), _change(item), _interval(item)]
        for item in items
    ]
    titles = ["cell", "metric", "base", "head", "ratio", "95 %"]
    room = console.width - sum(max(len(row[place]) for row in [titles, *rows]) + 1 for place in range(1, len(titles)))
    grid = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    grid.add_column(titles[0], overflow="fold", ratio=1)
    grid.add_column(titles[1], no_wrap=True)
    for title in titles[2:]:
        grid.add_column(title, justify="right", no_wrap=True)
    for cell, *others in rows:
        grid.add_row(Text(_broken(cell, room)), *map(Text, others))
    console.print(Text(f"\n{verdict}: {len(items)}", style=_STYLES[verdict]))
    console.print(grid)


def _broken(cell: str, room: int) -> str:
    """Return a cell's name in two lines where it does not fit into `room`: what runs it, and what is run."""
    owner, opening, params = cell.partition("(")
    backend, dot, model = owner.rpartition(".")
    return f"{backend}{dot}\n{model}{opening}{params}" if len(cell) > room and dot else cell


def _amounts(item: Finding) -> tuple[str, str]:
    """Return both values as every table of machmeter writes them."""
    return plain(value(item.base, item.unit), 40), plain(value(item.head, item.unit), 40)


def _change(item: Finding) -> str:
    """Return the ratio; of shares and decibels the difference, as their ratio says nothing."""
    told = two_numbers.difference(item.head - item.base, item.unit)
    return told or (f"{item.ratio:.3f}" if item.ratio is not None else "–")


def _interval(item: Finding) -> str:
    if two_numbers.is_told_as_difference(item.unit):
        return figures.interval_of_difference(item) or "–"
    return f"{item.low:.3f}–{item.high:.3f}" if item.low is not None and item.high is not None else "–"


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
        _say(f"{verdict}: {metric} of {plural(count, 'cell')}{f': {words}' if words else ''}", console, "yellow")
    _more(len(reasons) - _LISTED, console)


def _print_lone(lone: list[Lone], console: Console, most: int) -> None:
    for kind, items in groupby(lone, key=lambda item: item.kind):
        some = list(items)
        console.print(Text(f"\n{_HEADINGS[kind]}: {len(some)}", style="red" if kind == "failed" else "yellow"))
        for item in some[:most]:
            reason = f": {item.reason}" if item.reason else ""
            _say(f"{item.cell} {_title(item.metric)}{reason}", console, indent="  ")
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
        f"geometric mean of {_title(item.metric)}: {item.ratio:.3f} over {plural(item.cells, 'judged cell')}"
        for item in found.means
    ]


def _total(found: Comparison) -> str:
    counts = Counter(str(item.verdict) for item in found.findings)
    failed = sum(item.kind == "failed" for item in found.lone)
    parts = [f"{count} {verdict}" for verdict, count in counts.items()]
    compared = f"{len(found.findings)} compared" + (f" ({', '.join(parts)})" if parts else "")
    told = "; ".join([figures.result(found), *figures.open_ones(found)])
    return f"{told}: {compared}" + (f", {failed} failed" if failed else "")


def _title(metric: str) -> str:
    try:
        known = metrics.metric(metric)
    except KeyError:
        return metric
    return known.short or known.title
