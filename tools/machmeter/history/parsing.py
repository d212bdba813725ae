"""Parsing the files of a store, those that changed since the last time, in several processes where that pays."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from machmeter.history import cache as caching
from machmeter.history import columns, files
from machmeter.history.cache import Stamp
from machmeter.history.columns import Table

Progress = Callable[[int, int], None]  # how many files are done, of how many

# Starting processes takes half a second: as much as parsing this many bytes.
_WORTH_PROCESSES = 48 << 20
_BATCH = 24


@dataclass(frozen=True, kw_only=True, eq=False)
class Parsed:
    """The files of a store: the usable ones as a table, in no certain order, and the others by path."""

    table: Table
    unusable: Mapping[str, str]
    stamps: Mapping[str, Stamp]
    changed: bool  # whether this is not just what the cache has

    def keep(self, cache: Path, table: Table) -> None:
        """Keep `table`, which has the same files in the order in which they are wanted, for the next time."""
        caching.save(cache, table, self.stamps, self.unusable)


def parse_all(results: Path, cache: Path | None, jobs: int, progress: Progress | None = None) -> Parsed:
    """Return all result files under `results`, what did not change from the folder `cache` where one is given."""
    paths = files.find(results)
    kept = caching.load(cache) if cache else None
    fresh = _unchanged(results, paths, kept)
    changed = [path for path in paths if path not in fresh]
    done = len(paths) - len(changed)
    tables: list[Table] = []
    unusable: dict[str, str] = {}
    stamps: dict[str, Stamp] = {}
    if kept:
        still = [number for number, header in enumerate(kept.table.headers) if header.path in fresh]
        tables.append(kept.table.select(still))
        unusable |= {path: reason for path, reason in kept.unusable.items() if path in fresh}
        stamps |= {path: kept.stamps[path] for path in fresh}
    for table, reasons, seen in _parse(results, changed, jobs, stamped=cache is not None):
        tables.append(table)
        unusable |= reasons
        stamps |= seen
        done += len(table.headers) + len(reasons)
        if progress:
            progress(done, len(paths))
    return Parsed(
        table=columns.concatenate(tables),
        unusable=dict(sorted(unusable.items())),
        stamps=stamps,
        changed=kept is None or bool(changed) or set(kept.stamps) != fresh,
    )


def _unchanged(results: Path, paths: Iterable[str], kept: caching.Kept | None) -> set[str]:
    if kept is None:
        return set()
    return {path for path in paths if path in kept.stamps and kept.stamps[path].proves(results / path, kept.seen_at)}


_Batch = tuple[Table, dict[str, str], dict[str, Stamp]]


def _parse(results: Path, paths: Sequence[str], jobs: int, *, stamped: bool) -> Iterator[_Batch]:
    batches = [paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH)]
    total = sum(_size(results / path) for path in paths)
    if jobs < 2 or total < _WORTH_PROCESSES or len(batches) < 2:
        for batch in batches:
            yield _parse_batch(results, batch, stamped)
        return
    # Not fork: the parent may have threads. A spawned process imports this module and what it needs, no more.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(batches)), mp_context=context) as pool:
        count = len(batches)
        yield from pool.map(_parse_batch, [results] * count, batches, [stamped] * count)


def _parse_batch(results: Path, paths: Sequence[str], stamped: bool) -> _Batch:
    tables, unusable, stamps = [], {}, {}
    for path in paths:
        try:
            content, stamp = caching.read_stamped(results / path)
            if stamped:
                stamps[path] = stamp
            tables.append(files.parse(content, path))
        except files.Unusable as problem:
            unusable[path] = str(problem)
        except OSError as error:
            unusable[path] = f"cannot be read: {error.strerror or error}"
    return columns.concatenate(tables), unusable, stamps


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
