"""Which result file a name means: of a commit, a branch or tag, an environment, a swept version, or the file itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from machmeter import asv_names
from machmeter.errors import SideUnknown
from machmeter.store import asv_files


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A result file, by what it says of itself."""

    path: Path
    commit: str
    environment: str
    date: int
    also: tuple[Path, ...] = ()  # further files of the same commit and environment, as the results branch has them


def find(results: Path, machine: str, which: str, *, environment: str | None, repository: Path) -> list[Candidate]:
    """Return the result files that `which` may mean. Raises SideUnknown where there are none."""
    path = Path(which)
    if path.suffix == ".json" and path.is_file():
        try:
            return [_candidate(path)]
        except asv_files.Unusable as problem:
            raise SideUnknown(f"{which} is not an asv result file: it {problem}") from problem
    candidates, damaged = _candidates(results / machine)
    if not candidates:
        others = sorted(item.name for item in results.glob("*/") if item.is_dir())
        known = f": there are results of {', '.join(others)}, use --machine" if others else ""
        raise SideUnknown(f"there are no results of the machine {machine} in {results}{known}{damaged}")
    matching = _matching(candidates, which, repository)
    if environment:
        matching = [item for item in matching if environment in (item.environment, _short(item.environment))]
    if not matching:
        where = f" in the environment {environment}" if environment else ""
        raise SideUnknown(
            f"there are no results of {which!r}{where} on {machine}: name a commit, branch or tag that was measured, "
            f"an environment, a swept version such as openvino==2026.4.1, or a result file{damaged}"
        )
    return matching


def one(matching: list[Candidate], which: str) -> Candidate:
    """Return the file of the newest commit among `matching`. Raises SideUnknown where it has several."""
    commit = max(matching, key=lambda item: item.date).commit
    of_commit = [item for item in matching if item.commit == commit]
    environments = list(dict.fromkeys(item.environment for item in of_commit))
    if len(environments) > 1:
        names = ", ".join(map(_short, environments))
        raise SideUnknown(f"{which!r} was measured in several environments ({names}): choose one with --environment")
    return replace(of_commit[0], also=tuple(item.path for item in of_commit[1:]))


def _candidates(folder: Path) -> tuple[list[Candidate], str]:
    """Return the result files of a machine, and what to say of those that cannot be read."""
    found: list[Candidate] = []
    damaged: list[str] = []
    for path in sorted(folder.glob("*.json")):
        if path.name == "machine.json":
            continue
        try:
            found.append(_candidate(path))
        except asv_files.Unusable as problem:
            damaged.append(f"; {path} {problem}")
    return found, "".join(damaged[:1]) + (f" and {len(damaged) - 1} more cannot be read" if len(damaged) > 1 else "")


def _candidate(path: Path) -> Candidate:
    """Return what a result file says of itself. Raises asv_files.Unusable."""
    header = asv_files.look_at(path)
    return Candidate(
        path=path,
        commit=header.commit,
        environment=header.environment or path.stem.partition("-")[2],
        date=header.date,
    )


def _matching(candidates: list[Candidate], which: str, repository: Path) -> list[Candidate]:
    """Return the files that `which` may mean: of an environment, a swept version, or a commit."""
    if found := [item for item in candidates if item.environment == which]:
        return found
    library, _, version = which.partition("==")
    if version:
        pinned = re.compile(rf"(?:^|-){re.escape(library)}{re.escape(version)}(?:-|$)")
        return [item for item in candidates if pinned.search(item.environment)]
    if re.fullmatch(r"[0-9a-f]{4,40}", which):
        found = [item for item in candidates if item.commit.startswith(which)]
        if found:
            hashes = sorted({item.commit for item in found})
            if len(hashes) > 1:
                listed = ", ".join(name[:12] for name in hashes[:3])
                raise SideUnknown(f"{which!r} could be several commits ({listed}): write more digits")
            return found
    resolved = "" if which.startswith("-") else asv_names.commit_hash(repository, which)
    return [item for item in candidates if item.commit == resolved]


def _short(environment: str) -> str:
    """Return the last part of an environment's name: "STACKcpu" of "virtualenv-py3.11-STACKcpu"."""
    return environment.rpartition("-")[2]
