"""How asv calls its folders, machines and environments, and how the evidence file beside them is called.

In an environment that it built, asv gives its benchmark processes `ASV_CONF_DIR`, `ASV_ENV_NAME` and
`ASV_COMMIT`. With `--python=same` it gives them nothing but the variables of its matrix (tried with asv
0.6.6): folder, machine and commit are then read from asv itself, which is this process's parent, and the
environment's name is composed as asv composes it.
"""

from __future__ import annotations

import hashlib
import json
import platform
from pathlib import Path
from typing import Any

from machmeter import git
from machmeter.errors import BadSetting

CONFIGURATION = "asv.conf.json"


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
    answer = git.ask(project, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return (answer or "").strip() or "unversioned"


def has_uncommitted_changes(project: Path) -> bool | None:
    """Return whether tracked files differ from the commit, or None outside a git repository."""
    answer = git.ask(project, "status", "--porcelain", "--untracked-files=no")
    return None if answer is None else bool(answer.strip())
