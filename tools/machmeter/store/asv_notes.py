"""asv's notes beside its results: what benchmarks.json says of benchmarks, and machine.json of a machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machmeter.json_shape import Json

BENCHMARKS, MACHINE = "benchmarks.json", "machine.json"


@dataclass(frozen=True, kw_only=True)
class Described:
    """What benchmarks.json says of one benchmark, None or () where it does not."""

    kind: str | None = None
    unit: str | None = None
    param_names: tuple[str, ...] = ()
    version: str | None = None


def benchmarks(results: Path) -> tuple[dict[str, Described], list[str]]:
    """Return what the store's benchmarks.json says, and what of it cannot be used."""
    try:
        content = json.loads((results / BENCHMARKS).read_bytes())
    except FileNotFoundError:
        return {}, []
    except (OSError, ValueError, RecursionError):
        return {}, ["is not valid JSON: units and parameter names are guessed"]
    if not isinstance(content, dict):
        return {}, ["is no object: units and parameter names are guessed"]
    found = {name: _described(item) for name, item in content.items() if isinstance(item, dict)}
    odd = [name for name, item in content.items() if not isinstance(item, dict) and name != "version"]
    return found, [f"{name}: is no description of a benchmark" for name in sorted(odd)]


def in_full(results: Path) -> dict[str, Json]:
    """Return all that asv itself says of each benchmark, in its own words; {} where nobody can read it."""
    try:
        content = json.loads((results / BENCHMARKS).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {name: item for name, item in content.items() if isinstance(item, dict)}


def _described(item: Mapping[str, Any]) -> Described:
    names = item.get("param_names")
    return Described(
        kind=_text(item.get("type")),
        unit=_text(item.get("unit")),
        param_names=tuple(str(name) for name in names) if isinstance(names, list) else (),
        version=_text(item.get("version")),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def machine(results: Path, folder: str) -> dict[str, str] | None:
    """Return what asv noted of the machine in `folder`: {} where it noted nothing, None where nobody can read it."""
    try:
        content = json.loads((results / folder / MACHINE).read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    return {str(name): str(value) for name, value in content.items() if name != "version"}
