"""The parsed columns of a store, kept between builds: only files that changed are parsed again.

A file counts as unchanged when its size and time are what they were, or else when its bytes are. The cache may be
deleted at any time, and what cannot be read of it is as good as absent: results are the same with and without it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from machmeter.errors import from_os_error
from machmeter.history.columns import Header, Table

FOLDER = ".machmeter-cache"
FORMAT = 1  # raise it whenever the same file comes to be read differently

_FILE = "columns.bin"
# A file that was changed twice within this many seconds may have the same time both times.
_RACY_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """By what a file is recognised."""

    size: int
    time: int  # of its last change, nanoseconds
    digest: str

    def proves(self, path: Path, seen_at: float) -> bool:
        """Return whether `path` still is the file that was stamped, at `seen_at` (seconds since 1970)."""
        try:
            status = path.stat()
        except OSError:
            return False
        if status.st_size != self.size:
            return False
        if status.st_mtime_ns == self.time and self.time / 1e9 < seen_at - _RACY_SECONDS:
            return True
        try:
            return digest(path.read_bytes()) == self.digest
        except OSError:
            return False


def digest(content: bytes) -> str:
    """Return the hash by which the bytes of a file are recognised."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def read_stamped(path: Path) -> tuple[bytes, Stamp]:
    """Return the bytes of `path` and its stamp. What changes it later is noticed: its time was taken before."""
    status = path.stat()
    content = path.read_bytes()
    return content, Stamp(size=len(content), time=status.st_mtime_ns, digest=digest(content))


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What the cache has: the columns, and by path the stamp of each file in them or the reason it was left out."""

    table: Table
    stamps: Mapping[str, Stamp]
    unusable: Mapping[str, str]
    seen_at: float


def load(folder: Path) -> Kept | None:
    """Return what is kept in `folder`, or None where that is nothing or of another format."""
    try:
        with (folder / _FILE).open("rb") as stream:
            told = json.loads(np.lib.format.read_array(stream, allow_pickle=False).tobytes())
            if told["format"] != FORMAT:
                return None
            columns = {name: np.lib.format.read_array(stream, allow_pickle=False) for name in told["columns"]}
        table = Table(
            headers=tuple(_header(item) for item in told["headers"]),
            grids=tuple((name, tuple(tuple(values) for values in params)) for name, params in told["grids"]),
            versions=tuple(told["versions"]),
            **columns,
        )
        stamps = {path: Stamp(size=size, time=when, digest=text) for path, (size, when, text) in told["stamps"].items()}
        return Kept(table=table, stamps=stamps, unusable=told["unusable"], seen_at=float(told["seen_at"]))
    except Exception:  # a damaged file raises almost anything
        return None


def _header(item: dict[str, Any]) -> Header:
    pairs = {name: tuple((key, text) for key, text in item[name]) for name in ("requirements", "variables", "facts")}
    return Header(**{**item, **pairs, "problems": tuple(item["problems"])})


def save(folder: Path, table: Table, stamps: Mapping[str, Stamp], unusable: Mapping[str, str]) -> None:
    """Keep `table` in `folder`. Raises StoreUnwritable or DiskFull."""
    arrays = table.arrays()
    about = {
        "format": FORMAT,
        "columns": list(arrays),
        "headers": [dataclasses.asdict(header) for header in table.headers],
        "grids": table.grids,
        "versions": table.versions,
        "stamps": {path: (item.size, item.time, item.digest) for path, item in stamps.items()},
        "unusable": dict(unusable),
        "seen_at": time.time(),
    }
    text = np.frombuffer(json.dumps(about, allow_nan=False).encode(), np.uint8)
    write(folder / _FILE, lambda path: _write_arrays(path, [text, *arrays.values()]))


def _write_arrays(path: Path, arrays: list[Any]) -> None:
    with path.open("wb") as stream:  # one after the other: an .npz would be checked byte by byte at each reading
        for array in arrays:
            np.lib.format.write_array(stream, array, allow_pickle=False)


def write(path: Path, how: Any) -> None:
    """Let `how` write a file and put it in the place of `path` at once. Raises StoreUnwritable or DiskFull."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        how(temporary)
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise from_os_error(error, path.parent, "the cache of parsed results", None) from error
