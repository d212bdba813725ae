"""Calling git: always for the repository of the folder that was named, in English, and without questions.

In a hook, git tells its children by variables which repository it works in. They go before the folder that a command
names, so that a question about another clone would be answered for that one: they are never passed on.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from machmeter.errors import RunFailed

# What names a repository, or a part of one, instead of the folder.
_ELSEWHERE = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_SHALLOW_FILE"}
_ELSEWHERE |= {"GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX"}
_ELSEWHERE |= {"GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE", "GIT_QUARANTINE_PATH", "GIT_CONFIG"}
_SHOWN = 300  # characters of what git said


def without_repository(variables: Mapping[str, str]) -> dict[str, str]:
    """Return `variables` without those by which git would take another repository than that of its folder."""
    return {name: text for name, text in variables.items() if name not in _ELSEWHERE}


def environment(settings: Sequence[tuple[str, str]] = ()) -> dict[str, str]:
    """Return the variables for git: no other repository, no questions, English, and `settings` unseen by `ps`."""
    variables = without_repository(os.environ)
    before = int(variables.get("GIT_CONFIG_COUNT") or 0)
    for number, (name, value) in enumerate(settings, before):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    variables |= {"GIT_CONFIG_COUNT": str(before + len(settings)), "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    if not sys.stdin or not sys.stdin.isatty():
        variables |= {"GIT_TERMINAL_PROMPT": "0"}
    return variables


def call(
    folder: Path | None, *arguments: str, given: bytes = b"", variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git in `folder` and return what came of it, whatever that is.

    `given` is its input and `variables` its environment, by default that of `environment`. Raises OSError where git
    cannot be started.
    """
    command = ["git", *(("-C", str(folder)) if folder else ()), *arguments]
    known = environment() if variables is None else dict(variables)
    return subprocess.run(command, input=given, env=known, capture_output=True, check=False)


def ask(folder: Path, *arguments: str) -> str | None:
    """Return what git answers in `folder`, or None where it refuses, is not installed, or there is no such folder."""
    if not folder.is_dir():
        return None
    try:
        done = call(folder, *arguments)
    except OSError:
        return None
    return done.stdout.decode("utf-8", errors="replace") if done.returncode == 0 else None


def tell(folder: Path | None, *arguments: str) -> None:
    """Let git do something in `folder`. Raises RunFailed with what it said where it fails."""
    try:
        done = call(folder, *arguments)
    except OSError as error:
        raise RunFailed("git is not installed, or not on the PATH") from error
    if done.returncode != 0:
        said = " ".join(done.stderr.decode("utf-8", errors="replace").split())
        raise RunFailed(f"git {' '.join(arguments)[:80]} failed: {said[-_SHOWN:]}")
