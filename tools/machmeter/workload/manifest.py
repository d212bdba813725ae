"""What the store says of an artifact in `manifest.json`, beside its files, and what a record of its use keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from machmeter.json_shape import Json, JsonValue, optional

SCHEMA = 1

Identity = Mapping[str, JsonValue]
Details = Mapping[str, JsonValue]  # what a recipe says of its artifact, in its own words


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """What made an artifact."""

    versions: Mapping[str, str | None] = field(default_factory=dict)  # of packages, None: it was missing
    parents: tuple[str, ...] = ()  # digests
    cpu_features: tuple[str, ...] | None = None
    threads: int | None = None


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """One file of an artifact."""

    sha256: str
    size: int  # bytes


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What `manifest.json` says of the artifact beside it."""

    schema: int = SCHEMA
    kind: str
    key: str
    identity: Json
    toolchain: Toolchain
    digest: str  # of all files
    files: Mapping[str, StoredFile]
    details: Json
    build_seconds: float = 0.0
    prepare_seconds: float  # with the steps before it
    built_on: str  # CPU model
    created: str = ""


@dataclass(frozen=True, kw_only=True)
class UsedArtifact:
    """What a record of a measurement says of the artifact it used."""

    kind: str = ""
    key: str = ""
    digest: str = ""
    made_with: Mapping[str, str | None] = field(default_factory=dict)  # versions of packages
    built_on: str = ""  # CPU model
    details: Json | None = optional()  # what the recipe says of it
