"""What the files of the results branch are called, and what a file's name says.

    results-branch.json                             the marker: this branch is ours
    results/benchmarks.json                         derived: descriptions of all benchmarks, by name
    results/<machine>/machine.json                  derived: asv's note of the machine
    results/<machine>/<commit8>-<env>.<hash>.json   asv's own file, untouched
    evidence/<machine>/<commit8>-<env>.<hash>.json  the evidence of one run

The hash is of the file's bytes: two files with one name are one file, and a file that was changed is found out.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Literal

RESULTS, EVIDENCE = "results", "evidence"
MARKER = "results-branch.json"
BENCHMARKS = f"{RESULTS}/benchmarks.json"
MACHINE = "machine.json"

# GitHub warns of larger files, and refuses those of twice this size.
LARGEST_FILE = 50 << 20

Kind = Literal["result", "evidence", "machine", "benchmarks", "marker"]

_HASHED = re.compile(r"(?P<stem>[0-9a-z]{8}-.+)\.(?P<hash>[0-9a-f]{16})\.json", re.DOTALL)
_PLAIN = re.compile(r"(?P<stem>[0-9a-z]{8}-.+)\.json", re.DOTALL)
# What some file system, shell or page would stumble over.
_UNFIT = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]')
_LONGEST_NAME = 255  # bytes, on every file system that matters
_LONGEST_MACHINE = 100


@dataclass(frozen=True, kw_only=True)
class Place:
    """What a path on the branch is."""

    kind: Kind
    machine: str = ""
    stem: str = ""  # <commit8>-<environment>
    hash: str = ""


def content_hash(content: bytes) -> str:
    """Return what a file with these bytes has in its name."""
    return hashlib.sha256(content).hexdigest()[:16]


def path_of(kind: Kind, machine: str, stem: str, content: bytes) -> str:
    """Return the path on the branch of a result or an evidence file."""
    top = RESULTS if kind == "result" else EVIDENCE
    return f"{top}/{machine}/{stem}.{content_hash(content)}.json"


def place(path: str) -> Place | None:
    """Return what `path` (relative to the branch's root) is, or None where the branch has no such files."""
    if path == MARKER:
        return Place(kind="marker")
    if path == BENCHMARKS:
        return Place(kind="benchmarks")
    top, _, rest = path.partition("/")
    machine, slash, name = rest.partition("/")
    if top not in (RESULTS, EVIDENCE) or not slash or not fit_machine(machine):
        return None
    if top == RESULTS and name == MACHINE:
        return Place(kind="machine", machine=machine)
    named = _HASHED.fullmatch(name)
    if named is None or not fit_name(name):
        return None
    kind: Kind = "result" if top == RESULTS else "evidence"
    return Place(kind=kind, machine=machine, stem=named["stem"], hash=named["hash"])


def local_name(name: str) -> tuple[str, str | None] | None:
    """Return the stem and the hash, if it has one, of a file's `name` in a local folder; None where it is no run's."""
    if named := _HASHED.fullmatch(name):
        return named["stem"], named["hash"]
    plain = _PLAIN.fullmatch(name)
    return (plain["stem"], None) if plain else None


def fit_machine(name: str) -> bool:
    """Return whether a folder may be called like the machine `name` on every system."""
    return 0 < len(name) <= _LONGEST_MACHINE and fit_name(name) and not {name[0], name[-1]} & {".", " "}


def fit_name(name: str) -> bool:
    """Return whether a file may be called `name` on every system."""
    return not _UNFIT.search(name) and len(name.encode()) <= _LONGEST_NAME
