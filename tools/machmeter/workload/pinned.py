"""What is pinned for a process: its stack's versions, and, in a sweep, a library's version and the artifacts.

Whether the label of a stack is true is told by comparing its pins with what is installed.

`MACHMETER_SWEPT` says the version, as JSON; the evidence keeps it with the run, and what is installed must be that.

Found by what they are made from, artifacts of two environments differ: an environment with another OpenVINO
would convert an IR of its own. `MACHMETER_ARTIFACTS` names a file that settles it. The store then returns the
listed artifact of the same identity, whatever made it, and builds none.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from machmeter import atomic
from machmeter.errors import BadSetting
from machmeter.json_shape import JsonValue

if TYPE_CHECKING:
    from machmeter.workload.artifacts import Artifact

VARIABLE = "MACHMETER_ARTIFACTS"
SWEPT = "MACHMETER_SWEPT"
SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One listed artifact: where the store keeps it, the hash of its files, and what it is."""

    kind: str
    key: str
    digest: str
    identity: Mapping[str, JsonValue]


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The listed artifacts, and the file that lists them."""

    path: Path
    entries: tuple[Entry, ...] = ()

    def find(self, kind: str, identity: Mapping[str, JsonValue]) -> Entry | None:
        """Return the entry of an artifact, or None where none is listed."""
        wanted = json.loads(json.dumps(dict(identity)))
        return next((entry for entry in self.entries if entry.kind == kind and entry.identity == wanted), None)

    def replaced(self, artifacts: Iterable[Artifact]) -> Listing:
        """Return the list with `artifacts`, each in the place of one with the same identity."""
        new = {(artifact.kind, artifact.key): artifact for artifact in artifacts}
        kept = [
            entry
            for entry in self.entries
            if not any(item.kind == entry.kind and item.identity == entry.identity for item in new.values())
        ]
        added = [
            Entry(kind=item.kind, key=item.key, digest=item.digest, identity=dict(item.identity))
            for item in new.values()
        ]
        return Listing(path=self.path, entries=(*kept, *added))

    def write(self) -> None:
        """Write the list by an atomic rename."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        content = {"schema": SCHEMA, "artifacts": [asdict(entry) for entry in self.entries]}
        atomic.replace(self.path, json.dumps(content, indent=1, sort_keys=True, allow_nan=False))


def read(path: Path) -> Listing:
    """Return the list in `path`. Raises BadSetting where it cannot be used."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA:
            raise ValueError(f"schema {content['schema']!r} instead of {SCHEMA}")
        entries = tuple(
            Entry(kind=str(item["kind"]), key=str(item["key"]), digest=str(item["digest"]), identity=item["identity"])
            for item in content["artifacts"]
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadSetting(f"{VARIABLE} names {path}, which is not a list of artifacts ({error}): unset it") from error
    return Listing(path=path, entries=entries)


def current() -> Listing | None:
    """Return the list that this process was given, or None."""
    path = os.environ.get(VARIABLE)
    return read(Path(path)) if path else None


@dataclass(frozen=True, kw_only=True)
class Swept:
    """The version of a library that a process is asked to measure."""

    library: str = ""
    version: str = ""
    released: str | None = None  # the day

    def falsehood(self, installed: Mapping[str, str]) -> str | None:
        """Return why this version is not the one measured, or None where it is `installed`."""
        have = installed.get(self.library)
        if have is not None and have.split("+")[0] == self.version:
            return None
        return f"labelled {self.library} {self.version}, but {have or 'none'} is installed"


def swept() -> Swept | None:
    """Return the version that this process was told to measure, or None outside a sweep. Raises BadSetting."""
    text = os.environ.get(SWEPT)
    if not text:
        return None
    try:
        told = json.loads(text)
        return Swept(library=str(told["library"]), version=str(told["version"]), released=told.get("released"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadSetting(f"{SWEPT} is {text!r}: it must be an object with library and version; unset it") from error


def installed() -> dict[str, str]:
    """Return the version of every installed distribution: the stack as it really is."""
    return {
        str(item.metadata["Name"]).lower().replace("_", "-"): item.version
        for item in metadata.distributions()
        if item.metadata["Name"]
    }


def pins(text: str) -> dict[str, str]:
    """Return the versions that the requirements file with this `text` pins, by library."""
    found = (re.match(r"^([A-Za-z0-9._-]+)==([^\s;#]+)", line.strip()) for line in text.splitlines())
    return {pin[1].lower().replace("_", "-"): pin[2] for pin in found if pin}


def mismatches(project: Path, stack: str | None) -> tuple[str, ...] | None:
    """Compare what is installed with the pins of `stack`. Return None where there are no pins to compare.

    With `--python=same` asv stamps the stack's name on the results without installing it: only this
    comparison tells whether the name is true.
    """
    file = project / "requirements" / f"{stack}.txt"
    if stack is None or not file.is_file():
        return None
    have = installed()
    return tuple(
        f"{name}: pinned {wanted}, installed {have.get(name, 'nothing')}"
        for name, wanted in pins(file.read_text(encoding="utf-8")).items()
        if name not in have or have[name].split("+")[0] != wanted
    )
