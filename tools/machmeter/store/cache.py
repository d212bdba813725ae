"""The parsed columns of a store, kept between builds: only files that changed are parsed again.

A file counts as unchanged when its size and time are what they were, or else when its bytes are. The cache may be
deleted at any time, and what cannot be read of it is as good as absent: results are the same with and without it.

It is kept in pieces, each whole in itself: the first has a store as it was, the others what came later, so that a new
result does not make all of it be written again. Of a file that is in several pieces the newest counts.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from machmeter import atomic, metrics
from machmeter.store.columns import Header, Table

FOLDER = ".machmeter-cache"
WHAT = "the cache of parsed results"  # in an error

_PIECES = "columns-*.bin"
_MOST_PIECES = 16
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
class Piece:
    """A piece of the cache: columns, and by path the stamp of each file in them or the reason it was left out."""

    table: Table
    stamps: Mapping[str, Stamp]
    unusable: Mapping[str, str]
    seen_at: float


def load(folder: Path) -> list[Piece]:
    """Return the pieces in `folder`, the oldest first; none that is damaged or was made by other code."""
    code = reading_code()
    return [piece for path in sorted(folder.glob(_PIECES)) if (piece := _load(path, code))]


def code_digest(folder: Path) -> str:
    """Return a hash of the modules in `folder`: what its code worked out and was kept is not used by other code.

    All of them count, so that none is forgotten of those that decide. Raises OSError where one cannot be read.
    """
    modules = sorted(folder.glob("*.py"))
    return digest(b"\0".join(part for path in modules for part in (path.name.encode(), path.read_bytes())))


def reading_code() -> str:
    """Return a hash of what decides how a file is read: when it changes, what is kept is read again."""
    counted = digest(Path(metrics.__file__).read_bytes())  # what the tail of samples is
    return f"{code_digest(Path(__file__).parent)} {counted}"


def _load(path: Path, code: str) -> Piece | None:
    try:
        with path.open("rb") as stream:
            told = json.loads(np.lib.format.read_array(stream, allow_pickle=False).tobytes())
            if told["code"] != code:
                return None
            columns = {name: _mapped(path, stream) for name in told["columns"]}
        table = Table(
            headers=tuple(_header(item) for item in told["headers"]),
            grids=tuple((name, tuple(tuple(values) for values in params)) for name, params in told["grids"]),
            versions=tuple(told["versions"]),
            **columns,
        )
        stamps = {path: Stamp(size=size, time=when, digest=text) for path, (size, when, text) in told["stamps"].items()}
        return Piece(table=table, stamps=stamps, unusable=told["unusable"], seen_at=float(told["seen_at"]))
    except Exception:  # a damaged file raises almost anything
        return None


def _mapped(path: Path, stream: BinaryIO) -> NDArray[Any]:
    """Return the array that begins where `stream` is, without reading it yet, and go to its end."""
    np.lib.format.read_magic(stream)
    shape, _, kind = np.lib.format.read_array_header_1_0(stream)
    if kind.hasobject:
        raise ValueError("objects are never kept")
    begin, size = stream.tell(), math.prod(shape) * kind.itemsize
    if begin + size > path.stat().st_size:
        raise ValueError("is not whole")
    found = np.memmap(stream, kind, "r", begin, shape) if size else np.empty(shape, kind)
    stream.seek(begin + size)
    return found


def _header(item: dict[str, Any]) -> Header:
    pairs = {name: tuple((key, text) for key, text in item[name]) for name in ("requirements", "variables", "facts")}
    return Header(**{**item, **pairs, "problems": tuple(item["problems"])})


def add(folder: Path, piece: Piece) -> None:
    """Keep one more piece in `folder`. Raises StoreUnwritable or DiskFull."""
    _save(folder, piece, max(map(_number, folder.glob(_PIECES)), default=0) + 1)


def replace(folder: Path, piece: Piece) -> None:
    """Keep `piece` in `folder` instead of all that was there. Raises StoreUnwritable or DiskFull."""
    older = list(folder.glob(_PIECES))
    _save(folder, piece, max(map(_number, older), default=0) + 1)
    for path in older:
        with contextlib.suppress(OSError):
            path.unlink()


def worth_replacing(pieces: int, files: int, useful: int) -> bool:
    """Return whether a cache of so many pieces and files, `useful` of which still count, should be written anew."""
    return pieces == 0 or pieces >= _MOST_PIECES or useful < 0.8 * files


def _number(path: Path) -> int:
    name = path.stem.rpartition("-")[2]
    return int(name) if name.isdecimal() else 0


def _save(folder: Path, piece: Piece, number: int) -> None:
    arrays = piece.table.arrays()
    about = {
        "code": reading_code(),
        "columns": list(arrays),
        "headers": [dataclasses.asdict(header) for header in piece.table.headers],
        "grids": piece.table.grids,
        "versions": piece.table.versions,
        "stamps": {path: (item.size, item.time, item.digest) for path, item in piece.stamps.items()},
        "unusable": dict(piece.unusable),
        "seen_at": piece.seen_at,
    }
    text = np.frombuffer(json.dumps(about, allow_nan=False).encode(), np.uint8)
    # Names sort as the numbers do.
    target = folder / _PIECES.replace("*", f"{number:09}")
    atomic.write(target, lambda path: _write_arrays(path, [text, *arrays.values()]), WHAT)


def _write_arrays(path: Path, arrays: list[Any]) -> None:
    with path.open("wb") as stream:  # one after the other: an .npz would be checked byte by byte at each reading
        for array in arrays:
            np.lib.format.write_array(stream, array, allow_pickle=False)
