"""How far a build is: a bar on a terminal, nothing where nobody looks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@contextlib.contextmanager
def shown() -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that is told a step, how far it is and how far it goes."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<20}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task("", total=None)

        def say(step: str, done: int, of: int) -> None:
            bars.update(task, description=step, completed=done, total=of)

        yield say
