"""Stacks: named sets of pinned library versions, and running asv in an environment that has one of them."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from pathlib import Path

from machmeter import git
from machmeter.errors import BadSetting, RunFailed, StackUnpinned, UnknownName
from machmeter.running import asv, configurations, waiting
from machmeter.running.selection import Part
from machmeter.running.waiting import Say
from machmeter.workload.artifacts import Store

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
            file = path.relative_to(project)
            raise StackUnpinned(f"{file}, line {number}: {text!r} is not pinned: write NAME==VERSION")


def run(project: Path, stack: str, arguments: list[str]) -> bool:
    """Run `asv run` with `arguments` in an environment with `stack`, the newest commit if they name none.

    The results are kept with all others of the project. Returns whether every benchmark succeeded.
    Raises BadSetting or RunFailed.
    """
    configurations.check_project(project)
    check(project, stack)
    for argument in arguments:
        if argument.split("=")[0] in _REFUSED:
            raise BadSetting(f"{argument.split('=')[0]} is set by --stack: leave it out, or use plain 'asv run'")
    _check_committed(project, stack)
    asv.check(arguments)
    asv.know_machine(project)
    code = asv.run([*_settings(project, stack), *arguments], project, os.environ)
    if code not in asv.SUCCESS:
        raise RunFailed(f"asv stopped with exit code {code}: what it said is above")
    return code == 0


def measure(project: Path, stack: str, selected: Part, say: Say) -> Counter[str]:
    """Measure `selected` in the environment of `stack`, as `bench.run` does in this one.

    Raises BadSetting or RunFailed.
    """
    check(project, stack)
    _check_committed(project, stack)
    patterns = [argument for pattern in selected.patterns for argument in ("-b", pattern)]
    with (
        waiting.hear(say, len(selected.cells)) as (listener, told),
        (project / asv.LOG).open("a", encoding="utf-8") as output,
    ):
        variables = {**os.environ, **told, "MACHMETER_STORE": str(Store().root.resolve())}
        code = asv.run([*_settings(project, stack), *patterns], project, variables, output)
        if code not in asv.SUCCESS:
            raise RunFailed(f"asv stopped with exit code {code} in the stack {stack}: {output.name} says why")
        return listener.conclude(project, told[waiting.RUN], selected.cells)


def exists(project: Path, stack: str) -> bool:
    """Return whether `stack` has an environment already, so that measuring in it installs no gigabytes."""
    from asv.environment import get_env_name

    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    name = get_env_name("virtualenv", python, {}, {("env", "STACK"): stack})
    return configurations.environment_folder(project, str(name)).is_dir()


def _settings(project: Path, stack: str) -> list[str]:
    """Return the arguments that make asv use the environment of `stack`."""
    changes = {"matrix": {"env": {"STACK": [stack]}}, "install_timeout": INSTALL_SECONDS}
    return ["--config", str(configurations.write(project, stack, changes)), *asv.RECORDING]


def _check_committed(project: Path, stack: str) -> None:
    """Raise BadSetting where the newest commit lacks the stack: asv installs the pins of the commit it measures."""
    file = f"requirements/{stack}.txt"
    if git.ask(project, "cat-file", "-e", f"HEAD:./{file}") is None:
        raise BadSetting(f"{file} is not committed, and asv installs the pins of the commit it measures: commit it")
