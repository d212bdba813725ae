"""A sweep: the same cells, from the same artifacts, over many versions of one library.

This interpreter exports and quantizes once; then asv is called once per version, in a small environment that
has that version and little else. A version that cannot be installed or loaded is a failure on record, and
the next one goes on. What was measured at this commit from the same artifacts is not measured again.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machmeter import asv_names, backends, json_shape, metrics
from machmeter.errors import BadSetting, DiskFull, MachmeterError, NothingSelected, RunFailed
from machmeter.isolation import in_child
from machmeter.measure import dead_processes
from machmeter.measure.current_run import AsvRun
from machmeter.measure.evidence_shape import Run
from machmeter.measure.recorder import Recorder
from machmeter.running import asv, configurations, selection, waiting
from machmeter.running.libraries import Library
from machmeter.running.releases import Release
from machmeter.running.waiting import Say
from machmeter.store import evidence
from machmeter.workload import models, pinned, shared_artifacts
from machmeter.workload.artifacts import Artifact, Recipe, Store
from machmeter.workload.cells import Cell
from machmeter.workload.manifest import Details
from machmeter.workload.pinned import Listing

REPEAT = "repeat=(5,1000,5.0)"  # at least 5 samples, at most 5 s of them
LOG = Path(".asv/sweep.log")
INSTALL_SECONDS = 3600.0


def _methods() -> str:
    """Return a pattern of the benchmark methods that a sweep runs: what the table of versions shows."""
    shown = {metric.benchmark for metric, _ in metrics.in_table("versions")}
    return f"({'|'.join(['time_forward', *(item.benchmark for item in metrics.METRICS if item.benchmark in shown)])})"


class EachVersionCompiles(Exception):
    """An artifact was asked for that is compiled for this CPU by the version that runs it."""


class Preparing(Store):
    """A store that notes what it was asked for, and keeps to what was listed before."""

    def __init__(self, known: Listing) -> None:
        super().__init__()
        self.listed = None  # here artifacts are made
        self._known = known
        self.used: list[Artifact] = []

    def obtain(self, recipe: Recipe, build: Callable[[Path], Details | None]) -> Artifact:
        """Return the listed artifact, or obtain it. Raises EachVersionCompiles."""
        if recipe.cpu_dependent:
            raise EachVersionCompiles
        entry = self._known.find(recipe.kind, recipe.identity)
        artifact = (self.open_listed(entry) if entry else None) or super().obtain(recipe, build)
        self.used.append(artifact)
        return artifact


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """The cells that can be measured, the digest of each one's artifact, and the list for all versions.

    The digest is None where each version compiles its own.
    """

    cells: tuple[Cell, ...]
    digests: Mapping[str, str | None]  # by the cells' names
    listing: Listing


def prepare(library: Library, chosen: Iterable[Cell], project: Path, say: Say, *, again: bool = False) -> Prepared:
    """Export, quantize and compute the reference answers for `chosen`, once for all versions.

    A sweep that goes on at the same commit keeps to the artifacts it began with, unless it shall begin `again`.
    Raises NothingSelected where no cell can be had on this machine, RunFailed where a step fails.
    """
    known = Listing(path=(project / f".asv/sweep/{library.name}-{asv_names.commit_hash(project)[:8]}.json").resolve())
    if not again and known.path.is_file():
        with contextlib.suppress(BadSetting):  # a list that is damaged is begun anew
            known = pinned.read(known.path)
    say(f"preparing the artifacts of {library.name} in this environment, once for all versions")
    possible: list[Cell] = []
    digests: dict[str, str | None] = {}
    used: list[Artifact] = []
    reasons: list[str] = []
    for cell in chosen:
        model, backend = models.get(cell.model), backends.get(cell.runtime)
        if reason := backends.unsupported(backend, model, cell.precision, **cell.options):
            reasons.append(f"{cell.key()} is n/a: {reason}")
            say(reasons[-1])
            continue
        try:
            digest, made = in_child(functools.partial(_prepare, cell, known), fork=backends.may_fork(backend))
        except MachmeterError:
            raise
        except Exception as error:
            raise RunFailed(f"{cell.key()} cannot be prepared: {' '.join(str(error).split())[:300]}") from error
        possible.append(cell)
        digests[cell.key()] = digest
        used += made
    if not possible:
        raise NothingSelected("; ".join(reasons))
    listed = known.replaced(used)
    listed.write()
    return Prepared(cells=tuple(possible), digests=digests, listing=listed)


def _prepare(cell: Cell, known: Listing) -> tuple[str | None, list[Artifact]]:
    model, backend, store = models.get(cell.model), backends.get(cell.runtime), Preparing(known)
    digest = None
    with contextlib.suppress(EachVersionCompiles):
        digest = backend.prepare(model, cell.precision, store, batch=cell.batch, **cell.options).digest
    shared_artifacts.reference(model, store)
    return digest, store.used


def run(
    library: Library, releases: Iterable[Release], prepared: Prepared, project: Path, say: Say, *, again: bool = False
) -> Counter[str]:
    """Measure what is `prepared` with each of `releases`, and return how many cells of theirs are what.

    Raises DiskFull where an environment has no room.
    """
    counts: Counter[str] = Counter()
    asv.know_machine(project)
    with (project / LOG).open("w", encoding="utf-8") as output:
        for release in releases:
            version = _Version(library, release, prepared, project)
            remaining = list(prepared.cells) if again else version.unmeasured()
            counts["ok"] += len(prepared.cells) - len(remaining)
            when = f" ({release.released})" if release.released else ""
            if not remaining:
                say(f"{library.name} {release.version}{when}: all {len(prepared.cells)} cells were measured already")
                continue
            say(f"{library.name} {release.version}{when}: {len(remaining)} cells")
            counts += version.measure(remaining, output, say)
            if disturbed := version.disturbed(remaining):
                say(f"other programs had the CPUs during {len(disturbed)} cells: measuring these once more")
                version.measure(disturbed, output, say)
    return counts


class _Version:
    """One version of a library in its environment."""

    def __init__(self, library: Library, release: Release, prepared: Prepared, project: Path) -> None:
        self._library, self._release, self._prepared, self._project = library, release, prepared, project
        self._swept = pinned.Swept(library=library.name, version=release.version, released=release.released)
        self._results = asv_names.results_folder(project)
        self._commit = asv_names.commit_hash(project)
        self._environment = environment_name(library.name, release.version)

    def unmeasured(self) -> list[Cell]:
        """Return the cells that are not on record as measured at this commit from the same artifacts."""
        path = asv_names.evidence_file(self._results, asv_names.machine_name(), self._commit, self._environment)
        if path.is_file():
            dead_processes.settle_file(path)
        runs = list(evidence.runs_at(path).values())
        return [
            cell
            for cell in self._prepared.cells
            if not any(is_measured(run, cell, self._swept, self._prepared.digests[cell.key()]) for run in runs)
        ]

    def disturbed(self, measured: Iterable[Cell]) -> list[Cell]:
        """Return those of the cells just `measured` during which other programs had the CPUs."""
        path = asv_names.evidence_file(self._results, asv_names.machine_name(), self._commit, self._environment)
        file = evidence.read(path, samples=False)
        newest = max(file.runs.values() if file else (), key=lambda run: run.started, default=Run())
        found = evidence.disturbed_cells([newest])
        return [cell for cell in measured if cell.key() in found]

    def measure(self, remaining: list[Cell], output: Any, say: Say) -> Counter[str]:
        """Call asv for the cells that remain, put on record those it could not start, and count what they are."""
        configuration = self._write_configuration()
        patterns = [part for cell in remaining for part in ("-b", selection.pattern_of(cell, _methods()))]
        arguments = ["--config", str(configuration), *asv.RECORDING, "-a", REPEAT, *patterns]
        output.flush()
        position = Path(output.name).stat().st_size
        with waiting.hear(say, len(remaining)) as (listener, told):
            variables = {
                **os.environ,
                **told,
                "MACHMETER_STORE": str(Store().root.resolve()),  # asv works in another folder
                pinned.VARIABLE: str(self._prepared.listing.path),
                pinned.SWEPT: json.dumps(json_shape.encode(self._swept)),
                "PIP_ONLY_BINARY": self._library.name,  # a version without a wheel is not compiled from source
            }
            asv.run(arguments, self._project, variables, output)
            text = Path(output.name).read_text(encoding="utf-8", errors="replace")[position:]
            self._record_unstarted(remaining, told[waiting.RUN], why_asv_stopped(text))
            return listener.conclude(self._project, told[waiting.RUN], remaining)

    def _record_unstarted(self, remaining: list[Cell], name: str, reason: str) -> None:
        run = AsvRun(
            run=name,
            machine=asv_names.machine_name(),
            commit=self._commit,
            environment=self._environment,
            stack=None,
            project=self._project,
            results=self._results,
        )
        file = evidence.read(run.evidence_file, samples=False)
        started = file.runs[name].cells if file and name in file.runs else {}
        if silent := [cell.key() for cell in remaining if cell.key() not in started]:
            Recorder(run).never_started(silent, reason, self._swept)

    def _check_space(self) -> None:
        """Raise DiskFull where the environment has no room; one that exists needs none."""
        folder = configurations.environment_folder(self._project, self._environment)
        if folder.is_dir():
            return
        free, needed = shutil.disk_usage(self._project).free, self._library.environment_bytes
        if free < needed:
            raise DiskFull(
                f"only {free / 1e9:.1f} GB are free under {self._project} and an environment with {self._library.name} "
                f"needs {needed / 1e9:.1f} GB: free some space; environments of earlier sweeps are in {folder.parent}"
            )

    def _write_configuration(self) -> Path:
        """Write asv's configuration of the version. asv's results then name the version among the requirements.

        Only the library itself is in asv's matrix: asv installs each requirement by a call of its own, so
        that a later one could replace what an earlier one chose.
        """
        needed = self._library.requirements(self._project, self._release.version)
        self._check_space()
        return configurations.write(
            self._project,
            f"{self._library.name}-{self._release.version}",
            {
                "environment_type": "virtualenv",
                "pythons": [_python()],
                "matrix": {"req": {self._library.name: [self._release.version]}},
                "install_timeout": INSTALL_SECONDS,
                "install_command": [
                    "in-dir={env_dir} python -m pip install --quiet --no-deps --force-reinstall {wheel_file}",
                    f"in-dir={{env_dir}} python -m pip install --quiet {shlex.join(needed)}",
                ],
            },
        )


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def environment_name(library: str, version: str) -> str:
    """Return asv's name for the environment of `version`."""
    from asv.environment import get_env_name

    return str(get_env_name("virtualenv", _python(), {library: version}, {}))


def is_measured(run: Run, cell: Cell, swept: pinned.Swept, digest: str | None) -> bool:
    """Return whether `run` (of the evidence) has latency and answers of `cell`, from the artifact with `digest`."""
    records = list(run.cells.get(cell.key(), {}).values())
    of = run.swept or pinned.Swept()
    if (of.library, of.version) != (swept.library, swept.version):
        return False
    answers = [metric.benchmark for metric, _ in metrics.in_table("versions")]
    return (
        all(record.status == "ok" for record in records)
        and any(record.samples for record in records)
        and any(name in (record.facts or {}) for record in records for name in answers)
        and (digest is None or all(record.artifact and record.artifact.digest == digest for record in records))
    )


def why_asv_stopped(text: str) -> str:
    """Return the line of asv's output that says why it measured nothing: pip's last error, or its own last words."""
    lines = [line.strip(" ·") for line in text.splitlines() if line.strip(" ·")]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["asv said nothing"])[-1][:400]
