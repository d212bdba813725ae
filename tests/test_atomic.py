"""A file is written whole or not at all, and never through what somebody else has put there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import machmeter
from machmeter import atomic, errors


def test_text_bytes_and_what_writes_itself(tmp_path: Path) -> None:
    """In a folder that need not exist; nothing else is left in it."""
    path = tmp_path / "new" / "file.json"
    for content, expected in (("é", "é".encode()), (b"\0", b"\0"), (lambda to: to.write_text("x"), b"x")):
        atomic.write(path, content, "a test")  # type: ignore[arg-type]
        assert path.read_bytes() == expected
    assert [found.name for found in path.parent.iterdir()] == ["file.json"]
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ENOSPC, errors.DiskFull, "no space left on the disk while writing a test under .*, or set WHERE to"),
        (errno.EDQUOT, errors.DiskFull, "no space left on the disk while writing a test under .*, or set WHERE to"),
        (errno.EROFS, errors.StoreUnwritable, "cannot write a test under .* make it writable, or set WHERE to"),
    ],
)
def test_what_cannot_be_written_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, number: int, kind: type[errors.MachmeterError], words: str
) -> None:
    path = tmp_path / "file.json"
    path.write_text("old")

    def half(to: Path) -> None:
        to.write_text("ne")
        raise OSError(number, os.strerror(number))

    with pytest.raises(kind, match=words):
        atomic.write(path, half, "a test", "WHERE")
    assert {found.name: found.read_text() for found in tmp_path.iterdir()} == {"file.json": "old"}


def test_an_interruption_leaves_nothing_behind(tmp_path: Path) -> None:
    def interrupted(to: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        atomic.replace(tmp_path / "file.json", interrupted)
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("untouched")
    (tmp_path / "file").symlink_to(tmp_path / "secret")
    atomic.write(tmp_path / "file", "mine", "a test")
    assert ((tmp_path / "secret").read_text(), (tmp_path / "file").is_symlink()) == ("untouched", False)


def test_no_module_renames_a_temporary_file_of_its_own() -> None:
    package = Path(machmeter.__file__).parent
    own = {path.name for path in package.rglob("*.py") if "temporary.replace(" in path.read_text(encoding="utf-8")}
    assert own == {"atomic.py"}


def _umask() -> int:
    before = os.umask(0)
    os.umask(before)
    return before
