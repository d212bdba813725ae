"""A comparison as a comment on a pull request: calm, short, and inert whatever the measurements say.

Pure. Failures and regressions come first, then improvements; what explains and what did not change is folded. Text
from the measurements is shown as code (`inert`), and what is too long is shortened at a row (`fitting`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from machmeter.compare import figures
from machmeter.compare.documents import Comparison, Difference, Finding, Lone
from machmeter.text import inert
from machmeter.text.inert import code
from machmeter.text.numbers import grouped, plural
from machmeter.text.shorten import Block, fit, size

LIMIT = 60_000  # bytes: GitHub takes 65,536 characters

_SHOWN = 40  # rows of a table that are not folded
_UNCHANGED = 200  # rows without a change that are listed at most
_HOST = ("CPU", "GPU", "driver", "thread budget")  # facts that are named at once; the others are folded
_LABELS = ("regression", "improvement", "changed", "undecided", "not judged", "no change")
_CHANGES = ("regression", "improvement", "changed")
_FAILURES = ("failed", "removed")


@dataclass(frozen=True, kw_only=True)
class Unusable:
    """A machine whose measurements cannot be used: what they are called, and why."""

    name: str
    reason: str


Section = Comparison | Unusable


def render(comparison: Comparison, *, limit: int = LIMIT, link: str | None = None, head_now: str | None = None) -> str:
    """Return one comparison as Markdown of at most `limit` bytes of UTF-8.

    `link` is the address of the page with all numbers. `head_now` is the commit that the pull request's head is now;
    the text says so where that is not what was measured.
    """
    return render_all([comparison], limit=limit, link=link, head_now=head_now)


def render_all(
    sections: Sequence[Section], *, limit: int = LIMIT, link: str | None = None, head_now: str | None = None
) -> str:
    """Return the comparisons of several machines as one text, what needs attention first."""
    ordered = sorted(sections, key=_attention)
    texts = [_fitted(section, limit, link, head_now) for section in ordered]
    room, left = limit, len(ordered)
    for place in sorted(range(len(ordered)), key=lambda number: size(texts[number])):  # what is short leaves its room
        if size(texts[place]) + 2 > room // left:
            texts[place] = _fitted(ordered[place], room // left - 2, link, head_now)
        room, left = room - size(texts[place]) - 2, left - 1
    whole = "\n\n".join(texts)
    if size(whole) <= limit:
        return whole
    short = f"Machmeter: the comparison of {plural(len(sections), 'machine')} does not fit here."
    return f"{short} {inert.link('All numbers', link)}" if link else short


def _fitted(section: Section, limit: int, link: str | None, head_now: str | None) -> str:
    if isinstance(section, Unusable):
        return f"### Machmeter on {code(section.name)}: no usable measurements\n\n{code(section.reason, 400)}"
    titled = inert.link("all numbers", link) if link else None
    text = fit(_blocks(section, link, head_now), limit, titled)
    if size(text) <= limit:
        return text
    return "\n\n".join([_heading(section), titled or "The rest does not fit here."])


def _attention(section: Section) -> int:
    if isinstance(section, Unusable):
        return 1
    return ("regression", "could not judge", "no regression").index(section.result) * 2


# ------------------------------------------------------------------ what is said


def _blocks(found: Comparison, link: str | None, head_now: str | None) -> list[Block]:
    """Return the parts of one machine's comparison in the order in which they are read."""
    moved = _moved(found, head_now)
    if _is_quiet(found):
        return [Block(before="\n\n".join(filter(None, [_heading(found), moved, _counted(found), _sides(found, link)])))]
    findings = [] if found.incomparable else found.findings
    by_verdict = {label: [item for item in findings if item.verdict == label] for label in _LABELS}
    row = partial(_finding, packages=_telling(findings, found), others=_opposites(findings))
    lone: dict[str, list[Lone]] = {}
    for item in found.lone:
        if item.kind == "failed" and item.reason == found.head.error:
            continue  # said once, above
        lone.setdefault(item.kind, []).append(item)
    return [
        Block(before="\n\n".join(filter(None, [_heading(found), moved, _counted(found), _sides(found, link)]))),
        *_reasons(found),
        *_lone_tables(lone, (("failed", "Fails in head, worked in base"), ("removed", "No longer measured"))),
        *_table("Regressions", by_verdict["regression"], row),
        *_table("Changes of metrics without a direction", by_verdict["changed"], row),
        *_table("Improvements", by_verdict["improvement"], row),
        *_lone_tables(lone, (("fixed", "Works in head, failed in base"),)),
        *_lone_tables(lone, (("new", "New"), ("refused", "Cannot be put side by side")), folded=True),
        *_lone_tables(lone, (("failing", "Fails"), ("n/a", "Not available here")), folded=True),
        *_table("Undecided", by_verdict["undecided"], row, folded=True),
        *_not_judged(by_verdict["not judged"]),
        *_table("No change", by_verdict["no change"], row, folded=True, most=_UNCHANGED),
        *_details(found),
    ]  # fmt: skip


def _is_quiet(found: Comparison) -> bool:
    """Return whether there is nothing that anybody must look at."""
    return (
        found.result == "no regression"
        and not found.shift
        and all(item.verdict == "no change" for item in found.findings)
        and not any(item.kind in (*_FAILURES, "fixed", "new", "refused") for item in found.lone)
    )


def _heading(found: Comparison) -> str:
    """Return the verdict in a line."""
    counts = Counter(item.verdict for item in found.findings)
    kinds = Counter(kind for kind, _ in {(item.kind, item.cell) for item in found.lone})
    parts = []
    if found.incomparable:
        parts.append("not comparable")
    elif found.base.error or found.head.error:
        parts.append(f"{'base' if found.base.error else 'head'} could not be measured")
    if kinds["failed"] and not found.head.error:
        parts.append(f"{plural(kinds['failed'], 'cell')} newly failing")
    if kinds["removed"]:
        parts.append(f"{plural(kinds['removed'], 'cell')} no longer measured")
    if not found.incomparable:
        parts += [plural(counts["regression"], "regression")] if counts["regression"] else []
        parts += [plural(counts["changed"], "change")] if counts["changed"] else []
        parts += [plural(counts["improvement"], "improvement")] if counts["improvement"] else []
    if not parts:
        unchanged = found.findings and all(item.verdict == "no change" for item in found.findings)
        parts = ["no change" if unchanged and found.result == "no regression" else figures.result(found)]
    told = [", ".join(parts), *figures.open_ones(found), *(["the machine itself moved"] if found.shift else [])]
    return f"### Machmeter on {code(found.machine, 60)}: {'; '.join(told)}"


def _counted(found: Comparison) -> str:
    """Return what was compared, in a line: the same words whether or not something changed."""
    counts = Counter(item.verdict for item in found.findings)
    failing = len({item.cell for item in found.lone if item.kind in ("failed", "failing")})
    failed = f"{plural(failing, 'cell')} failed"
    if found.incomparable or not found.findings:
        known = failing or not (found.head.error or found.base.error)
        return f"Nothing was compared; {failed}." if known else "Nothing was compared."
    cells = len({item.cell for item in found.findings})
    changed = counts["regression"] + counts["improvement"] + counts["changed"]
    parts = [
        f"{grouped(number)} {words}"
        for number, words in (
            (changed, "changed"),
            (counts["no change"], "without change"),
            (counts["undecided"], "undecided"),
            (counts["not judged"], "not judged"),
        )
        if number
    ]
    parts = ["no change"] if counts["no change"] == len(found.findings) else parts
    return (
        f"Compared {plural(len(found.findings), 'number')} of {plural(cells, 'cell')}: {', '.join([*parts, failed])}."
    )


def _sides(found: Comparison, link: str | None) -> str:
    """Return which commits were measured, where and how."""
    sides = " → ".join(
        f"{name} {code(side.commit[:8] or side.label, 60)}"
        for name, side in (("base", found.base), ("head", found.head))
    )
    stacks = dict.fromkeys(side.stack for side in (found.base, found.head) if side.stack)
    order = "interleaved" if found.interleaved else "one side after the other"
    parts = [sides]
    parts += [f"stack {' → '.join(code(stack, 40) for stack in stacks)}"] if stacks else []
    parts += [f"{plural(found.rounds, 'round')}, {order}"] if found.rounds else []
    parts += [f"{name} {code(found.host[name], 60)}" for name in _HOST if found.host.get(name)]
    return "; ".join(parts) + "." + (f" {inert.link('All numbers', link)}" if link else "")


def _moved(found: Comparison, head_now: str | None) -> str:
    if not head_now or head_now == found.head.commit:
        return ""
    measured = code(found.head.commit[:8] or found.head.label, 60)
    return (
        f"**The head has moved.** This is about {measured}; the head of the pull request is now {code(head_now[:8])}."
    )


def _reasons(found: Comparison) -> list[Block]:
    """Return what stands between the numbers and a judgement, and what may explain them."""
    blocks = []
    for name, side in (("Base", found.base), ("Head", found.head)):
        if side.error:
            blocks.append(Block(before=f"**{name} could not be measured:** {code(side.error, 400)}"))
    if found.incomparable:
        rows = [f"- {code(reason, 400)}" for reason in found.incomparable]
        before = "**Base and head are not comparable**, so nothing is said about how their numbers differ:\n"
        blocks.append(Block(before=before, rows=rows))
    if found.shift:
        shift = found.shift
        certain = figures.interval(shift.ratio, shift.low, shift.high)
        blocks.append(
            Block(
                before=f"**The machine itself moved** between base and head: its control {code(shift.control)} by "
                f"{figures.ratio(shift.ratio)} ({certain}). Of timings only what changed by more is judged."
            )
        )
    if found.packages:
        pinned = [code(figures.difference(item)) for item in found.packages if item.pinned]
        other = [code(figures.difference(item)) for item in found.packages if not item.pinned]
        lines = [
            f"Libraries that {words}: {', '.join(some[:8])}{f' and {len(some) - 8} more' if len(some) > 8 else ''}."
            for words, some in (("this change pins", pinned), ("differ without being pinned", other))
            if some
        ]
        blocks.append(Block(before="\n".join(lines)))
    return blocks


# ------------------------------------------------------------------ tables


def _table(
    title: str, findings: Sequence[Finding], row: Callable[[Finding], list[str]], *, folded: bool = False,
    most: int | None = None,
) -> list[Block]:  # fmt: skip
    columns = ["cell", "metric", "base", "head", "change (95 % interval)", "note"]
    return _grid(title, columns, [row(item) for item in findings], right=(2, 3, 4), folded=folded, most=most)


def _lone_tables(
    lone: dict[str, list[Lone]], titles: Iterable[tuple[str, str]], *, folded: bool = False
) -> list[Block]:
    """Return a table for each kind, one row for all metrics of a cell that have the same reason."""
    blocks = []
    for kind, title in titles:
        grouped: dict[tuple[str, str], list[str]] = {}
        for item in lone.get(kind, ()):
            grouped.setdefault((item.cell, item.reason), []).append(figures.metric(item.metric))
        rows = [
            [code(cell, cell=True), _few(list(dict.fromkeys(names))), code(reason, 240, cell=True)]
            for (cell, reason), names in grouped.items()
        ]
        blocks += _grid(title, ["cell", "metrics", "reason"], rows, folded=folded)
    return blocks


def _few(names: Sequence[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _not_judged(findings: Sequence[Finding]) -> list[Block]:
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
        return [_folded(titled, head, lines, most)]
    first, others = lines[:_SHOWN], lines[_SHOWN:]
    blocks = [Block(before=f"#### {titled}", head=f"\n{head}", rows=first)]
    return blocks + ([_folded(f"{title}: {grouped(len(others))} more", head, others)] if others else [])


def _folded(title: str, head: str, rows: Sequence[str], most: int | None = None) -> Block:
    return Block(
        before=f"<details><summary>{title}</summary>\n",
        head=head,
        rows=rows,
        after="\n</details>",
        most=most,
    )


def _telling(findings: Sequence[Finding], found: Comparison) -> list[Difference]:
    """Return the libraries to name beside rows: none where all of them may explain every row, which is said above."""
    cells = {item.cell for item in findings if item.verdict in _CHANGES}
    all_alike = all(len(figures.explaining(cell, found.packages)) == len(found.packages) for cell in cells)
    return [] if all_alike and len(cells) > 1 else list(found.packages)


def _finding(item: Finding, *, packages: Sequence[Difference], others: dict[tuple[str, str], list[str]]) -> list[str]:
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


def _details(found: Comparison) -> list[Block]:
    """Return what a reader may want to know of the machine and the run, folded."""
    means = [
        f"- geometric mean of {figures.metric(mean.metric)} over {plural(mean.cells, 'judged cell')}: "
        f"{figures.ratio(mean.ratio)} (a summary without an interval, not a judgement)"
        for mean in (() if found.incomparable or found.shift else found.means)
    ]
    notes = [f"- {code(note, 300)}" for note in found.notes]
    minutes = plural(round(found.seconds / 60), "minute")
    spent = [f"- {plural(found.rounds, 'round')} in {minutes}"] if found.seconds and found.rounds else []
    environments = [
        f"- environment of {name}: {code(side.environment)}"
        for name, side in (("base", found.base), ("head", found.head))
        if side.environment
    ]
    host = [f"- {code(name, 60)}: {code(fact)}" for name, fact in found.host.items()]
    rows = [*notes, *means, *spent, *environments, *host]
    return [replace(_folded("How it was measured", "", rows), claim=0)] if rows else []
