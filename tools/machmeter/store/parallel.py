"""The same work on many things in several processes that share what is in memory, without copying any of it."""

from __future__ import annotations

import gc
import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from machmeter.errors import SiteUnbuildable

Item = TypeVar("Item")
Result = TypeVar("Result")

_SHARES = 8  # parts for each process: none waits long for the others

_work: tuple[Callable[[Sequence[Any]], Any], Sequence[Any], int] | None = None  # only while processes start


def share(function: Callable[[Sequence[Item]], Result], items: Sequence[Item], processes: int) -> list[Result]:
    """Return what `function` makes of every n-th of `items`, for each of n parts.

    Where forking is not safe (this process has other threads) or not possible, everything happens here, in one part.
    Raises SiteUnbuildable where a process was killed.
    """
    return list(each_part(function, items, processes))


def each_part(function: Callable[[Sequence[Item]], Result], items: Sequence[Item], processes: int) -> Iterator[Result]:
    """Yield what `share` returns, part by part. Raises SiteUnbuildable."""
    global _work
    safe = threading.active_count() == 1 and "fork" in multiprocessing.get_all_start_methods()
    if processes < 2 or len(items) < 2 or not safe:
        yield function(items)
        return
    parts = min(len(items), _SHARES * processes)
    gc.freeze()  # a collection in a child would copy all that it shares with this process
    _work = (function, items, parts)
    try:
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(processes, mp_context=context, initializer=_follow) as pool:
            yield from pool.map(_part, range(parts))
    except BrokenProcessPool as error:
        raise SiteUnbuildable(
            "a process that made a part of it was killed, perhaps for want of memory: free some, and try again"
        ) from error
    finally:
        _work = None
        gc.unfreeze()


def _follow() -> None:
    """Let the parent decide when to stop: what it does about signals was inherited, and each process would speak."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _part(number: int) -> Any:
    assert _work is not None
    function, items, parts = _work
    return function(items[number::parts])
