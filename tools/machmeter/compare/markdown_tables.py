"""The tables of a comparison's comment: what changed, what failed, what was not judged, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from machmeter.compare import figures
from machmeter.compare.documents import Comparison, Difference, Finding, Lone
from machmeter.text.inert import code
from machmeter.text.numbers import grouped, plural
from machmeter.text.shorten import Block

_SHOWN = 40  # rows of a table that are not folded
_CHANGES = ("regression", "improvement", "changed")


def of_findings(
    title: str, findings: Sequence[Finding], row: Callable[[Finding], list[str]], *, folded: bool = False,
    most: int | None = None,
) -> list[Block]:  # fmt: skip
    """Return a table with a line for each finding, as `row` writes it."""
    columns = ["cell", "metric", "base", "head", "change (95 % interval)", "note"]
    return _grid(title, columns, [row(item) for item in findings], right=(2, 3, 4), folded=folded, most=most)


def of_lone(lone: dict[str, list[Lone]], titles: Iterable[tuple[str, str]], *, folded: bool = False) -> list[Block]:
    """Return a table for each kind, one row for all metrics of a cell that have the same reason."""
    blocks = []
    for kind, title in titles:
        by_reason: dict[tuple[str, str], list[str]] = {}
        for item in lone.get(kind, ()):
            by_reason.setdefault((item.cell, item.reason), []).append(figures.metric(item.metric))
        rows = [
            [code(cell, cell=True), _few(list(dict.fromkeys(names))), code(reason, 240, cell=True)]
            for (cell, reason), names in by_reason.items()
        ]
        blocks += _grid(title, ["cell", "metrics", "reason"], rows, folded=folded)
    return blocks


def _few(names: Sequence[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def not_judged(findings: Sequence[Finding]) -> list[Block]:
    """Return what was not judged, by reason: it is mostly the same for all."""
    reasons: dict[str, list[Finding]] = {}
    for item in findings:
        reasons.setdefault(item.words, []).append(item)
    rows = [
        [
            grouped(len(some)),
            code(reason, 240, cell=True),
            ", ".join(code(item.cell, 80, cell=True) for item in some[:3]),
        ]
        for reason, some in reasons.items()
    ]
    return _grid(f"Not judged: {plural(len(findings), 'number')}", ["numbers", "reason", "such as"], rows, folded=True)


def _grid(
    title: str, columns: list[str], rows: list[list[str]], *, right: Sequence[int] = (), folded: bool = False,
    most: int | None = None,
) -> list[Block]:  # fmt: skip
    """Return a table, without its last column where no row has anything there; nothing where it has no rows."""
    if not rows:
        return []
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    titled = title if ":" in title else f"{title} ({grouped(len(rows))})"
    rule = "|".join("--:" if place in right else "---" for place in range(len(columns)))
    head = f"| {' | '.join(columns)} |\n|{rule}|"
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if folded:
        return [fold(titled, head, lines, most)]
    first, others = lines[:_SHOWN], lines[_SHOWN:]
    blocks = [Block(before=f"#### {titled}", head=f"\n{head}", rows=first)]
    return blocks + ([fold(f"{title}: {grouped(len(others))} more", head, others)] if others else [])


def fold(title: str, head: str, rows: Sequence[str], most: int | None = None) -> Block:
    """Return rows that are seen only when `title` is opened."""
    return Block(
        before=f"<details><summary>{title}</summary>\n",
        head=head,
        rows=rows,
        after="\n</details>",
        most=most,
    )


def row_of(findings: Sequence[Finding], found: Comparison) -> Callable[[Finding], list[str]]:
    """Return what writes the row of one of the `findings` of `found`."""
    return partial(_row, packages=_telling(findings, found), others=_opposites(findings))


def _telling(findings: Sequence[Finding], found: Comparison) -> list[Difference]:
    """Return the libraries to name beside rows: none where all of them may explain every row, which is said above."""
    cells = {item.cell for item in findings if item.verdict in _CHANGES}
    all_alike = all(len(figures.explaining(cell, found.packages)) == len(found.packages) for cell in cells)
    return [] if all_alike and len(cells) > 1 else list(found.packages)


def _row(item: Finding, *, packages: Sequence[Difference], others: dict[tuple[str, str], list[str]]) -> list[str]:
    notes = [code(figures.difference(package), 80, cell=True) for package in figures.explaining(item.cell, packages)]
    told = item.verdict in ("regression", "improvement")
    if told and (names := others.get((item.cell, item.verdict))):
        notes.append(f"{'but worse' if item.verdict == 'improvement' else 'but better'}: {_few(names)}")
    if item.verdict == "undecided" and item.words:
        notes = [code(item.words, cell=True)]
    return [
        code(item.cell, cell=True),
        figures.metric(item.metric),
        figures.value(item.base, item.unit),
        figures.value(item.head, item.unit),
        figures.change(item),
        "; ".join(notes) if told or item.verdict in ("changed", "undecided") else "",
    ]


def _opposites(findings: Iterable[Finding]) -> dict[tuple[str, str], list[str]]:
    """Return by cell and verdict which metrics of the same cell went the other way."""
    opposite = {"regression": "improvement", "improvement": "regression"}
    found: dict[tuple[str, str], list[str]] = {}
    for item in findings:
        if item.verdict in opposite:
            found.setdefault((item.cell, opposite[item.verdict]), []).append(figures.metric(item.metric))
    return found
