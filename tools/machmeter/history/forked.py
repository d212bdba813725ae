"""The same work on many things in several processes that share what is in memory, without copying any of it."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_work: tuple[Callable[[Sequence[Any]], Any], Sequence[Any], int] | None = None  # only while processes start


def share(function: Callable[[Sequence[Item]], Result], items: Sequence[Item], processes: int) -> list[Result]:
    """Return what `function` makes of every n-th of `items`, for each of n processes.

    Where forking is not safe (this process has other threads) or not possible, everything happens here, in one part.
    """
    global _work
    safe = threading.active_count() == 1 and "fork" in multiprocessing.get_all_start_methods()
    if processes < 2 or len(items) < 2 or not safe:
        return [function(items)]
    _work = (function, items, processes)
    try:
        with multiprocessing.get_context("fork").Pool(processes, _follow) as pool:
            results = pool.map(_part, range(processes), chunksize=1)
            pool.close()
            pool.join()  # leaving the block would end them by a signal, perhaps before they heed `_follow`
            return results
    finally:
        _work = None


def _follow() -> None:
    """Let the parent decide when to stop: what it does about signals was inherited, and each process would speak."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _part(number: int) -> Any:
    assert _work is not None
    function, items, processes = _work
    return function(items[number::processes])
