"""Markdown that fits into a number of bytes: what is too long is shortened at a row, and says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Block:
    """A part of a document: text before and after, and rows in between that can be left out from the last one on."""

    before: str = ""
    rows: Sequence[str] = ()  # one line each
    after: str = ""
    most: int | None = None  # rows to show even where there is room for more
    claim: int = 1  # who has the lowest takes its rows first

    def text(self, count: int, link: str | None) -> str:
        """Return the block with its first `count` rows."""
        lines = [self.before, *self.rows[:count]] if self.before else list(self.rows[:count])
        if count < len(self.rows):
            lines += ["", more(len(self.rows) - count, link)]
        return "\n".join([*lines, self.after] if self.after else lines)


def more(count: int, link: str | None) -> str:
    """Say how many rows are not here, and where they are."""
    words = f"{count} more row{'s' if count > 1 else ''}"
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
            room -= size(row) + 1
            if room < 0:
                room += size(row) + 1
                break
            counts[place] += 1
    return "\n\n".join(block.text(count, link) for block, count in zip(blocks, counts, strict=True))
