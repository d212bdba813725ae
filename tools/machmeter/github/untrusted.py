"""Read measurements that an untrusted machine has made: a file, a folder or a zip, of which nothing is believed.

Nothing is unpacked, no link is followed, no more than `LIMIT` bytes are read, and what does not fit the schema is
refused in one line. The text inside stays foreign: whoever shows it makes it inert.
"""

from __future__ import annotations

import io
import os
import stat
import zipfile
from pathlib import Path

from machmeter.compare import documents
from machmeter.compare.documents import Measurements
from machmeter.errors import ArtifactUnusable, MeasurementsUnreadable
from machmeter.text.inert import plain

NAME = "measurements.json"
LIMIT = documents.LARGEST  # bytes, of a file and of what a zip unpacks to
_MEMBERS = 1000  # of a zip


def read(path: Path, *, limit: int = LIMIT) -> Measurements:
    """Return the measurements in `path`: a JSON file, a folder or a zip that has `measurements.json`.

    Raises ArtifactUnusable.
    """
    if path.is_dir() and not path.is_symlink():
        path = path / NAME
    content = _content(path, limit)
    if content[:4] == b"PK\x03\x04":
        content = _unzipped(content, path, limit)
    try:
        return documents.parse(content, _shown(path))
    except MeasurementsUnreadable as error:
        raise ArtifactUnusable(plain(str(error), 500)) from error


def _content(path: Path, limit: int) -> bytes:
    try:
        # A pipe must not be waited for, and a link must not be followed out of the folder.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise ArtifactUnusable(f"{_shown(path)} is not there: its run ended without measurements") from None
    except OSError as error:
        link = " (links are not followed)" if path.is_symlink() else ""
        raise ArtifactUnusable(f"{_shown(path)} cannot be read: {error.strerror}{link}") from error
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode):
        os.close(handle)
        raise ArtifactUnusable(f"{_shown(path)} is not a file")
    with os.fdopen(handle, "rb") as stream:
        if facts.st_size > limit:
            raise ArtifactUnusable(f"{_shown(path)} has {facts.st_size / 1e6:.0f} MB: more than {limit / 1e6:.0f} MB")
        return stream.read(limit + 1)[:limit]


def _unzipped(packed: bytes, path: Path, limit: int) -> bytes:
    """Return the one member of a zip that counts, without unpacking anything onto the disk."""
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            members = archive.infolist()
            if len(members) > _MEMBERS:
                raise ArtifactUnusable(f"{_shown(path)} holds {len(members)} files: more than {_MEMBERS}")
            for member in members:
                parts = member.filename.replace("\\", "/").split("/")
                if ".." in parts or parts[0] == "" or ":" in parts[0]:
                    raise ArtifactUnusable(f"{_shown(path)} holds a path out of its folder: {plain(member.filename)}")
                if stat.S_ISLNK(member.external_attr >> 16):
                    raise ArtifactUnusable(f"{_shown(path)} holds a link: {plain(member.filename)}")
            found = [member for member in members if member.filename == NAME]
            if len(found) != 1:
                raise ArtifactUnusable(f"{_shown(path)} holds {len(found)} files called {NAME}: it needs one")
            if found[0].file_size > limit:
                raise ArtifactUnusable(f"{_shown(path)} unpacks to more than {limit / 1e6:.0f} MB")
            with archive.open(found[0]) as stream:
                return stream.read(limit)  # and never more than it says
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise ArtifactUnusable(f"{_shown(path)} is not a readable zip: {plain(str(error))}") from error


def _shown(path: Path) -> str:
    return plain(str(path), 200)
