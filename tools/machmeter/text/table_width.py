"""Which columns of a table a terminal has room for."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from typing import TypeVar

from rich.cells import cell_len

Row = TypeVar("Row")

_GAP = 1  # character between two columns


def terminal_width() -> int:
    """Return the characters in a line of the terminal, or what COLUMNS says; 0 where neither tells, as in a file."""
    return shutil.get_terminal_size(fallback=(0, 0)).columns


def fit(
    columns: Sequence[tuple[str, Callable[[Row], str], bool]], rows: Sequence[Row], width: int, spare: Sequence[str]
) -> tuple[list[tuple[str, Callable[[Row], str], bool]], list[str]]:
    """Return those of `columns` that fit into `width` characters, and the titles of the others.

    A column is its title, how a row fills it, and whether the text is aligned right. Those that are `spare` are left
    out in that order, and no more of them than must be; a `width` of 0 has room for all.
    """
    needed = {
        title: _GAP + max(cell_len(text) for text in [title, *(fill(row) for row in rows)])
        for title, fill, _ in columns
    }
    left_out: list[str] = []
    for title in spare:
        if width and title in needed and sum(needed.values()) - _GAP > width:
            left_out.append(title)
            del needed[title]
    return [column for column in columns if column[0] in needed], left_out


def told(left_out: Sequence[str]) -> list[str]:
    """Return the line that says what a narrow terminal does not show, where there is anything."""
    return [f"no room here for {', '.join(left_out)}: a wider terminal and --json have all"] if left_out else []
