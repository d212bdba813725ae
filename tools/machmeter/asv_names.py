"""What asv is doing around this process: which run, machine, commit and environment the numbers belong to.

In an environment that it built, asv gives its benchmark processes `ASV_CONF_DIR`, `ASV_ENV_NAME` and
`ASV_COMMIT`. With `--python=same` it gives them nothing but the variables of its matrix (tried with asv
0.6.6): folder, machine and commit are then read from asv itself, which is this process's parent, and the
environment's name is composed as asv composes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machmeter.errors import BadSetting
from machmeter.machine import host

CONFIGURATION = "asv.conf.json"


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


def evidence_file(results: Path, machine: str, commit: str, environment: str) -> Path:
    """Return where the evidence of one machine, commit and environment is kept."""
    return evidence_folder(results) / machine / f"{file_stem(commit, environment)}.json"


def file_stem(commit: str, environment: str) -> str:
    """Return what the files of one commit and environment are called, by asv's own rule for its result files."""
    if len(environment) >= 128:
        environment = "env-" + hashlib.md5(environment.encode()).hexdigest()
    return f"{commit[:8]}-{environment}"


def evidence_folder(results: Path) -> Path:
    """Return the folder of the evidence: beside asv's results folder, never inside it."""
    return results.parent / "evidence"


def current() -> AsvRun | None:
    """Return the run this process belongs to, or None outside asv."""
    parent = os.getppid()
    arguments = _asv_arguments(host.command_line(parent))
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


def read_configuration(path: Path) -> dict[str, Any]:
    """Read an asv configuration. Raises BadSetting where it is missing or not plain JSON."""
    try:
        configuration: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadSetting(f"cannot read {path} ({error}): it must be plain JSON, without comments") from error
    if not isinstance(configuration, dict) or not isinstance(configuration.get("results_dir", ""), str):
        raise BadSetting(f"{path} is not an asv configuration: it must be an object, with a text as results_dir")
    return configuration


def results_folder(project: Path) -> Path:
    """Return asv's results folder of `project`."""
    return project / str(read_configuration(project / CONFIGURATION).get("results_dir", "results"))


def _noted_machines() -> dict[str, dict[str, Any]]:
    """Return what asv has noted of machines in the user's home, by name."""
    try:
        noted = json.loads(Path("~/.asv-machine.json").expanduser().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: facts for name, facts in noted.items() if isinstance(facts, dict)}


def knows_machine() -> bool:
    """Return whether asv would start on this machine without asking who it is.

    It knows it by its host name, or because it is the only machine it knows.
    """
    noted = _noted_machines()
    return platform.node() in noted or len(noted) == 1


def machine_name() -> str:
    """Return the name under which asv files this machine's results, by asv's own rule."""
    node, noted = platform.node(), _noted_machines()
    if node not in noted and len(noted) == 1:
        return str(next(iter(noted.values())).get("machine", node))
    return str(noted.get(node, {}).get("machine", node))


def commit_hash(project: Path, name: str = "HEAD") -> str:
    """Return the hash of the commit called `name`, or "unversioned" where there is none."""
    command = ["git", "-C", str(project), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unversioned"


def has_uncommitted_changes(project: Path) -> bool | None:
    """Return whether tracked files differ from the commit, or None outside a git repository."""
    command = ["git", "-C", str(project), "status", "--porcelain", "--untracked-files=no"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return bool(answer.stdout.strip()) if answer.returncode == 0 else None


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


def _process_status(pid: int) -> list[str]:
    """Return the fields of /proc/<pid>/stat from the state on, or nothing where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return []


def is_running(pid: int, identity: str) -> bool:
    """Return whether the process that `process_identity` called `identity` still runs: a zombie does not."""
    return process_identity(pid) == identity and _process_status(pid)[:1] not in ([], ["Z"], ["X"])


def process_identity(pid: int) -> str:
    """Return a name for process `pid` that no other process had or will have on this machine."""
    started = (_process_status(pid)[19:20] or ["unknown"])[0]
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        boot = "unknown"
    return hashlib.sha256(f"{boot} {pid} {started}".encode()).hexdigest()[:16]
