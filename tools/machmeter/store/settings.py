"""`machmeter.toml`: what a project says of its benchmarks that asv's files cannot hold.

[directions]                 # regular expressions over "benchmark" names, the first that matches decides
"track_.*accuracy" = "higher"
"track_.*iterations" = "lower"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machmeter.errors import BadSetting
from machmeter.metrics import Direction

FILE = "machmeter.toml"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a history."""

    directions: tuple[tuple[re.Pattern[str], Direction | None], ...] = ()

    def direction(self, benchmark: str, otherwise: Direction | None) -> Direction | None:
        """Return which way is better for `benchmark`: as set here, else `otherwise`."""
        return next((better for pattern, better in self.directions if pattern.search(benchmark)), otherwise)


def load(path: Path) -> Settings:
    """Return the settings in the file `path`, none where there is no such file. Raises BadSetting."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except (OSError, ValueError) as error:
        raise BadSetting(f"cannot read {path}: {error}") from error
    return parse(content, str(path))


def parse(content: Mapping[str, Any], where: str) -> Settings:
    """Return the settings in `content`, as read from `where`. Raises BadSetting."""
    table = content.get("directions", {})
    if not isinstance(table, dict):
        raise BadSetting(f"{where}: [directions] must be a table of regular expressions")
    found: list[tuple[re.Pattern[str], Direction | None]] = []
    for text, better in table.items():
        if better not in ("lower", "higher", "none"):
            raise BadSetting(f"{where}: the direction of {text!r} is {better!r}: it must be lower, higher or none")
        try:
            found.append((re.compile(text), None if better == "none" else better))
        except re.error as error:
            raise BadSetting(f"{where}: {text!r} is no regular expression: {error}") from error
    return Settings(directions=tuple(found))
