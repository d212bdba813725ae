"""What this machine, or a folder of downloaded artifacts, has for the results branch. Nothing here is changed."""

from __future__ import annotations

import copy
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from machmeter import asv_names
from machmeter.errors import NoResults, ResultsUnfit
from machmeter.json_shape import Json
from machmeter.measure import dead_processes
from machmeter.results_branch import checks, paths
from machmeter.results_branch.checks import Unfit

# `machmeter pr` writes these above its results, which compare two commits and are no history.
_MEASUREMENTS, _RUN = "measurements.json", "run.json"

_DEEPEST = 3  # folders between the one that was named and one with results
_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Store:
    """A folder of results, and the one of the evidence beside it. One of the two may be missing."""

    results: Path
    evidence: Path


@dataclass(kw_only=True)
class Collected:
    """Files by their path on the branch, and what the derived files there must say."""

    files: dict[str, bytes] = field(default_factory=dict)
    sources: dict[str, Path] = field(default_factory=dict)
    commits: dict[str, str] = field(default_factory=dict)
    cells: dict[str, int] = field(default_factory=dict)  # of each evidence file
    benchmarks: Json = field(default_factory=dict)
    machines: dict[str, bytes] = field(default_factory=dict)
    guessed: dict[str, bytes] = field(default_factory=dict)  # machines that have no note here
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)  # each a file that is damaged, and how

    def check(self) -> None:
        """Raise ResultsUnfit where anything is damaged: then nothing at all may be pushed."""
        if self.problems:
            raise ResultsUnfit(
                f"{shortened(self.problems)}: move it out of the folder, or have it measured again; nothing was pushed"
            )


def shortened(problems: list[str]) -> str:
    """Return the first few of `problems` in one line."""
    more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return "; ".join(problems[:_SHOWN]) + more


def of_project(project: Path) -> Store:
    """Return the folders of the project around an asv configuration."""
    results = asv_names.results_folder(project)
    return Store(results=results, evidence=asv_names.evidence_folder(results))


def in_folder(folder: Path) -> Store:
    """Return the folders of a store in `folder`, be they there or not."""
    return Store(results=folder / paths.RESULTS, evidence=folder / paths.EVIDENCE)


def find(folder: Path, notes: list[str]) -> list[Store]:
    """Return the stores in `folder`: itself, or else each folder below it that has results. No link is followed.

    Raises NoResults where there is no such folder, and ResultsUnfit where it has or is a part of what `machmeter pr`
    left: on a branch that only grows, such results could never be taken back.
    """
    if not folder.is_dir():
        raise NoResults(f"there is no folder {folder}")
    _check_history(folder.resolve().parent, folder)
    before = len(notes)
    found = list(_find(folder, _DEEPEST, notes))
    if not found and len(notes) == before:
        notes.append(f"left out: {folder} has no folder 'results' or 'evidence', and no folder below it has")
    return found


def _find(folder: Path, deeper: int, notes: list[str]) -> Iterator[Store]:
    _check_history(folder, folder)
    store = in_folder(folder)
    if _is_folder(store.results) or _is_folder(store.evidence):
        yield store
        return
    if deeper:
        for below in sorted(folder.iterdir()):
            if _is_folder(below) and not below.name.startswith("."):
                yield from _find(below, deeper - 1, notes)


def _check_history(marked: Path, folder: Path) -> None:
    """Raise ResultsUnfit, naming `folder`, where files in `marked` say that `machmeter pr` measured it."""
    signs = [marked / _MEASUREMENTS] if os.path.lexists(marked / _MEASUREMENTS) else []
    signs += [marked / _RUN] if _is_comparison(marked / _RUN) else []
    if signs:
        raise ResultsUnfit(
            f"{folder} was measured by 'machmeter pr' (there is {signs[0]}): it compares two commits and is no "
            "history; name only folders without such results. Nothing was pushed"
        )


def _is_comparison(path: Path) -> bool:
    """Return whether `path` is what `machmeter pr` notes first: other programs have files of that name too."""
    try:
        told = checks.strict(read_file(path))
    except Unfit:
        return False
    return isinstance(told, dict) and {"base", "head"} <= told.keys()


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def collect(stores: Iterable[Store]) -> Collected:
    """Return everything that `stores` have for the branch, and what of them is damaged."""
    found = Collected()
    for store in stores:
        for path in _machine_folders(store.results, found.problems):
            _take(found, path, _take_results)
        for path in _machine_folders(store.evidence, found.problems):
            _take(found, path, _take_evidence)
        _take_benchmarks(found, store.results / "benchmarks.json")
    return found


def read_file(path: Path) -> bytes:
    """Return the bytes of the plain file `path`. Raises Unfit for a link, a device, or one that is too large."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        what = "is a link" if path.is_symlink() else f"cannot be read ({error.strerror})"
        raise Unfit(what) from error
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Unfit("is no plain file")
        return stream.read(paths.LARGEST_FILE + 1)


def _machine_folders(top: Path, problems: list[str]) -> Iterator[Path]:
    if not _is_folder(top):
        return
    for path in sorted(top.iterdir()):
        if path.is_symlink():
            problems.append(f"{path} is a link")
        elif path.is_dir() and not path.name.startswith("."):
            if paths.fit_machine(path.name):
                yield path
            else:
                problems.append(f"{str(path)!r} cannot be the name of a machine")


def _take(found: Collected, folder: Path, how: Callable[[Collected, Path], None]) -> None:
    for path in sorted(folder.glob("*.json")):
        if path.name.startswith("."):
            continue
        try:
            how(found, path)
        except Unfit as problem:
            found.problems.append(f"{path} {problem}")


def _take_results(found: Collected, path: Path) -> None:
    machine = path.parent.name
    if path.name == paths.MACHINE:
        content = read_file(path)
        checks.machine(content, machine)
        found.machines[machine] = content
        return
    stem, content = _named(path)
    told = checks.result(content, machine, stem)
    found.guessed[machine] = _dump(checks.machine_note(machine, told.facts))  # asv reads no folder without a note
    _add(found, "result", path, stem, content, told.commit)


def _take_evidence(found: Collected, path: Path) -> None:
    machine = path.parent.name
    stem, content = _named(path)
    told = checks.evidence_file(content, machine, stem)
    if paths.local_name(path.name) != (stem, None):  # it came from the branch
        _add(found, "evidence", path, stem, content, told["commit"], cells=_cells(told))
        return
    for run, part in split(_settled(told, path.parent)).items():
        if is_running(part["runs"][run]):
            found.notes.append(f"left for the next push: a run in {path} is not over")
        else:
            _add(found, "evidence", path, stem, _dump(part), told["commit"], cells=_cells(part))


def _settled(told: Json, folder: Path) -> Json:
    """Return evidence with dead processes settled. Of the traces that it names only those in `folder` are read."""
    for record in (item for run in told["runs"].values() for cell in run["cells"].values() for item in cell.values()):
        trace = record.get("trace")
        if record["status"] == "running" and not (isinstance(trace, str) and _is_trace(Path(trace), folder)):
            record.pop("trace", None)
    try:
        return dead_processes.settle(told)
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise Unfit("has a running process that is not described") from error


def _is_trace(path: Path, folder: Path) -> bool:
    return path.parent == folder.resolve() / ".traces" and path.is_file() and not path.is_symlink()


def _cells(content: Json) -> int:
    return sum(len(run["cells"]) for run in content["runs"].values())


def split(content: Json) -> dict[str, Json]:
    """Return one evidence file for each run of `content`, by the run's name."""
    around = {key: value for key, value in content.items() if key != "runs"}
    return {run: {**copy.copy(around), "runs": {run: told}} for run, told in content["runs"].items()}


def is_running(run: Json) -> bool:
    """Return whether a process of `run` is at work now."""
    return any(record["status"] == "running" for cell in run["cells"].values() for record in cell.values())


def _named(path: Path) -> tuple[str, bytes]:
    """Return the stem of a file's name, and its bytes. Raises Unfit where the two disagree."""
    named = paths.local_name(path.name)
    if named is None or not paths.fit_name(path.name):
        raise Unfit("is not called <commit>-<environment>.json")
    stem, noted = named
    content = read_file(path)
    if noted and paths.content_hash(content) != noted:
        raise Unfit("was changed: its bytes are not those that its name was made of")
    return stem, content


def _add(
    found: Collected, kind: paths.Kind, path: Path, stem: str, content: bytes, commit: str, *, cells: int = 0
) -> None:
    where = paths.path_of(kind, path.parent.name, stem, content)
    if not paths.place(where):
        raise Unfit("has too long a name")
    found.files[where] = content
    found.sources[where] = path
    found.commits[where] = commit
    found.cells[where] = cells


def _take_benchmarks(found: Collected, path: Path) -> None:
    if not os.path.lexists(path):
        return
    try:
        found.benchmarks |= checks.benchmarks(read_file(path))
    except Unfit as problem:
        found.problems.append(f"{path} {problem}")


def _dump(content: Any) -> bytes:
    """Return the bytes of strict JSON, the same for the same content: a file's name is made of them."""
    return json.dumps(content, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()


def merge_benchmarks(first: Json, second: Json) -> bytes:
    """Return asv's benchmarks.json with all of both; where both describe a benchmark, as the `second` does."""
    return json.dumps({**first, **second, "version": 2}, indent=4, sort_keys=True, allow_nan=False).encode()
