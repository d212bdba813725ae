"""The artifact store: what is slow to make is made once, found by what it was made from, and checked by hash.

Layout under the root (`MACHMETER_STORE`, default the user's cache folder):

    <kind>/<key>/manifest.json   what it is, what it was made from, the hash of each file
    <kind>/<key>/...             the files
    <kind>/<key>.lock            held while somebody builds it

The key is a hash over the artifact's identity and its toolchain, so it is known before anything is built and
is the same at every commit. The digest is a hash over the files: what a sweep uses to prove that all
versions of a runtime were given the same bytes.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from machmeter.errors import CellFailed, Unsupported, from_os_error
from machmeter.json_shape import Json, decode, encode
from machmeter.machine import host
from machmeter.workload import pinned
from machmeter.workload.manifest import SCHEMA, Details, Identity, Manifest, StoredFile, Toolchain, UsedArtifact
from machmeter.workload.pinned import Entry, Listing


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What an artifact is (`identity`) and what made it (`toolchain`). Together they are its key.

    `requires` names the packages without which it cannot be built; in an environment that lacks them the
    newest artifact of the same identity is used.
    """

    kind: str
    identity: Identity
    packages: tuple[str, ...] = ()  # distributions whose versions shape the content
    parents: tuple[Artifact, ...] = ()
    cpu_dependent: bool = False  # compiled or tuned for this CPU's instruction sets
    threads: int | None = None  # set where the thread count is compiled in
    given: bool = False  # weights and inputs: everybody has them, so making them is not preparation

    def versions(self) -> dict[str, str | None]:
        """Return the installed version of each of `packages`, None where it is missing."""
        return {name: installed_version(name) for name in self.packages}

    def toolchain(self) -> Toolchain:
        """Return what makes it here: package versions, parents' digests and, where it matters, the CPU."""
        return Toolchain(
            versions=self.versions(),
            parents=tuple(parent.digest for parent in self.parents),
            cpu_features=host.cpu().features if self.cpu_dependent else None,
            threads=self.threads,
        )

    def key(self) -> str:
        """Return the name under which the store keeps it: 20 hexadecimal digits."""
        described = {
            "schema": SCHEMA,
            "kind": self.kind,
            "identity": self.identity,
            "toolchain": encode(self.toolchain()),
        }
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:20]


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A built artifact: its folder and its manifest."""

    folder: Path
    kind: str
    key: str
    digest: str
    size: int  # bytes of all files
    prepare_seconds: float  # cold: this step and all steps before it, as measured when they were made
    details: Details = field(default_factory=dict)
    identity: Identity = field(default_factory=dict)
    toolchain: Toolchain = Toolchain()
    built_on: str = ""  # CPU model

    def path(self, name: str) -> Path:
        """Return the path of the file `name` inside the artifact."""
        return self.folder / name

    def store(self) -> Store:
        """Return the store that keeps this artifact, and what it was made from."""
        return Store(self.folder.parents[1])

    def evidence(self) -> UsedArtifact:
        """Return what a record of a measurement should say of the artifact it used."""
        return UsedArtifact(
            kind=self.kind,
            key=self.key,
            digest=self.digest,
            made_with=self.toolchain.versions,
            built_on=self.built_on,
            details=dict(self.details) or None,
        )


def installed_version(distribution: str) -> str | None:
    """Return the installed version of `distribution`, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def default_root() -> Path:
    """Return the store's folder: `MACHMETER_STORE`, or `machmeter` in the user's cache folder."""
    if configured := os.environ.get("MACHMETER_STORE"):
        return Path(configured).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "machmeter"


def _hash(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def say(message: str) -> None:
    """Tell the user about the store, beside the results rather than among them."""
    print(f"machmeter: {message}", file=sys.stderr, flush=True)


class Store:
    """The artifacts under one folder. Safe for several processes at once.

    With a list of artifacts (see `listing`) nothing is built but what is compiled for this CPU, which every
    version of a runtime does for itself.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = default_root() if root is None else root
        self.listed = pinned.current()

    def obtain(self, recipe: Recipe, build: Callable[[Path], Details | None]) -> Artifact:
        """Return the artifact of `recipe`, building it with `build(folder)` if the store lacks it.

        `build` writes the files into the folder it is given and may return details for the manifest.
        Raises StoreUnwritable or DiskFull where the store cannot take it, Unsupported where a package is
        missing and nobody built it before, CellFailed where there is a list and the artifact is not as listed.
        """
        if self.listed is not None and not recipe.cpu_dependent:
            return self._as_listed(recipe, self.listed)
        missing = [name for name, version in recipe.versions().items() if version is None]
        if missing:
            found = self.latest(recipe)
            if found is None:
                raise Unsupported(
                    f"needs {', '.join(missing)} to make its {recipe.kind} artifact, and the store has none yet"
                )
            return found
        key = recipe.key()
        folder = self.root / recipe.kind / key
        if folder.exists() and (found := self._open(folder)):
            return found
        try:
            with self._locked(folder):
                # Another process may have built it while this one waited for the lock.
                if folder.exists():
                    if found := self._open(folder):
                        return found
                    say(f"the {recipe.kind} artifact {key} is damaged: building it again")
                    shutil.rmtree(folder)
                return self._build(recipe, folder, build)
        except OSError as error:
            raise from_os_error(error, self.root, f"a {recipe.kind} artifact") from error

    def _as_listed(self, recipe: Recipe, listed: Listing) -> Artifact:
        entry = listed.find(recipe.kind, recipe.identity)
        if entry is None:
            raise CellFailed(f"no {recipe.kind} artifact of this cell is listed in {listed.path}")
        found = self.open_listed(entry)
        if found is None:
            raise CellFailed(f"the {entry.kind} artifact {entry.key} is not as listed in {listed.path}: it was changed")
        return found

    def open_listed(self, entry: Entry) -> Artifact | None:
        """Return the artifact of a list's `entry`, or None where it is gone or has other bytes."""
        found = self.find(entry.kind, entry.key)
        return found if found and found.digest == entry.digest else None

    def find(self, kind: str, key: str) -> Artifact | None:
        """Return the undamaged artifact called `key`, or None."""
        return self._open(self.root / kind / key)

    def find_content(self, kind: str, digest: str) -> Artifact | None:
        """Return an undamaged artifact of `kind` with the content that `digest` names, or None."""
        found = (self._open(manifest.parent) for manifest in sorted((self.root / kind).glob("*/manifest.json")))
        return next((artifact for artifact in found if artifact and artifact.digest == digest), None)

    def latest(self, recipe: Recipe) -> Artifact | None:
        """Return the newest undamaged artifact with the identity of `recipe`, whatever made it, or None."""
        wanted = json.loads(json.dumps(dict(recipe.identity)))
        features = host.cpu().features if recipe.cpu_dependent else None
        candidates = []
        for manifest in (self.root / recipe.kind).glob("*/manifest.json"):
            found = self._open(manifest.parent)
            if (
                found
                and found.identity == wanted
                and found.toolchain.cpu_features == features
                and found.toolchain.threads == recipe.threads
            ):
                candidates.append((manifest.stat().st_mtime, found))
        return max(candidates, key=lambda pair: pair[0], default=(0.0, None))[1]

    @contextlib.contextmanager
    def _locked(self, folder: Path) -> Iterator[None]:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _build(self, recipe: Recipe, folder: Path, build: Callable[[Path], Details | None]) -> Artifact:
        unfinished = folder.with_suffix(".unfinished")
        if unfinished.exists():  # a build that was killed; the lock is ours, so nobody is still at it
            shutil.rmtree(unfinished)
        unfinished.mkdir()
        try:
            start = time.perf_counter()
            details = dict(build(unfinished) or {})
            seconds = time.perf_counter() - start
            text = json.dumps(
                encode(_manifest(recipe, unfinished, folder.name, details, seconds)),
                indent=1,
                sort_keys=True,
                allow_nan=False,
            )
            (unfinished / "manifest.json").write_text(text, encoding="utf-8")
            unfinished.rename(folder)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        opened = self._open(folder)
        assert opened is not None, "an artifact was damaged while it was being written"
        return opened

    def _open(self, folder: Path) -> Artifact | None:
        """Return the artifact in `folder`, or None where its manifest or any of its files is damaged."""
        try:
            manifest = decode(Manifest, json.loads((folder / "manifest.json").read_text(encoding="utf-8")))
            for name, described in manifest.files.items():
                path = folder / name
                if path.stat().st_size != described.size or _hash(path) != described.sha256:
                    return None
            return Artifact(
                folder=folder,
                kind=manifest.kind,
                key=manifest.key,
                digest=manifest.digest,
                size=sum(described.size for described in manifest.files.values()),
                prepare_seconds=manifest.prepare_seconds,
                details=manifest.details,
                identity=manifest.identity,
                toolchain=manifest.toolchain,
                built_on=manifest.built_on,
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None


def _manifest(recipe: Recipe, folder: Path, key: str, details: Json, seconds: float) -> Manifest:
    """Return the manifest of what `recipe` built into `folder` within `seconds`."""
    files = {
        str(path.relative_to(folder)): StoredFile(sha256=_hash(path), size=path.stat().st_size)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    return Manifest(
        kind=recipe.kind,
        key=key,
        identity=dict(recipe.identity),
        toolchain=recipe.toolchain(),
        digest=hashlib.sha256(json.dumps(encode(files), sort_keys=True).encode()).hexdigest(),
        files=files,
        details=details,
        build_seconds=seconds,
        prepare_seconds=0.0 if recipe.given else seconds + sum(parent.prepare_seconds for parent in recipe.parents),
        built_on=host.cpu().model,
        created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )
