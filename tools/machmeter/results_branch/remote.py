"""The results branch of a remote, through a bare repository of its own in a temporary folder.

The user's clone is only asked where the remote is and how to log in there: fetching into it would make it shallow and
partial. Nothing is ever checked out, and of the branch only its tree is fetched, not the files.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from machmeter import git
from machmeter.errors import BadSetting, RemoteRefused, RemoteUnreachable, StoreUnwritable
from machmeter.results_branch import paths as paths_module

# Of the clone's own configuration, what reaching a remote may need: proxies, headers, rewritten addresses, logins.
_NEEDED = r"^(http|https|url|credential|ssh|protocol|core\.sshcommand|core\.askpass|core\.gitproxy)(\.|$)"
# A line that stalls this long ends: a job must not hang for hours.
_PATIENCE = (("http.lowSpeedLimit", "1000"), ("http.lowSpeedTime", "60"))
_NO_RIGHTS = (
    "error: 403",
    "error: 401",
    "Authentication failed",
    "Permission denied",
    "could not read Username",
    "denied to",
)
_BATCH = 200
_LONGEST_WORD = 300

DEFAULT_NAME, DEFAULT_EMAIL = "machmeter", "machmeter@localhost"


@dataclass(frozen=True, kw_only=True)
class Remote:
    """Where a branch is, and the settings of the clone that reaching it needs. All but the name may hold secrets."""

    name: str
    fetch_from: str
    push_to: str
    settings: tuple[tuple[str, str], ...]
    committer: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A file in a tree."""

    mode: str
    object: str


class Raced(Exception):
    """Somebody else moved the branch first."""


def find_remote(project: Path, name: str) -> Remote:
    """Return the remote called `name` in the clone `project`, or the repository at the address `name`.

    Raises RemoteUnreachable.
    """

    def ask(*arguments: str) -> str:
        answer = _call(project, *arguments)
        return answer.stdout.decode(errors="replace").rstrip("\n") if answer.returncode == 0 else ""

    fetch_from = ask("remote", "get-url", name)
    push_to = ask("remote", "get-url", "--push", name)
    if not fetch_from:
        if "/" not in name or (":" not in name and not Path(name).is_dir()):
            raise RemoteUnreachable(
                f"there is no remote {without_login(name)!r} in {project.resolve()} and no repository there: "
                "'git remote -v' lists the remotes, --remote takes one or an address"
            )
        fetch_from = push_to = name
    told = ask("config", "--local", "--includes", "--null", "--get-regexp", _NEEDED)
    pairs = [item.partition("\n") for item in told.split("\0") if item]
    return Remote(
        name=without_login(name),
        fetch_from=_address(project, fetch_from),
        push_to=_address(project, push_to),
        settings=tuple((key, value) for key, _, value in pairs),
        committer=(ask("config", "user.name") or DEFAULT_NAME, ask("config", "user.email") or DEFAULT_EMAIL),
    )


def _address(project: Path, address: str) -> str:
    """Return `address`, from wherever git is called: a path may be relative to the clone."""
    path = project / address
    return str(path.resolve()) if "://" not in address and path.is_dir() else address


def _call(
    folder: Path | None, *arguments: str, given: bytes = b"", variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    try:
        return git.call(folder, *arguments, given=given, variables=variables)
    except FileNotFoundError as error:
        raise RemoteUnreachable("git is not installed, or not on the PATH") from error


def without_login(text: str) -> str:
    """Return `text` without the user and password of the addresses in it."""
    return re.sub(r"://[^@/\s]*@", "://", text)


def plain(text: str) -> str:
    """Return what git or a remote said, as one line without logins and control characters."""
    lines = [line.strip() for line in text.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("hint:", "To ", "Done"))]
    line = without_login("; ".join(kept))
    return "".join(char if char.isprintable() else "?" for char in line)[:_LONGEST_WORD] or "git gave no reason"


class Branch:
    """One branch of a remote, and a bare repository for what is fetched of it and added to it."""

    def __init__(self, remote: Remote, name: str, folder: Path) -> None:
        self.remote, self.name, self.folder = remote, name, folder
        addresses = (("remote.origin.url", remote.fetch_from), ("remote.origin.pushurl", remote.push_to))
        self.variables = git.environment([*_PATIENCE, *remote.settings, *addresses])
        names = dict(zip(("NAME", "EMAIL"), remote.committer, strict=True))
        for role in ("AUTHOR", "COMMITTER"):
            for key, value in names.items():
                self.variables.setdefault(f"GIT_{role}_{key}", value)
        self.git("init", "--quiet", "--bare", "--template=")
        self.git("config", "gc.auto", "0")

    def try_git(self, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run git here and return what came of it. Raises RemoteUnreachable."""
        return _call(self.folder, *arguments, given=given, variables=self.variables)

    def git(self, *arguments: str, given: bytes = b"") -> bytes:
        """Run git here and return its output. Raises StoreUnwritable: what can fail is the disk."""
        answer = self.try_git(*arguments, given=given)
        if answer.returncode:
            said = plain(answer.stderr.decode(errors="replace"))
            raise StoreUnwritable(f"git cannot work in {self.folder} ({said}): set TMPDIR to a folder with space")
        return answer.stdout

    def ask_remote(self, *arguments: str, given: bytes = b"") -> bytes:
        """Run a git command that asks the remote, and return its output. Raises RemoteUnreachable, RemoteRefused."""
        answer = self.try_git(*arguments, given=given)
        if answer.returncode:
            raise self._failed(answer.stderr.decode(errors="replace"))
        return answer.stdout

    def _failed(self, said: str) -> RemoteUnreachable | RemoteRefused:
        """Return what to raise where git could not speak to the remote."""
        if any(sign in said for sign in _NO_RIGHTS):
            return RemoteRefused(f"{self.remote.name!r} refuses this login: {plain(said)}; the results are still here")
        return RemoteUnreachable(
            f"cannot reach {self.remote.name!r}: {plain(said)}; nothing is lost here, so try again"
        )

    def fetch(self, *, history: bool = False) -> str | None:
        """Fetch the newest commit with its tree but no files (all of it with `history`); None where there is none."""
        reference = f"refs/heads/{self.name}"
        if not self.ask_remote("ls-remote", "origin", reference).strip():
            return None
        sparing = [] if history else ["--depth=1", "--filter=blob:none"]
        self.ask_remote("fetch", "--quiet", "--no-tags", *sparing, "origin", f"+{reference}:refs/fetched")
        return self.git("rev-parse", "--verify", "refs/fetched^{commit}").decode().strip()

    def entries(self, commit: str) -> dict[str, Entry]:
        """Return the files of `commit` by path."""
        found = {}
        for item in self.git("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
            about, _, path = item.partition(b"\t")
            if path:
                mode, _, name = about.decode().split(" ")
                found[path.decode("utf-8", errors="surrogateescape")] = Entry(mode=mode, object=name)
        return found

    def read(self, objects: Iterable[str]) -> Iterator[tuple[str, bytes | None]]:
        """Yield the bytes of each of `objects`, None for one that is too large; what is not here is fetched at once."""
        wanted = list(dict.fromkeys(objects))
        self._fetch_missing(wanted)
        for start in range(0, len(wanted), _BATCH):
            part = wanted[start : start + _BATCH]
            sizes = dict(self._sizes(part))
            small = [name for name in part if sizes[name] <= paths_module.LARGEST_FILE]
            yield from ((name, None) for name in part if name not in small)
            stream = self.ask_remote("cat-file", "--batch", given="\n".join([*small, ""]).encode())
            position = 0
            for name in small:
                begin = stream.index(b"\n", position) + 1
                position = begin + sizes[name] + 1
                yield name, stream[begin : position - 1]

    def _sizes(self, objects: Sequence[str]) -> Iterator[tuple[str, int]]:
        told = self.ask_remote("cat-file", "--batch-check", given="\n".join([*objects, ""]).encode()).decode()
        for name, line in zip(objects, told.splitlines(), strict=True):
            kind, _, size = line.removeprefix(f"{name} ").partition(" ")
            if kind != "blob":
                raise RemoteUnreachable(f"{self.remote.name!r} did not give an object that is on the branch ({line})")
            yield name, int(size)

    def _fetch_missing(self, wanted: Sequence[str]) -> None:
        """Fetch in one go those objects that are not here: git itself would fetch each by itself."""
        options = ["--objects", "--no-walk", "--missing=print"]
        listed = self.git("rev-list", *options, "refs/fetched").decode("utf-8", errors="replace").splitlines()
        missing = {line[1:] for line in listed if line.startswith("?")}
        if needed := [name for name in wanted if name in missing]:
            options = ["--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none", "--stdin"]
            given = "\n".join([*needed, ""]).encode()
            self.ask_remote("-c", "fetch.negotiationAlgorithm=noop", "fetch", *options, "origin", given=given)

    def write(self, contents: Mapping[str, bytes]) -> dict[str, str]:
        """Put files into this repository, and return the name of each one's object."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            paths = {}
            for number, (path, content) in enumerate(contents.items()):
                paths[path] = Path(folder) / str(number)
                paths[path].write_bytes(content)
            listed = "".join(f"{path}\n" for path in paths.values()).encode()
            told = self.git("hash-object", "-w", "--no-filters", "--stdin-paths", given=listed).decode().split()
        return dict(zip(contents, told, strict=True))

    @staticmethod
    def object_name(content: bytes) -> str:
        """Return the name of the object that a file with these bytes is."""
        return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()

    def commit(self, parent: str | None, objects: Mapping[str, str], message: str) -> str:
        """Return a commit on top of `parent` in which each path of `objects` is that object, and all else as it was."""
        self.git("read-tree", parent or "--empty")  # into the index of the bare repository: there is no work tree
        lines = b"".join(f"100644 {name}\t{path}\0".encode() for path, name in objects.items())
        self.git("update-index", "-z", "--index-info", given=lines)
        tree = self.git("write-tree", "--missing-ok").decode().strip()
        parents = ["-p", parent] if parent else []
        return self.git("commit-tree", tree, *parents, "-F", "-", given=message.encode()).decode().strip()

    def push(self, commit: str) -> None:
        """Let the branch be `commit` if it still is its parent. Raises Raced, RemoteRefused, RemoteUnreachable.

        Without force, git itself refuses whatever is not on top of what is there; so does the remote.
        """
        answer = self.try_git("push", "--porcelain", "--no-verify", "origin", f"{commit}:refs/heads/{self.name}")
        if answer.returncode == 0:
            return
        said = answer.stderr.decode(errors="replace")
        status = [line for line in answer.stdout.decode(errors="replace").splitlines() if line.startswith("!")]
        if not status:
            raise self._failed(said)
        reason = status[0].split("\t")[-1]
        lost = ("fetch first", "non-fast-forward", "stale info", "lock ref", "already exists", "failed to update ref")
        if any(sign in reason for sign in lost) and "hook declined" not in reason:
            raise Raced(reason)
        told = plain("\n".join([reason, *(line for line in said.splitlines() if line.startswith("remote:"))]))
        raise RemoteRefused(
            f"{self.remote.name!r} does not take the push to {self.name!r}: {told}; "
            "nothing was pushed, and the results are still here"
        )


def check_name(branch: str) -> None:
    """Raise BadSetting where no branch can have this name, RemoteUnreachable where git is not installed."""
    answer = _call(None, "check-ref-format", f"refs/heads/{branch}")
    if answer.returncode or branch.startswith("-"):
        raise BadSetting(f"{branch!r} cannot be the name of a branch")
