"""Do work in a child process, so that its memory and its crash stay there."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from machmeter.errors import CellFailed

Result = TypeVar("Result")


def in_child(work: Callable[[], Result], *, fork: bool) -> Result:
    """Return `work()`, done in a forked child, or in place where a `fork` cannot work.

    The thread pools of most runtimes do not survive one: a child would wait for threads that are not there.

    Exporting and quantizing a model takes several times the memory of running it; in the measuring process
    that would count as the model's peak memory. An exception is raised here as it was there; a child that
    dies raises CellFailed.
    """
    if not fork:
        return work()
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _work_and_leave(work, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    _, status, usage = os.wait4(child, 0)
    peak = usage.ru_maxrss * 1024
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        raise CellFailed(
            "preparation was killed (signal 9), most likely by the kernel for lack of memory; "
            f"its peak was {peak / 1e6:.0f} MB"
        )
    if os.WIFSIGNALED(status) or not answer:
        how = f"crashed (signal {os.WTERMSIG(status)})" if os.WIFSIGNALED(status) else "ended without a result"
        raise CellFailed(f"preparation {how}")
    succeeded, value = pickle.loads(answer)
    if not succeeded:
        value.peak_bytes = peak
        raise value
    result: Result = value
    return result


def _work_and_leave(work: Callable[[], Any], writer: int) -> None:
    """Send the outcome of `work` to the parent and end this child without its parent's exit handlers."""
    try:
        try:
            answer = pickle.dumps((True, work()))
        except BaseException as error:
            try:
                answer = pickle.dumps((False, error))
                pickle.loads(answer)
            except Exception:
                answer = pickle.dumps((False, CellFailed(f"{type(error).__name__}: {error}")))
        with os.fdopen(writer, "wb") as stream:
            stream.write(answer)
        sys.stderr.flush()
    finally:
        os._exit(0)
