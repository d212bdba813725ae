"""Which run of asv this process belongs to: machine, commit and environment of the numbers."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machmeter.asv_names import CONFIGURATION, commit_hash, evidence_file, machine_name, read_configuration
from machmeter.machine import process
from machmeter.machine.process import process_identity


@dataclass(frozen=True, kw_only=True)
class AsvRun:
    """One invocation of asv, seen from inside one of its benchmark processes."""

    run: str  # the same for all processes of one invocation
    machine: str
    commit: str
    environment: str
    stack: str | None  # the label asv stamps on the results; whether it is true is checked elsewhere
    project: Path  # the folder of the repository, where the stacks' pins are
    results: Path  # asv's results folder

    @property
    def evidence_file(self) -> Path:
        """Return the path of the evidence file, beside the results folder and never inside it."""
        return evidence_file(self.results, self.machine, self.commit, self.environment)


def current() -> AsvRun | None:
    """Return the run this process belongs to, or None outside asv."""
    parent = os.getppid()
    arguments = _asv_arguments(process.command_line(parent))
    folder = os.environ.get("ASV_CONF_DIR")
    if not folder and arguments:
        with contextlib.suppress(OSError):  # asv changes to the folder of its configuration
            folder = str(Path(f"/proc/{parent}/cwd").readlink())
    if not folder:
        return None
    # asv resolves the paths of a configuration from that configuration's own folder.
    conf_dir = Path(folder)
    configuration = read_configuration(conf_dir / Path(_option(arguments, "--config") or CONFIGURATION).name)
    repository = conf_dir / str(configuration.get("repo", "."))
    project = repository if repository.is_dir() else conf_dir  # it may also be an address
    commit = os.environ.get("ASV_COMMIT") or commit_hash(project, _option(arguments, "--set-commit-hash") or "HEAD")
    return AsvRun(
        run=os.environ.get("MACHMETER_RUN") or process_identity(parent),
        machine=_option(arguments, "--machine", "-m") or machine_name(),
        commit=commit,
        environment=os.environ.get("ASV_ENV_NAME") or _existing_environment(configuration),
        stack=os.environ.get("STACK"),
        project=project,
        results=conf_dir / configuration.get("results_dir", "results"),
    )


def _existing_environment(configuration: dict[str, Any]) -> str:
    """Return asv's name for an environment that it found rather than built: the interpreter and the matrix."""
    matrix = configuration.get("matrix", {})
    variables = sorted({*matrix.get("env", {}), *matrix.get("env_nobuild", {})})
    interpreter = sys.executable.replace(os.sep, "_")
    parts = [
        "existing",
        f"py{interpreter}",
        *(f"{name}{os.environ[name]}" for name in variables if name in os.environ),
    ]
    return re.sub(r'[<>:"/\\^|?*\x00-\x1f]', "_", "-".join(parts))


def _asv_arguments(command_line: list[str]) -> list[str]:
    """Return what follows `asv` in a command line such as `python -m asv run ...`, nothing where it is not asv."""
    for position, argument in enumerate(command_line[:4]):
        if Path(argument).name == "asv":
            return command_line[position + 1 :]
    return []


def _option(arguments: list[str], *names: str) -> str | None:
    for position, argument in enumerate(arguments):
        for name in names:
            if argument == name and position + 1 < len(arguments):
                return arguments[position + 1]
            if argument.startswith(f"{name}="):
                return argument.removeprefix(f"{name}=")
    return None
