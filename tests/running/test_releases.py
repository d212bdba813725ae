"""Which versions of a library are offered and found: pure functions of a page of the package index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from packaging.tags import Tag
from pypi_simple import ProjectPage

from machmeter import errors
from machmeter.running import releases
from machmeter.running.releases import Release

TAGS = (Tag("cp311", "cp311", "manylinux_2_28_x86_64"), Tag("py3", "none", "any"))
LINUX, OTHER = "cp311-cp311-manylinux_2_28_x86_64", "cp39-cp39-manylinux_2_28_x86_64"


def wheel(version: str, tags: str = LINUX, day: str | None = "2025-01-01", **more: Any) -> dict[str, Any]:
    return {
        "filename": f"lib-{version}-{tags}.whl",
        "url": "https://index.invalid/x",
        "hashes": {},
        **({"upload-time": f"{day}T10:00:00Z"} if day else {}),
        **more,
    }


PAGE = (
    wheel("1.9.0", day="2025-03-01"),
    wheel("1.10.0", day="2025-05-01"),
    wheel("1.10.0", OTHER, day="2025-04-30"),  # uploaded earlier, but of no use here
    wheel("1.9.1", day="2025-06-01"),  # a mended old release: newer by date, older by number
    wheel("1.11.0rc1", day="2025-07-01"),
    wheel("1.11.0", day="2025-08-01", yanked="broken"),
    wheel("1.12.0", OTHER, day="2025-09-01"),
    wheel("1.13.0", day="2025-10-01", **{"requires-python": ">=3.14"}),
    wheel("not-a-version"),
    {"filename": "lib-1.8.0.tar.gz", "url": "https://index.invalid/y", "hashes": {}},
)


def read(*files: dict[str, Any]) -> tuple[Release, ...]:
    content = {"meta": {"api-version": "1.1"}, "name": "lib", "files": list(files)}
    return releases.read_page(ProjectPage.from_json_data(content), TAGS, "3.11.7")


def test_the_last_releases_are_those_by_date_that_fit_this_interpreter() -> None:
    """No pre-release, nothing withdrawn, nothing without a wheel for this interpreter."""
    assert [(item.version, item.released) for item in releases.last("lib", 2, read(*PAGE))] == [
        ("1.10.0", "2025-05-01"),
        ("1.9.1", "2025-06-01"),
    ]
    assert [item.version for item in releases.last("lib", 1, read(*PAGE))] == ["1.9.1"]
    assert [item.version for item in releases.last("lib", 99, read(*PAGE))] == ["1.9.0", "1.10.0", "1.9.1"]


def test_a_library_that_cannot_be_had_here_is_told() -> None:
    with pytest.raises(errors.VersionUnknown, match="no release of lib with a wheel for this interpreter"):
        releases.last("lib", 2, read(wheel("1.0.0", OTHER)))


def test_without_dates_versions_are_in_order_of_their_numbers() -> None:
    files = [wheel(version, day=None) for version in ("1.10.0", "1.9.0")] + [wheel("1.8.0", day="2026-01-01")]
    assert [(item.version, item.released) for item in read(*files)] == [
        ("1.8.0", "2026-01-01"),
        ("1.9.0", None),
        ("1.10.0", None),
    ]


def test_a_named_version_is_taken_even_where_it_would_not_be_chosen() -> None:
    """Withdrawn, a pre-release, without a wheel: it is measured, or fails with the installer's reason."""
    found = releases.named("lib", ["1.12.0", "1.11.0", "1.11.0rc1", "1.10", "1.10.0"], read(*PAGE))
    assert [item.version for item in found] == ["1.10.0", "1.11.0rc1", "1.11.0", "1.12.0"]
    assert [item.offered for item in found] == [True, False, False, False]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("1.9.5", "lib 1.9.5 does not exist: the nearest are 1.9.0, 1.9.1, 1.10.0"),
        ("0.1", "lib 0.1 does not exist: the nearest are 1.9.0, 1.9.1, 1.10.0"),
        ("99", "lib 99 does not exist: the nearest are 1.9.0, 1.9.1, 1.10.0"),
        ("newest", "'newest' is not a version"),
    ],
)
def test_a_version_that_does_not_exist_is_told_with_its_neighbours(wanted: str, words: str) -> None:
    with pytest.raises(errors.VersionUnknown, match=words) as caught:
        releases.named("lib", ["1.10.0", wanted], read(*PAGE))
    assert caught.value.exit_code == 13


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "asv.conf.json").write_text("{}")
    return tmp_path


def unreachable(library: str) -> tuple[Release, ...]:
    raise ConnectionError("no network")


def test_without_the_index_the_list_of_before_serves(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(releases, "_fetch", lambda library: read(*PAGE))
    first = releases.known("lib", project, said.append)
    assert said == []
    monkeypatch.setattr(releases, "_fetch", unreachable)
    assert releases.known("lib", project, said.append) == first
    assert said[0].startswith("the package index cannot be read (ConnectionError): using the list of 2")


def test_without_index_and_list_named_versions_are_taken_as_they_are(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(releases, "_fetch", unreachable)
    found = releases.choose("lib", ["2.0.0", "1.0.0"], None, project, said.append)
    assert [(item.version, item.released) for item in found] == [("1.0.0", None), ("2.0.0", None)]
    assert said == ["the package index cannot be read (ConnectionError): release dates are unknown"]
    with pytest.raises(errors.VersionUnknown, match="--last needs the package index"):
        releases.choose("lib", [], 3, project, said.append)
    with pytest.raises(errors.VersionUnknown, match="is not a version"):
        releases.choose("lib", ["x"], None, project, said.append)


def test_an_index_without_dates_is_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(releases, "_fetch", lambda library: read(wheel("1.0", day=None)))
    releases.known("lib", project, said.append)
    assert said == ["the package index does not tell when lib was released: versions are in order of their numbers"]


def test_the_list_is_no_machine_of_the_evidence(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies beside the machines' folders, where readers of evidence do not look."""
    monkeypatch.setattr(releases, "_fetch", lambda library: read(*PAGE))
    releases.known("lib", project, print)
    path = releases.cache_path(project, "lib")
    assert path == project / "evidence" / "releases-lib.json"
    assert json.loads(path.read_text())["library"] == "lib"


def test_named_and_last_versions_are_joined(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "_fetch", lambda library: read(*PAGE))
    found = releases.choose("lib", ["1.9.0", "1.9.1"], 2, project, print)
    assert [item.version for item in found] == ["1.9.0", "1.10.0", "1.9.1"]
