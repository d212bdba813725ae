"""Reading the evidence of several machines, each file once, and of those that did not change since the last time none.

The cache is as that of the results is (`cache`): pieces that are whole in themselves, of which the newest counts for a
file that is in several; a file is recognised by size and time, or else by its bytes; what is damaged or was made by
other code is as good as absent.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from machmeter import atomic
from machmeter.measure import evidence_shape
from machmeter.store import cache as caching
from machmeter.store import parallel, runs
from machmeter.store.cache import Stamp
from machmeter.store.runs import FolderOfRuns, Place

_PIECES = "runs-*.bin"
_WORTH_PROCESSES = 8 << 20  # bytes
_HEAD = 8  # bytes that say how long the head is


class _Kept(msgspec.Struct, array_like=True, frozen=True):
    """One file: by what it is recognised, what it is at a glance, and where its records begin and end."""

    size: int
    time: int
    digest: str
    glanced: bytes
    records: tuple[int, int]


class _Head(msgspec.Struct, frozen=True):
    """What a piece has, by path below the folder of the evidence."""

    code: str
    seen_at: float
    files: dict[str, _Kept]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Piece:
    head: _Head
    records: memoryview

    def place(self, path: str) -> Place:
        kept = self.head.files[path]
        return runs.opened(kept.glanced, self.records[slice(*kept.records)])


@dataclass(frozen=True, kw_only=True, eq=False)
class _Parsed:
    """A file that was read just now."""

    stamp: Stamp
    glanced: bytes
    records: bytes
    lasting: bool

    def place(self) -> Place:
        return runs.opened(self.glanced, memoryview(self.records))


def read_folder(folder: Path) -> FolderOfRuns:
    """Return the evidence of the one machine whose files are in `folder`."""
    return read(folder.parent, [folder.name])[folder.name]


def read(folder: Path, machines: Iterable[str], cache: Path | None = None, jobs: int = 1) -> dict[str, FolderOfRuns]:
    """Return the evidence below `folder` of each of `machines` (names of folders in it).

    What did not change is taken from the folder `cache`, where one is given. Files are read in up to `jobs` processes.
    """
    paths = {machine: sorted((folder / machine).glob("*.json")) for machine in dict.fromkeys(machines)}
    names = {path: path.relative_to(folder).as_posix() for listed in paths.values() for path in listed}
    pieces = _load(cache) if cache else []
    known = {name: piece for piece in pieces for name in piece.head.files}
    owner = {path: known[name] for path, name in names.items() if name in known and _proven(known[name], name, path)}
    seen_at = time.time()
    parsed = _parse([path for path in names if path not in owner], jobs)
    if cache:
        _keep(cache, pieces, {names[path]: piece for path, piece in owner.items()}, names, parsed, seen_at)

    def place(path: Path) -> Place | None:
        if path in owner:
            return owner[path].place(names[path])
        return parsed[path].place() if path in parsed else None

    found = {}
    for machine, listed in paths.items():
        places = {path: place(path) for path in listed}
        found[machine] = FolderOfRuns(
            places=runs.joined(item for item in places.values() if item is not None),
            unreadable=tuple(path for path, item in places.items() if item is None),
        )
    return found


def _proven(piece: _Piece, name: str, path: Path) -> bool:
    kept = piece.head.files[name]
    return Stamp(size=kept.size, time=kept.time, digest=kept.digest).proves(path, piece.head.seen_at)


def _parse(paths: Sequence[Path], jobs: int) -> dict[Path, _Parsed]:
    """Return what is read of `paths`; those that cannot be used are not among it."""
    many = jobs if sum(map(_size, paths)) >= _WORTH_PROCESSES else 1
    found: dict[Path, _Parsed] = {}
    for part in parallel.each_part(_parse_some, paths, many):
        found |= part
    return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _parse_some(paths: Sequence[Path]) -> dict[Path, _Parsed]:
    found = {}
    for path in paths:
        try:
            content, stamp = caching.read_stamped(path)
        except OSError:
            continue
        if glanced := runs.parse(content):
            found[path] = _Parsed(stamp=stamp, glanced=glanced[0], records=glanced[1], lasting=glanced[2])
    return found


# ---------------------------------------------------------------------- the cache


def _code() -> str:
    """Return a hash of what decides how a file is read: the code here, the shape, and how a record is settled."""
    measure = Path(evidence_shape.__file__).parent
    return caching.digest(f"{caching.reading_code()} {caching.code_digest(measure)}".encode())


def _load(cache: Path) -> list[_Piece]:
    code = _code()
    return [piece for path in sorted(cache.glob(_PIECES)) if (piece := _load_one(path, code))]


def _load_one(path: Path, code: str) -> _Piece | None:
    try:
        with path.open("rb") as stream:
            content = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
        end = _HEAD + int.from_bytes(content[:_HEAD], "little")
        head = msgspec.msgpack.decode(content[_HEAD:end], type=_Head)
        records = content[end:]
        whole = max((kept.records[1] for kept in head.files.values()), default=0) == len(records)
        return _Piece(head=head, records=records) if head.code == code and whole else None
    except (OSError, ValueError, msgspec.MsgspecError):
        return None


def _keep(
    cache: Path,
    pieces: Sequence[_Piece],
    owner: Mapping[str, _Piece],
    names: Mapping[Path, str],
    parsed: Mapping[Path, _Parsed],
    seen_at: float,
) -> None:
    """Keep what was read for the next time: beside what is there, or in its place where little of that still counts."""
    fresh = {names[path]: item for path, item in parsed.items() if item.lasting}
    listed = [(name, item.stamp, item.glanced, memoryview(item.records)) for name, item in fresh.items()]
    anew = caching.worth_replacing(len(pieces), sum(len(piece.head.files) for piece in pieces), len(owner))
    if anew:
        for name, piece in owner.items():
            kept = piece.head.files[name]
            stamp = Stamp(size=kept.size, time=kept.time, digest=kept.digest)
            listed.append((name, stamp, kept.glanced, piece.records[slice(*kept.records)]))
    if not listed:
        return
    files: dict[str, _Kept] = {}
    begin = 0
    for name, stamp, glanced, records in listed:
        files[name] = _Kept(
            size=stamp.size,
            time=stamp.time,
            digest=stamp.digest,
            glanced=glanced,
            records=(begin, begin + len(records)),
        )
        begin += len(records)
    # Proven just now, or read after this: either way it was as it is at this time.
    head = msgspec.msgpack.encode(_Head(code=_code(), seen_at=seen_at, files=files))
    older = sorted(cache.glob(_PIECES))
    number = 1 + max((int(path.stem.rpartition("-")[2]) for path in older if path.stem[5:].isdecimal()), default=0)

    def write(path: Path) -> None:
        with path.open("wb") as stream:
            stream.write(len(head).to_bytes(_HEAD, "little") + head)
            for _, _, _, records in listed:
                stream.write(records)

    atomic.write(cache / _PIECES.replace("*", f"{number:09}"), write, caching.WHAT)
    for path in older if anew else ():
        path.unlink(missing_ok=True)
