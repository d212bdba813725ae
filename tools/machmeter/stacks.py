"""Stacks: named sets of pinned library versions, and running asv in an environment that has one of them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from machmeter import bench, derived
from machmeter.errors import BadSetting, RunFailed, StackUnpinned, UnknownName

INSTALL_SECONDS = 3600.0  # some stacks have gigabytes

# Files in requirements/ that are no stacks: what asv expands, and what people and commands need beside one.
_OTHERS = ("stack", "tools", "dev")

_PIN = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*(\[[\w, -]+\])?==[^\s;#*]+\s*(;.*|#.*)?$")

# Options of asv that would measure something else than the stack that the results are labelled with.
_REFUSED = ("--config", "--python", "-E", "--environment", "--set-commit-hash")


def names(project: Path) -> list[str]:
    """Return the names of the stacks of `project`."""
    return sorted(path.stem for path in (project / "requirements").glob("*.txt") if path.stem not in _OTHERS)


def check(project: Path, stack: str) -> None:
    """Raise UnknownName or StackUnpinned where `stack` is no pinned stack of `project`.

    A requirement without one exact version would install something else tomorrow, under the same label.
    """
    known = names(project)
    if stack not in known:
        raise UnknownName(f"unknown stack {stack!r}: known stacks are {', '.join(known) or 'none'}")
    path = project / "requirements" / f"{stack}.txt"
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if text and not text.startswith("#") and not _PIN.match(text):
            where = path.relative_to(project)
            raise StackUnpinned(f"{where}, line {number}: {text!r} is not pinned: write NAME==VERSION")


def run(project: Path, stack: str, arguments: list[str]) -> bool:
    """Run `asv run` with `arguments` in an environment with `stack`, the newest commit if they name none.

    The results are kept with all others of the project. Returns whether every benchmark succeeded.
    """
    derived.check_project(project)
    check(project, stack)
    for argument in arguments:
        if argument.split("=")[0] in _REFUSED:
            raise BadSetting(f"{argument.split('=')[0]} is set by --stack: leave it out, or use plain 'asv run'")
    _check_committed(project, stack)
    changes = {"matrix": {"env": {"STACK": [stack]}}, "install_timeout": INSTALL_SECONDS}
    configuration = derived.write(project, stack, changes)
    bench.know_machine(project)
    code = bench.asv_run(["--config", str(configuration), *bench.RECORDING, *arguments], project, os.environ)
    if code not in bench.SUCCESS:
        raise RunFailed(f"asv stopped with exit code {code}: what it said is above")
    return code == 0


def _check_committed(project: Path, stack: str) -> None:
    """Raise BadSetting where the newest commit lacks the stack: asv installs the pins of the commit it measures."""
    file = f"requirements/{stack}.txt"
    command = ["git", "-C", str(project), "cat-file", "-e", f"HEAD:./{file}"]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        raise BadSetting(f"{file} is not committed, and asv installs the pins of the commit it measures: commit it")
