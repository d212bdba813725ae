"""The rungs of the tuning ladder, read from data: what each adds to which, and the configuration that makes.

The project's own are in `rungs.toml`; a file named by `MACHMETER_RUNGS` adds to them or replaces them by name.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from machmeter.errors import BadSetting, UnknownName
from machmeter.json_shape import Json, decode, optional
from machmeter.workload.launch import Allocator, Launch, Launcher

VARIABLE = "MACHMETER_RUNGS"
BUILT_IN = Path(__file__).with_name("rungs.toml")

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_CELL_KEYS = {"backend": str, "precision": str, "batch": int, "options": dict, "seconds": int}
LAUNCH_KEYS = {item.name for item in fields(Launch)}


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One step: what it adds to the rung it stands on."""

    name: str
    title: str
    on: str | None
    adds: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that holds on a rung. What none says is left to the default."""

    backend: str = ""
    precision: str = ""
    batch: int = 0
    options: Mapping[str, str] | None = optional()
    seconds: int | None = optional()
    allocator: Allocator | None = optional()
    huge_pages: bool | None = optional()
    launcher: Launcher | None = optional()
    instances: int | None = optional()


def load() -> dict[str, Rung]:
    """Return every rung by name, in the order of the files. Raises BadSetting where a file makes no sense."""
    rungs = _read(BUILT_IN)
    if extra := os.environ.get(VARIABLE):
        rungs |= _read(Path(extra).expanduser())
    for rung in rungs.values():
        settings(rung, rungs)
    return rungs


def get(name: str, rungs: Mapping[str, Rung]) -> Rung:
    """Return the rung called `name`. Raises UnknownName with the known names."""
    if name not in rungs:
        raise UnknownName(f"unknown rung {name!r}: known rungs are {', '.join(rungs)}")
    return rungs[name]


def _read(path: Path) -> dict[str, Rung]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadSetting(f"cannot read rungs from {path}: {error}") from error
    rungs = {}
    for name, described in content.items():
        where = f"rung {name!r} in {path}"
        if not _NAME.fullmatch(name):
            raise BadSetting(f"{where}: a name is of small letters, digits and hyphens")
        if not isinstance(described, dict) or set(described) - {"title", "on", "adds"}:
            raise BadSetting(f"{where} must be a table with `title`, `on` and `adds`, and nothing else")
        adds = described.get("adds", {})
        if not isinstance(adds, dict):
            raise BadSetting(f"{where}: `adds` must be a table")
        if unknown := set(adds) - set(_CELL_KEYS) - LAUNCH_KEYS:
            known = ", ".join(sorted({*_CELL_KEYS, *LAUNCH_KEYS}))
            raise BadSetting(f"{where} adds {', '.join(sorted(unknown))}: it can add {known}")
        for key, kind in _CELL_KEYS.items():
            if key in adds and (not isinstance(adds[key], kind) or isinstance(adds[key], bool)):
                raise BadSetting(f"{where}: {key} is {adds[key]!r}, it must be of type {kind.__name__}")
            if key in adds and kind is int and adds[key] < 1:
                raise BadSetting(f"{where}: {key} is {adds[key]!r}, it must be 1 or more")
        rungs[name] = Rung(name=name, title=str(described.get("title", name)), on=described.get("on"), adds=adds)
    return rungs


def settings(rung: Rung, rungs: Mapping[str, Rung]) -> Settings:
    """Return everything that holds on `rung`: what it adds, over what all rungs below it add.

    Raises BadSetting where a rung below is missing, stands on itself, or no rung says what to run.
    """
    path = [rung]
    while path[-1].on is not None:
        below = rungs.get(str(path[-1].on))
        if below is None:
            raise BadSetting(f"rung {path[-1].name!r} stands on {path[-1].on!r}, which is not a rung")
        if below in path:
            raise BadSetting(f"rung {rung.name!r} stands on itself: {' on '.join(item.name for item in path)}")
        path.append(below)
    found: Json = {}
    for step in reversed(path):
        adds = dict(step.adds)
        if "backend" in adds and adds["backend"] != found.get("backend"):
            found.pop("options", None)
        if "options" in adds:
            adds["options"] = {**found.get("options", {}), **adds["options"]}
        found |= adds
    if missing := {"backend", "precision", "batch"} - set(found):
        raise BadSetting(f"rung {rung.name!r} does not say its {', '.join(sorted(missing))}, nor does any below it")
    return decode(Settings, found)
