"""How far a build is: a bar on a terminal, nothing where nobody looks."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_OFTEN = 0.1  # seconds between two drawings


@contextlib.contextmanager
def shown() -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that is told a step, how far it is and how far it goes."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<20}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # No thread draws it: a process with threads cannot share its work among forked ones.
    with Progress(
        *columns, console=console, transient=True, auto_refresh=False, disable=not console.is_terminal
    ) as bars:
        task = bars.add_task("", total=None)
        drawn = 0.0

        def say(step: str, done: int, of: int) -> None:
            nonlocal drawn
            bars.update(task, description=step, completed=done, total=of)
            if done in (0, of) or time.monotonic() - drawn > _OFTEN:
                bars.refresh()
                drawn = time.monotonic()

        yield say
