"""A comparison as a comment on a pull request: calm, short, and inert whatever the measurements say.

Pure. Failures and regressions come first, then improvements; what explains and what did not change is folded. Text
from the measurements is shown as code (`inert`), and what is too long is shortened at a row (`fitting`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from machmeter.compare import figures
from machmeter.compare import markdown_tables as tables
from machmeter.compare.documents import Comparison, Lone
from machmeter.text import inert
from machmeter.text.inert import code
from machmeter.text.numbers import grouped, plural
from machmeter.text.shorten import Block, fit, size

LIMIT = 60_000  # bytes: GitHub takes 65,536 characters

_UNCHANGED = 200  # rows without a change that are listed at most
_HOST = ("CPU", "GPU", "driver", "thread budget")  # facts that are named at once; the others are folded
_LABELS = ("regression", "improvement", "changed", "undecided", "not judged", "no change")
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
    row = tables.row_of(findings, found)
    lone: dict[str, list[Lone]] = {}
    for item in found.lone:
        if item.kind == "failed" and item.reason == found.head.error:
            continue  # said once, above
        lone.setdefault(item.kind, []).append(item)
    return [
        Block(before="\n\n".join(filter(None, [_heading(found), moved, _counted(found), _sides(found, link)]))),
        *_reasons(found),
        *tables.of_lone(lone, (("failed", "Fails in head, worked in base"), ("removed", "No longer measured"))),
        *tables.of_findings("Regressions", by_verdict["regression"], row),
        *tables.of_findings("Changes of metrics without a direction", by_verdict["changed"], row),
        *tables.of_findings("Improvements", by_verdict["improvement"], row),
        *tables.of_lone(lone, (("fixed", "Works in head, failed in base"),)),
        *tables.of_lone(lone, (("new", "New"), ("refused", "Cannot be put side by side")), folded=True),
        *tables.of_lone(lone, (("failing", "Fails"), ("n/a", "Not available here")), folded=True),
        *tables.of_findings("Undecided", by_verdict["undecided"], row, folded=True),
        *tables.not_judged(by_verdict["not judged"]),
        *tables.of_findings("No change", by_verdict["no change"], row, folded=True, most=_UNCHANGED),
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
    return [replace(tables.fold("How it was measured", "", rows), claim=0)] if rows else []
