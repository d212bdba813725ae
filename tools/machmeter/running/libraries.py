"""The libraries whose versions can be swept: what is measured of each, and what is installed beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from machmeter import backends
from machmeter.backends import grid
from machmeter.errors import BadSetting, NothingSelected, UnknownName
from machmeter.workload.cells import Cell
from machmeter.workload.models import Model

DEFAULT_BATCHES = (1, 8)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What old versions of a library need and their own metadata forgets to say."""

    below: str  # versions older than this
    requirement: str


@dataclass(frozen=True, kw_only=True)
class Library:
    """A library, named as the package index names it. The first of its backends is the one that is measured unasked."""

    name: str
    precisions: tuple[str, ...]  # measured unasked
    backends: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)  # measured unasked, by the name of the option
    rules: tuple[Rule, ...] = ()
    environment_bytes: int = 500_000_000  # on disk, for one version

    def requirements(self, project: Path, version: str) -> list[str]:
        """Return what pip is given for `version`: the names in `requirements/runtime-<library>.txt` without pins.

        They are resolved in one call, so that an old version gets the NumPy or torchvision that goes with it.
        Raises BadSetting.
        """
        from packaging.version import Version

        path = project / "requirements" / f"runtime-{self.name}.txt"
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise BadSetting(f"cannot read {path} ({error.strerror}): it names what {self.name} needs") from error
        names = [found[0] for line in lines if (found := re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line))]
        rules = [rule.requirement for rule in self.rules if Version(version) < Version(rule.below)]
        return [f"{self.name}=={version}", *(name for name in names if name != self.name), *rules]


LIBRARIES: tuple[Library, ...] = (
    Library(
        name="openvino",
        precisions=("fp32", "int8"),
        backends=("openvino",),
        rules=(Rule(below="2024.3.0", requirement="numpy<2"),),  # the first whose metadata knows of NumPy 2
    ),
    Library(
        name="onnxruntime",
        precisions=("fp32", "int8"),
        backends=("onnxruntime",),
        rules=(Rule(below="1.19.0", requirement="numpy<2"),),  # the first that was built for NumPy 2
    ),
    Library(
        name="torch",
        precisions=("fp32", "bf16"),
        backends=("eager", "inductor"),
        options={"layout": "channels_last", "mode": "compile"},
        rules=(Rule(below="2.3.0", requirement="numpy<2"),),  # likewise
        environment_bytes=6_000_000_000,
    ),
)


def get(name: str) -> Library:
    """Return the library called `name`. Raises UnknownName with those that can be swept."""
    for library in LIBRARIES:
        if library.name == name.lower():
            return library
    listed = ", ".join(library.name for library in LIBRARIES)
    raise UnknownName(f"cannot sweep {name!r}: libraries with versions to sweep are {listed}")


def select(
    library: Library,
    chosen: Iterable[Model],
    *,
    names: Iterable[str] = (),
    precisions: Iterable[str] = (),
    batches: Iterable[int] = (),
    pattern: str | None = None,
) -> list[Cell]:
    """Return the cells to measure of each version; what is not said is as the library declares it.

    `names` are backends, `pattern` is a regular expression over cell names and also reaches options that are
    not measured unasked. Raises UnknownName or NothingSelected.
    """
    try:
        wanted = re.compile(pattern or "")
    except re.error as error:
        raise NothingSelected(f"--filter {pattern!r} is not a regular expression: {error}") from error
    runtimes = list(names) or list(library.backends[:1])
    for name in runtimes:
        if name not in library.backends:
            raise UnknownName(f"{library.name} is not measured by {name!r}: use {', '.join(library.backends)}")
    kinds, sizes, networks = list(precisions) or library.precisions, list(batches) or DEFAULT_BATCHES, list(chosen)
    found = [
        cell
        for model in networks
        for name in runtimes
        for cell in grid.all_cells(backends.get(name), model)
        if cell.precision in kinds and cell.batch in sizes and wanted.search(cell.key())
        if pattern or all(library.options[option] == value for option, value in cell.options.items())
    ]
    if not found:
        raise NothingSelected(
            f"nothing matches: models {', '.join(model.name for model in networks)}, backends {', '.join(runtimes)}, "
            f"precisions {', '.join(kinds)}, batches {', '.join(map(str, sizes))}"
            + (f", filter {pattern!r}" if pattern else "")
        )
    return found
