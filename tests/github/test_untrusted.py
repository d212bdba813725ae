"""Measurements from a machine that nobody trusts: what fits is read, everything else is refused in one line."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from helpers import comment_samples as samples
from machmeter.compare.documents import Measurements, Side
from machmeter.errors import ArtifactUnusable
from machmeter.github import untrusted

GOOD = msgspec.json.encode(Measurements(machine="box", base=Side(label="main"), head=Side(label="topic")))


def zipped(path: Path, members: dict[str, bytes], *, link: str | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        if link:
            info = zipfile.ZipInfo(link)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, "/etc/passwd")
    return path


def refused(path: Path, **limit: int) -> str:
    with pytest.raises(ArtifactUnusable) as found:
        untrusted.read(path, **limit)
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 600
    return str(found.value)


def test_a_file_a_folder_and_a_zip_are_read_alike(tmp_path: Path) -> None:
    """A workflow may have unpacked the artifact, or not."""
    (tmp_path / "measurements.json").write_bytes(GOOD)
    (tmp_path / "other.bin").write_bytes(b"x")
    packed = zipped(tmp_path / "artifact.zip", {"measurements.json": GOOD, "results/box/a.json": b"{}"})
    for path in (tmp_path, tmp_path / "measurements.json", packed):
        assert untrusted.read(path).machine == "box"


def test_everything_that_was_measured_comes_through(tmp_path: Path) -> None:
    """Reading is the inverse of writing."""
    measured = samples.all_samples()["regression"]
    (tmp_path / "measurements.json").write_bytes(msgspec.json.encode(measured))
    assert untrusted.read(tmp_path) == measured


def changed(**facts: Any) -> bytes:
    return json.dumps({**json.loads(GOOD), **facts}).encode()


def row(**facts: Any) -> dict[str, Any]:
    rows = [{"cell": "c", "metric": "m", "unit": "s", "better": "lower", **facts}]
    return {"base": {"label": "main", "rows": rows}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"{", "holds no measurements"),
        (b"\xff\xfe{}", "holds no measurements"),
        (b"[" * 100_000, "holds no measurements"),
        (GOOD + b"{}", "holds no measurements"),
        (b"[]", "Expected `object`, got `array`"),
        (b"{}", "missing required field"),
        (changed(schema=2), "Invalid enum value 2 - at `$.schema`"),
        (changed(pull_request=7), "unknown field `pull_request`"),
        (changed(**{"<!-- x -->\n@ann": 1}), "unknown field `<!-- x --> @ann`"),
        (changed(machine=""), "length >= 1 - at `$.machine`"),
        (changed(machine="m" * 301), "length <= 300 - at `$.machine`"),
        (changed(head={"label": "x", "commit": "main"}), "at `$.head.commit`"),
        (changed(head={"label": "x", "commit": "a" * 40 + "\n"}), "at `$.head.commit`"),
        (changed(head={"label": "x", "commit": "\n"}), "at `$.head.commit`"),
        (changed(head={"label": "x", "commit": "A" * 40}), "at `$.head.commit`"),
        (changed(**row(better="sideways")), "at `$.base.rows[0].better`"),
        (changed(**row(processes=[{"round": 0, "order": 0, "value": "fast"}])), "`$.base.rows[0].processes[0].value`"),
        (changed(**row(processes=[{"round": -1, "order": 0, "value": 1.0}])), "`$.base.rows[0].processes[0].round`"),
        (changed(seconds=0.0).replace(b'"seconds": 0.0', b'"seconds": NaN'), "holds no measurements"),
        (changed(seconds=0.0).replace(b'"seconds": 0.0', b'"seconds": 1e999'), "holds no measurements"),
        (changed(seconds=0.0).replace(b'"seconds": 0.0', b'"seconds": 1e301'), "at `$.seconds`"),
        (changed(notes=["n"] * 101), "length <= 100 - at `$.notes`"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_schema_is_refused_with_its_place(tmp_path: Path, content: bytes, words: str) -> None:
    """Sizes, finite numbers, names by pattern, no field that nobody knows."""
    (tmp_path / "measurements.json").write_bytes(content)
    assert words in refused(tmp_path)


def test_a_commit_may_be_a_hash_or_nothing() -> None:
    """The pattern of the schema refuses a newline after either."""
    for commit in ("", "0123456789abcdef" * 2 + "01234567"):
        content = changed(head={"label": "x", "commit": commit})
        assert msgspec.json.decode(content, type=Measurements).head.commit == commit


def test_no_more_than_the_limit_is_read(tmp_path: Path) -> None:
    """A file that is too large is not read at all; by default that is 50 MB."""
    file = tmp_path / "measurements.json"
    with file.open("wb") as stream:
        stream.truncate(untrusted.LIMIT + 1)
    assert "more than 50 MB" in refused(file)
    file.write_bytes(GOOD)
    assert untrusted.read(file, limit=len(GOOD)).machine == "box"
    refused(file, limit=len(GOOD) - 1)


def test_a_zip_that_grows_is_not_unpacked(tmp_path: Path) -> None:
    """Neither one that says how large it is, nor one that lies."""
    path = zipped(tmp_path / "bomb.zip", {"measurements.json": b"0" * 20_000_000})
    assert path.stat().st_size < 50_000
    assert "unpacks to more than 10 MB" in refused(path, limit=10_000_000)
    lying = path.read_bytes().replace((20_000_000).to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    path.write_bytes(lying)
    refused(path, limit=10_000_000)


@pytest.mark.parametrize(
    ("members", "link", "words"),
    [
        ({"measurements.json": GOOD, "../../x": b""}, None, "a path out of its folder: ../../x"),
        ({"measurements.json": GOOD, "/etc/x": b""}, None, "a path out of its folder"),
        ({"measurements.json": GOOD, "a\\..\\x": b""}, None, "a path out of its folder"),
        ({"measurements.json": GOOD}, "secret", "holds a link: secret"),
        ({}, "measurements.json", "holds a link"),
        ({"other.json": GOOD}, None, "holds 0 files called measurements.json"),
        ({f"{number}": b"" for number in range(1001)}, None, "holds 1001 files"),
    ],
)
def test_a_zip_with_anything_odd_is_refused(
    tmp_path: Path, members: dict[str, bytes], link: str | None, words: str
) -> None:
    """Paths out of it, links, no measurements, too many files."""
    assert words in refused(zipped(tmp_path / "a.zip", members, link=link))


def test_half_a_zip_is_refused(tmp_path: Path) -> None:
    """The transfer broke off."""
    path = zipped(tmp_path / "a.zip", {"measurements.json": samples.HEAD.encode() * 1000})
    path.write_bytes(path.read_bytes()[:-30])
    assert "is not a readable zip" in refused(path)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.symlink_to("/etc/hostname"), "links are not followed"),
        (lambda path: os.mkfifo(path), "is not a file"),
        (lambda path: path.mkdir(), "is not a file"),
        (lambda path: None, "is not there: its run ended without measurements"),
    ],
    ids=["link", "pipe", "folder", "nothing"],
)
def test_what_is_no_file_is_not_opened(tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
    """A pipe is not waited for."""
    make(tmp_path / "measurements.json")
    assert words in refused(tmp_path)


def test_a_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """The artifact is where it was unpacked, and nowhere else."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "measurements.json").write_bytes(GOOD)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert "links are not followed" in refused(tmp_path / "link")
