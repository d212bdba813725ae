"""Writing a file at once: whoever reads it finds the old content or the new one, never a part.

The new content is written beside the file, under a name that nobody else has, and renamed. It is not forced onto the
disk first: results, evidence and caches are read leniently, and a power cut that loses the last seconds of a run loses
no more than the run did; forcing every record out would disturb what is being measured.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from machmeter.errors import from_os_error

Content = bytes | str | Callable[[Path], object]  # or what writes it to a path


def replace(path: Path, content: Content) -> None:
    """Put `content` in the place of `path`, whose folder exists. Raises OSError, and then `path` is as it was.

    A link at `path` is replaced and not followed.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        # Not what somebody put there: the file must be new. Its rights are those of any new file.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        if callable(content):
            content(temporary)
        else:
            temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def write(path: Path, content: Content, what: str, setting: str | None = None) -> None:
    """Put `content` in the place of `path`, and make its folder where there is none. Raises DiskFull, StoreUnwritable.

    `what` says in the error what the file is; `setting` names the variable that moves it elsewhere, if there is one.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, content)
    except OSError as error:
        raise from_os_error(error, path.parent, what, setting) from error
