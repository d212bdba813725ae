"""Which versions of a library exist and when they were released, from the package index that pip uses.

The list that was last read is kept beside the evidence, so that a sweep knows the dates without the network.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from machmeter import asv_names
from machmeter.errors import VersionUnknown
from machmeter.measure import dead_processes
from machmeter.text.release_order import in_order

if TYPE_CHECKING:
    from packaging.tags import Tag
    from pypi_simple import ProjectPage

Say = Callable[[str], None]

NEAREST = 4  # how many existing versions are named beside one that does not exist
TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Release:
    """One version of a library, for one interpreter."""

    version: str
    released: str | None  # the day, or None where the index does not tell
    installable: bool  # it has a wheel for this interpreter that was not withdrawn
    prerelease: bool = False
    yanked: bool = False  # withdrawn by its authors

    @property
    def offered(self) -> bool:
        """Return whether it is chosen without being named."""
        return self.installable and not self.prerelease and not self.yanked


def read_page(page: ProjectPage, tags: Iterable[Tag], python: str) -> tuple[Release, ...]:
    """Return the versions on an index's `page`, oldest first, for an interpreter with `tags` and version `python`."""
    from packaging.version import InvalidVersion, Version

    supported = frozenset(tags)
    files: dict[Version, list[Any]] = {}
    names: dict[Version, str] = {}
    for file in page.packages:
        try:
            version = Version(file.version or "")
        except InvalidVersion:
            continue
        files.setdefault(version, []).append(file)
        names.setdefault(version, str(file.version))
    found = []
    for version in sorted(files):
        usable = [file for file in files[version] if _fits(file, supported, python)]
        times = [file.upload_time for file in usable or files[version] if file.upload_time is not None]
        found.append(
            Release(
                version=names[version],
                released=min(times).date().isoformat() if times else None,
                installable=bool(usable),
                prerelease=version.is_prerelease,
                yanked=all(file.is_yanked for file in usable or files[version]),
            )
        )
    return in_order(found)


def _fits(file: Any, supported: frozenset[Tag], python: str) -> bool:
    """Return whether `file` is a wheel for this interpreter."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    if file.package_type != "wheel":
        return False
    try:
        _, _, _, tags = parse_wheel_filename(file.filename)
        allowed = SpecifierSet(file.requires_python or "")
    except (InvalidWheelFilename, InvalidSpecifier):
        return False
    return bool(tags & supported) and allowed.contains(python)


def last(library: str, count: int, known: Iterable[Release]) -> tuple[Release, ...]:
    """Return the `count` newest releases. Raises VersionUnknown where there are none."""
    offered = in_order(release for release in known if release.offered)
    if not offered:
        raise VersionUnknown(f"the index lists no release of {library} with a wheel for this interpreter")
    return offered[-count:]


def named(library: str, versions: Iterable[str], known: Iterable[Release]) -> tuple[Release, ...]:
    """Return the releases called `versions`, also those that would not be chosen. Raises VersionUnknown."""
    from packaging.version import Version

    listed = {Version(release.version): release for release in known}
    chosen = {}
    for text in versions:
        version = _version(text)
        if version not in listed:
            raise VersionUnknown(f"{library} {text} does not exist: the nearest are {_nearest(version, listed)}")
        chosen[version] = listed[version]
    return in_order(chosen.values())


def _version(text: str) -> Any:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text)
    except InvalidVersion:
        raise VersionUnknown(f"{text!r} is not a version: write it like 2024.6.0") from None


def _nearest(wanted: Any, listed: Mapping[Any, Release]) -> str:
    """Return the versions just below and above the `wanted` one."""
    offered = sorted(version for version, release in listed.items() if release.offered)
    below = [version for version in offered if version < wanted]
    above = [version for version in offered if version > wanted]
    low = below[-max(NEAREST // 2, NEAREST - len(above)) :]
    return ", ".join(listed[version].version for version in [*low, *above[: NEAREST - len(low)]]) or "none"


def choose(library: str, versions: list[str], count: int | None, project: Path, say: Say) -> tuple[Release, ...]:
    """Return the releases called `versions` and the last `count`. Raises VersionUnknown.

    Without the index and without a list of before, `versions` are taken as they are: an environment that
    exists already can still be measured.
    """
    listed = known(library, project, say)
    if listed is None:
        if count:
            raise VersionUnknown(f"--last needs the package index, which cannot be read: name versions of {library}")
        return in_order(Release(version=str(_version(text)), released=None, installable=True) for text in versions)
    chosen = {release.version: release for release in named(library, versions, listed)}
    if count:
        chosen |= {release.version: release for release in last(library, count, listed)}
    return in_order(chosen.values())


def known(library: str, project: Path, say: Say) -> tuple[Release, ...] | None:
    """Return the releases of `library` from the index, or as last read; None where neither can be had."""
    path = cache_path(project, library)
    try:
        found = _fetch(library)
    except Exception as error:  # the network and an index fail in many ways; none of them must stop a sweep
        kept, when = _cached(path)
        instead = "release dates are unknown" if kept is None else f"using the list of {when}"
        say(f"the package index cannot be read ({type(error).__name__}): {instead}")
        return kept
    path.parent.mkdir(parents=True, exist_ok=True)
    read = time.strftime("%Y-%m-%d", time.gmtime())
    dead_processes.write_json(path, {"library": library, "read": read, "releases": [asdict(item) for item in found]})
    if not all(release.released for release in found if release.offered):
        say(f"the package index does not tell when {library} was released: versions are in order of their numbers")
    return found


def cache_path(project: Path, library: str) -> Path:
    """Return where the list of releases is kept: beside the machines' evidence folders."""
    return asv_names.evidence_folder(asv_names.results_folder(project)) / f"releases-{library}.json"


def _cached(path: Path) -> tuple[tuple[Release, ...] | None, str]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return tuple(Release(**item) for item in content["releases"]), str(content["read"])
    except (OSError, ValueError, KeyError, TypeError):
        return None, ""


def _fetch(library: str) -> tuple[Release, ...]:
    import pypi_simple
    import requests
    from packaging.tags import sys_tags

    settings = _pip_settings()
    session = requests.Session()
    if certificate := settings.get("cert"):
        session.verify = certificate  # where REQUESTS_CA_BUNDLE is set, requests takes that
    index = settings.get("index-url")
    with pypi_simple.PyPISimple(index or pypi_simple.PYPI_SIMPLE_ENDPOINT, session=session) as client:
        page = client.get_project_page(library, timeout=TIMEOUT_SECONDS)
    return read_page(page, sys_tags(), ".".join(map(str, sys.version_info[:3])))


def _pip_settings() -> dict[str, str]:
    """Return pip's settings by name, the strongest of each: variables, then those of `install`, then global ones."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, str] = {}
    for scope in ("global.", "install.", ":env:."):
        for line in done.stdout.splitlines():
            name, separator, value = line.partition("=")
            if separator and name.startswith(scope):
                found[name.removeprefix(scope)] = value.strip().strip("'\"")
    return found
