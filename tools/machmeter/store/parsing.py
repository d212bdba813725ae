"""Parsing the files of a store, those that changed since the last time, in several processes where that pays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from machmeter.store import asv_files, columns, parallel
from machmeter.store import cache as caching
from machmeter.store.cache import Stamp
from machmeter.store.columns import Table

Progress = Callable[[int, int], None]  # how many files are done, of how many

# Starting processes takes a tenth of a second: as much as parsing this many bytes.
_WORTH_PROCESSES = 8 << 20
_BATCH = 24


@dataclass(frozen=True, kw_only=True, eq=False)
class Parsed:
    """The files of a store: the usable ones as a table, in no certain order, and the others by path."""

    table: Table
    unusable: Mapping[str, str]
    stamps: Mapping[str, Stamp]
    seen_at: float
    fresh: caching.Piece  # what the cache does not have
    pieces: int  # that the cache has
    kept: int  # files in them

    def keep(self, cache: Path, table: Table) -> None:
        """Keep what was parsed for the next time. `table` has the files in the order in which they are wanted."""
        useful = len(self.stamps) - len(self.fresh.stamps)
        if caching.worth_replacing(self.pieces, self.kept, useful):
            whole = caching.Piece(table=table, stamps=self.stamps, unusable=self.unusable, seen_at=self.seen_at)
            caching.replace(cache, whole)
        elif self.fresh.stamps:
            caching.add(cache, self.fresh)


def parse_all(results: Path, cache: Path | None, jobs: int, progress: Progress | None = None) -> Parsed:
    """Return all result files under `results`, what did not change from the folder `cache` where one is given."""
    paths = asv_files.find(results)
    pieces = caching.load(cache) if cache else []
    owner = _unchanged(results, paths, pieces)
    changed = [path for path in paths if path not in owner]
    done = len(paths) - len(changed)
    tables: list[Table] = []
    unusable: dict[str, str] = {}
    stamps: dict[str, Stamp] = {}
    for piece in pieces:
        of_piece = [header.path for header in piece.table.headers]
        tables.append(piece.table.select([at for at, path in enumerate(of_piece) if owner.get(path) is piece]))
        unusable |= {path: reason for path, reason in piece.unusable.items() if owner.get(path) is piece}
        stamps |= {path: stamp for path, stamp in piece.stamps.items() if owner.get(path) is piece}
    seen_at = time.time()
    parsed: list[Table] = []
    bad: dict[str, str] = {}
    seen: dict[str, Stamp] = {}
    for table, reasons, of_batch in _parse(results, changed, jobs, stamped=cache is not None):
        parsed.append(table)
        bad |= reasons
        seen |= of_batch
        done += len(table.headers) + len(reasons)
        if progress:
            progress(done, len(paths))
    fresh = columns.concatenate(parsed)
    return Parsed(
        table=columns.concatenate([*tables, fresh]),
        unusable=dict(sorted((unusable | bad).items())),
        stamps=stamps | seen,
        seen_at=seen_at,
        fresh=caching.Piece(table=fresh, stamps=seen, unusable=bad, seen_at=seen_at),
        pieces=len(pieces),
        kept=sum(len(piece.stamps) for piece in pieces),
    )


def _unchanged(results: Path, paths: Iterable[str], pieces: Sequence[caching.Piece]) -> dict[str, caching.Piece]:
    """Return which piece has each path that did not change since: the newest that knows it."""
    known = {path: piece for piece in pieces for path in piece.stamps}
    return {
        path: known[path]
        for path in paths
        if path in known and known[path].stamps[path].proves(results / path, known[path].seen_at)
    }


_Batch = tuple[Table, dict[str, str], dict[str, Stamp]]


def _parse(results: Path, paths: Sequence[str], jobs: int, *, stamped: bool) -> Iterator[_Batch]:
    total = sum(_size(results / path) for path in paths)
    if jobs < 2 or total < _WORTH_PROCESSES:
        for start in range(0, len(paths), _BATCH):
            yield _parse_batch(results, paths[start : start + _BATCH], stamped)
        return
    yield from parallel.each_part(lambda part: _parse_batch(results, part, stamped), paths, jobs)


def _parse_batch(results: Path, paths: Sequence[str], stamped: bool) -> _Batch:
    tables, unusable, stamps = [], {}, {}
    for path in paths:
        try:
            content, stamp = caching.read_stamped(results / path)
            if stamped:
                stamps[path] = stamp
            tables.append(asv_files.parse(content, path))
        except asv_files.Unusable as problem:
            unusable[path] = str(problem)
        except OSError as error:
            unusable[path] = f"cannot be read: {error.strerror or error}"
    return columns.concatenate(tables), unusable, stamps


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
