"""Files that several processes make and write, each its share of the work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from machmeter.errors import from_os_error
from machmeter.store import parallel

File = tuple[str, str | bytes]  # name below the site, and content
Job = Callable[[], Iterable[File]]  # makes some files


@dataclass(frozen=True, kw_only=True)
class Written:
    """What was written."""

    files: int
    bytes: int


def write(folder: Path, jobs: Sequence[Job], processes: int, say: Callable[[int], None]) -> Written:
    """Write under `folder` what all `jobs` make; `say` is told how many of them are done.

    Raises StoreUnwritable or DiskFull.
    """

    def do(part: Sequence[Job]) -> tuple[int, Written]:
        return len(part), _write(folder, (file for job in part for file in job()))

    done, files, size = 0, 0, 0
    for count, written in parallel.each_part(do, jobs, processes):
        done, files, size = done + count, files + written.files, size + written.bytes
        say(done)
    return Written(files=files, bytes=size)


def _write(folder: Path, files: Iterable[File]) -> Written:
    made: set[Path] = set()
    count = size = 0
    for name, content in files:
        path = folder / name
        # JSON may hold half a character; no file of ours does.
        raw = content.encode("utf-8", "replace") if isinstance(content, str) else content
        try:
            if path.parent not in made:
                path.parent.mkdir(parents=True, exist_ok=True)
                made.add(path.parent)
            path.write_bytes(raw)
        except OSError as error:
            raise from_os_error(error, folder, "the site", None) from error
        count, size = count + 1, size + len(raw)
    return Written(files=count, bytes=size)
