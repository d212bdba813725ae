"""One side of a comparison: a clone of its commit, an environment of its own, and what its suite has.

.asv/pr/pins/<digest>/       the pinned libraries, shared where both commits have the same pins
.asv/pr/<base|head>/source   a clone with the commit checked out: the pins and the benchmarks are its own
.asv/pr/<base|head>/env      asv's environment with the project, built once
OUTPUT/<base|head>/results   asv's files; `evidence` beside it
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from machmeter import asv_names
from machmeter.errors import DiskFull, MachmeterError, RunFailed
from machmeter.json_shape import Json
from machmeter.pull_request import commits as git
from machmeter.pull_request import pin_environments
from machmeter.pull_request.commits import Commits
from machmeter.running import asv, configurations, why_it_failed
from machmeter.running.waiting import RUN, Say
from machmeter.store import asv_notes
from machmeter.workload.artifacts import Store

FOLDER = Path(".asv/pr")
INSTALL_SECONDS = 3600.0
_LAYER = Path(__file__).with_name("add_packages.py")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where one side is built and what it leaves."""

    name: str  # "base" or "head"
    commit: str
    work: Path  # its folder in the project's .asv
    kept: Path  # its folder in the output

    @property
    def results(self) -> Path:
        """Return asv's results folder."""
        return self.kept / "results"


@dataclass(frozen=True, kw_only=True)
class Built:
    """A side that can be measured, or why it cannot."""

    place: Place
    configuration: Path | None = None
    stack: str = ""
    pins: Mapping[str, str] = field(default_factory=dict)
    libraries: Path | None = None  # the packages of the pins' environment
    benchmarks: Mapping[str, Json] = field(default_factory=dict)  # asv's own description of each, by name
    error: str = ""
    problem: MachmeterError | None = None  # behind `error`, where a user could solve it


def build(place: Place, commits: Commits, stack: str, output: IO[str], say: Say) -> Built:
    """Clone, install and list one side. What fails because of the commit is its `error`; the user's faults raise."""
    source = git.clone(commits, place.commit, place.work / "source")
    wanted: dict[str, str] = {}
    try:
        configuration, libraries = _configuration(place, source, stack, output, say)
        if libraries:
            wanted = pin_environments.read(source, stack)
    except DiskFull:
        raise
    except MachmeterError as error:
        return Built(place=place, error=f"cannot be installed: {error}"[:1000], problem=error)
    say(f"building {place.name} {place.commit[:8]}")
    start = why_it_failed.position(output)
    # asv builds the project, imports the suite and lists it; it exits with 0 although it measured nothing.
    code = call(place, configuration, ["-b", "just-discover"], {}, output)
    found = asv_notes.in_full(place.results) if code == 0 else {}
    problem = "" if found else f"does not build: {why_it_failed.why(output, start)}"
    if code == 0 and not found:
        problem = "has no benchmarks"
    return Built(
        place=place,
        configuration=configuration,
        stack=stack if libraries else "",
        pins=wanted,
        libraries=libraries,
        benchmarks=found,
        error=problem[:1000],
    )


def _configuration(place: Place, source: Path, stack: str, output: IO[str], say: Say) -> tuple[Path, Path | None]:
    """Write the side's own configuration of asv with the folders of this comparison.

    Returns it and the folder with the libraries of its stack, if it has stacks.
    """
    configurations.check_project(source)
    own = asv_names.read_configuration(source / asv_names.CONFIGURATION)
    changes: Json = {
        "repo": str(place.work / "source"),
        "env_dir": str(place.work / "env"),
        "results_dir": str(place.results),
        "install_timeout": INSTALL_SECONDS,
    }
    libraries = None
    if "STACK" in own.get("matrix", {}).get("env", {}):
        libraries = pin_environments.packages(
            pin_environments.obtain(source, stack, place.work.parent / "pins", output, say)
        )
        changes["matrix"] = {"env": {"STACK": [stack]}}
        changes["install_command"] = [
            "in-dir={env_dir} python -m pip install --quiet --no-deps --force-reinstall {wheel_file}",
            f"in-dir={{env_dir}} {shlex.join(['python', str(_LAYER), str(libraries)])}",
        ]
    return configurations.write(source, "pr", changes), libraries


def call(
    place: Place, configuration: Path, arguments: Iterable[str], variables: Mapping[str, str], output: IO[str]
) -> int:
    """Call `asv run` for the side's commit and return its exit code."""
    environment = {
        **os.environ,
        "MACHMETER_STORE": str(Store().root.resolve()),  # asv works in another folder
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        **variables,
    }
    command = ["--config", str(configuration), *arguments, f"{place.commit}^!"]
    return asv.run(command, configuration.parent, environment, output)


def measure(built: Built, patterns: Iterable[str], attributes: Iterable[str], run_name: str, output: IO[str]) -> None:
    """Measure what `patterns` select, each in a fresh process, and keep every sample. Raises RunFailed."""
    assert built.configuration is not None
    arguments = [*asv.RECORDING, "--append-samples"]
    arguments += [part for item in attributes for part in ("-a", item)]
    arguments += [part for pattern in patterns for part in ("-b", pattern)]
    start = why_it_failed.position(output)
    code = call(built.place, built.configuration, arguments, {RUN: run_name}, output)
    if code not in asv.SUCCESS:
        why = why_it_failed.why(output, start)
        raise RunFailed(f"asv stopped with exit code {code} while it measured {built.place.name}: {why}")
