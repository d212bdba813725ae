"""The temporary folder that a command works in, and those that dead commands left.

A command that is killed cannot clear up, and the next one does it. Whoever works in a folder holds a lock on it, which
the kernel takes back when the process dies, however it dies; so no process identifier is asked, which another container
with the same folder of temporary files would not know.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "machmeter-results-"
_YOUNG = 60.0  # seconds: one that was just made may not have its lock yet


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Yield a new, empty folder, which is removed afterwards; remove what dead processes of this user left."""
    remove_stale()
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as name, _locked(Path(name)):
        yield Path(name)


def remove_stale() -> None:
    """Remove the folders of dead processes of this user. What cannot be removed stays: it is no fault of a push."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            status = path.lstat()
            if status.st_uid != os.getuid() or time.time() - status.st_mtime < _YOUNG:
                continue
            with _locked(path):
                shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock on the folder `path`. Raises BlockingIOError where another process does, OSError for a link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
