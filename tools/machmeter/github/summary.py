"""All numbers of a pull request's comparison, for the summary of the run, which has more room than a comment.

Pure, and as inert as the comment. What even the summary has no room for is in the measurements of the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from machmeter.compare import figures, markdown
from machmeter.compare.documents import Comparison, Finding, Lone
from machmeter.text.inert import code
from machmeter.text.shorten import Block, fit, size

LIMIT = 1_000_000  # bytes: GitHub takes 1 MiB for each step, and shows nothing of a summary that is larger

_NUMBERS = ("Benchmark", "Metric", "Verdict", "Base", "Head", "Change (95 %)", "Pairs", "Remark")
_OTHERS = ("Benchmark", "Metric", "What", "Why")


def render(found: Sequence[markdown.Section], *, limit: int = LIMIT) -> str:
    """Return the comment's text, then every number of every machine, in at most `limit` bytes of UTF-8."""
    text = markdown.render_all(found)
    blocks = [block for section in found if isinstance(section, Comparison) for block in _blocks(section)]
    return f"{text}\n\n{fit(blocks, limit - size(text) - 2, None)}" if blocks else text


def _blocks(found: Comparison) -> list[Block]:
    stack = found.head.stack or found.base.stack
    title = f"## All numbers of {code(found.machine, 60)}{f', stack {code(stack, 40)}' if stack else ''}"
    numbers = [_number(item, comparable=not found.incomparable) for item in found.findings]
    blocks = [Block(before=f"{title}\n\n{_header(_NUMBERS)}", rows=numbers)] if numbers else []
    others = [_other(item) for item in found.lone]
    before = f"{_header(_OTHERS)}" if numbers else f"{title}\n\n{_header(_OTHERS)}"
    return [*blocks, *([Block(before=before, rows=others)] if others else [])]


def _header(titles: Sequence[str]) -> str:
    return f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}"


def _number(item: Finding, *, comparable: bool) -> str:
    parts = [
        code(item.cell, cell=True),
        figures.metric(item.metric),
        item.verdict,
        figures.value(item.base, item.unit),
        figures.value(item.head, item.unit),
        figures.change(item) if comparable else "–",
        str(item.pairs),
        code(item.words, cell=True) if item.words else "",
    ]
    return f"| {' | '.join(parts)} |"


def _other(item: Lone) -> str:
    return f"| {code(item.cell, cell=True)} | {figures.metric(item.metric)} | {item.kind} | {_why(item.reason)} |"


def _why(reason: str) -> str:
    return code(reason, 300, cell=True) if reason else ""
