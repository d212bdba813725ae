"""Configurations of asv that are derived from the project's own, so that all results stay in one store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from machmeter import asv_names
from machmeter.errors import BadSetting, from_os_error

FOLDER = Path(".asv/conf")

# What asv resolves from the configuration's folder, and its own defaults.
_PATHS = {"benchmark_dir": "benchmarks", "env_dir": "env", "results_dir": "results", "html_dir": "html"}


def write(project: Path, name: str, changes: Mapping[str, Any]) -> Path:
    """Write the configuration `name`: the project's own with `changes`, measuring HEAD; return its path.

    It lies in a folder of its own, so its paths are absolute: results, environments and the repository are
    those of the project.
    """
    base = asv_names.read_configuration(project / asv_names.CONFIGURATION)
    repository = project / str(base.get("repo", "."))
    configuration = {
        **base,
        **{key: str((project / str(base.get(key, default))).resolve()) for key, default in _PATHS.items()},
        "repo": str(repository.resolve()) if repository.is_dir() else base["repo"],
        "branches": ["HEAD"],
        **changes,
    }
    path = (project / FOLDER / f"{name}.json").resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(configuration, indent=1, allow_nan=False), encoding="utf-8")
    except OSError as error:
        raise from_os_error(error, path.parent, "a configuration of asv", None) from error
    return path


def environment_folder(project: Path, name: str) -> Path:
    """Return where asv keeps the environment called `name`: its own rule."""
    base = asv_names.read_configuration(project / asv_names.CONFIGURATION)
    return project / str(base.get("env_dir", _PATHS["env_dir"])) / hashlib.md5(name.encode()).hexdigest()


def check_project(project: Path) -> None:
    """Raise BadSetting where `project` is not a clone of a project with an asv configuration."""
    if not (project / asv_names.CONFIGURATION).is_file():
        raise BadSetting(f"no {asv_names.CONFIGURATION} in {project}: run this in a clone of the project")
