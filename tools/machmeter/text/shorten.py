"""Markdown that fits into a number of bytes: what is too long is shortened at a row, and says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from machmeter.text.numbers import plural


@dataclass(frozen=True, kw_only=True)
class Block:
    """A part of a document: text before and after, and rows in between that can be left out from the last one on."""

    before: str = ""
    head: str = ""  # stands between `before` and the rows, and only where there are some
    rows: Sequence[str] = ()  # one line each
    after: str = ""
    most: int | None = None  # rows to show even where there is room for more
    claim: int = 1  # who has the lowest takes its rows first

    def text(self, count: int, link: str | None) -> str:
        """Return the block with its first `count` rows."""
        above = [self.before] if self.before else []
        above += [self.head] if self.head and count else []
        lines = [*above, *self.rows[:count]]
        if count < len(self.rows):
            gap = [] if lines and lines[-1].endswith("\n") else [""]
            lines += [*gap, more(len(self.rows) - count, link)]
        return "\n".join([*lines, self.after] if self.after else lines)


def more(count: int, link: str | None) -> str:
    """Say how many rows are not here, and where they are."""
    words = plural(count, "more row")
    return f"{words}: {link}" if link else f"{words}, in the measurements of the run"


def size(text: str) -> int:
    """Return how many bytes `text` takes."""
    return len(text.encode("utf-8"))


def fit(blocks: Sequence[Block], limit: int, link: str | None) -> str:
    """Return the blocks, an empty line between two, in at most `limit` bytes of UTF-8 if their fixed parts allow it.

    Among blocks with the same claim the first takes its rows first. A block that gets none says how many it has.
    """
    # What even a document without rows needs, with room for the line that says how many are missing.
    room = limit - sum(size(block.text(0, link)) + 2 for block in blocks)
    counts = [0] * len(blocks)
    for place in sorted(range(len(blocks)), key=lambda number: blocks[number].claim):
        for row in blocks[place].rows[: blocks[place].most]:
            needed = size(row) + 1
            if blocks[place].head and not counts[place]:
                needed += size(blocks[place].head) + 1
            if needed > room:
                break
            room -= needed
            counts[place] += 1
    return "\n\n".join(block.text(count, link) for block, count in zip(blocks, counts, strict=True))
