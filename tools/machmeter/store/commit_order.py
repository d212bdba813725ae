"""The order of commits and their tags, from git: one call, however many commits and tags there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from machmeter import git


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a commit stands in its repository."""

    position: int  # parents stand before their children
    date: int  # of the commit (not of its author), milliseconds since 1970
    tags: tuple[str, ...]


def order(repository: Path) -> Mapping[str, Place] | None:
    """Return every commit that any branch or tag of `repository` reaches, by hash, or None where git cannot tell."""
    shown = ["--no-show-signature", "--decorate=full", "--decorate-refs=refs/tags/", "--format=%H%x00%ct%x00%D"]
    answer = git.ask(repository, "log", "--all", "--date-order", "--reverse", "--no-color", *shown)
    if answer is None:
        return None
    found: dict[str, Place] = {}
    for line in answer.splitlines():
        name, _, rest = line.partition("\0")
        date, _, decoration = rest.partition("\0")
        if not date.isdigit():
            continue
        tags = [part.removeprefix("tag: refs/tags/") for part in decoration.split(", ") if part.startswith("tag: ")]
        found[name] = Place(position=len(found), date=1000 * int(date), tags=tuple(sorted(tags)))
    return found


def text_at(repository: Path, commit: str, path: str) -> str | None:
    """Return the file `path` of the project in `repository` as `commit` has it, or None where git has none."""
    return git.ask(repository, "show", f"{commit}:./{path}")
