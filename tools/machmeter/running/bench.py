"""Run the benchmarks of chosen models with asv, from one command, with progress.

asv is called once per model and backend, so that what is finished is in asv's files even if a later part is
killed. It runs with `--python=same`: the interpreter that runs this is the environment that is measured.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from machmeter import asv_names, backends
from machmeter.errors import DiskFull, Unsupported, from_os_error
from machmeter.isolation import in_child
from machmeter.running import asv, configurations, waiting
from machmeter.running.selection import Part
from machmeter.running.waiting import Say
from machmeter.store import evidence
from machmeter.workload import shared_artifacts
from machmeter.workload.artifacts import Store
from machmeter.workload.models import Model
from machmeter.workload.names import CONTROL, PEAK

LEAST_FREE_BYTES = 2_000_000_000  # the artifacts of one model, with room for a quantizer's scratch files


def fetch_weights(chosen: list[Model]) -> None:
    """Get pretrained weights into the store before anything runs. Raises WeightsUnavailable."""
    for model in chosen:
        if model.weights() == "pretrained" and not model.missing_packages():
            in_child(functools.partial(shared_artifacts.weights, model, Store()), fork=backends.may_fork())


def check_folders(project: Path) -> None:
    """Raise where the project, the store or the disk cannot take a run: DiskFull, StoreUnwritable or BadSetting."""
    configurations.check_project(project)
    root, results = Store().root, asv_names.results_folder(project)
    _probe(root, "artifacts", "MACHMETER_STORE")
    for folder in (results, asv_names.evidence_folder(results), (project / asv.LOG).parent):
        _probe(folder, "results", None)
    free = shutil.disk_usage(root).free
    if free < LEAST_FREE_BYTES:
        raise DiskFull(
            f"only {free / 1e9:.1f} GB are free under {root} and a run needs up to {LEAST_FREE_BYTES / 1e9:.0f} GB: "
            "free some space, or set MACHMETER_STORE to a folder on another disk"
        )


def _probe(folder: Path, what: str, setting: str | None) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"machmeter")
    except OSError as error:
        raise from_os_error(error, folder, what, setting) from error


def run(
    parts: list[Part], project: Path, say: Say, attributes: Iterable[str] = (), *, control: bool = True
) -> Counter[str]:
    """Measure `parts`, one asv call each, after the machine controls, and return how many cells are what.

    Raises RunFailed where asv cannot run.
    """
    counts: Counter[str] = Counter()
    asv.know_machine(project)
    total = sum(len(part.cells) for part in parts)
    with (
        waiting.hear(say, total) as (listener, told),
        (project / asv.LOG).open("w", encoding="utf-8") as output,
    ):
        environment = {**os.environ, **told}
        if control:
            asv.here(["-b", rf"^{CONTROL}\."], project, environment, output, attributes)
        for part in parts:
            say(f"{part.title}: {len(part.cells)} cells")
            patterns = [argument for pattern in part.patterns for argument in ("-b", pattern)]
            asv.here(patterns, project, environment, output, attributes)
            counts += listener.conclude(project, told[waiting.RUN], part.cells)
            if again := _disturbed(part, project, told[waiting.RUN]):
                say(f"other programs had the CPUs during {len(again)} of them: measuring these once more")
                patterns = [argument for pattern in again for argument in ("-b", pattern)]
                anew = {**environment, waiting.RUN: waiting.new_run()}
                asv.here(patterns, project, anew, output, attributes)
    return counts


def _disturbed(part: Part, project: Path, run_name: str) -> list[str]:
    """Return the patterns of those cells of `part` during which other programs had the CPUs."""
    files = evidence.read_folder(asv_names.results_folder(project), asv_names.machine_name())
    runs = [file.runs[run_name] for file in files if run_name in file.runs]
    found = evidence.disturbed_cells(runs)
    return [pattern for pattern, cell in zip(part.patterns, part.cells, strict=True) if cell.key() in found]


def run_peak(project: Path, say: Say) -> None:
    """Measure what the machine can do at best. Raises RunFailed where asv itself cannot run."""
    asv.know_machine(project)
    say("measuring the peak of this machine (15 seconds) ...")
    with (project / asv.LOG).open("w", encoding="utf-8") as output:
        asv.here(["-b", rf"^{re.escape(PEAK)}\."], project, dict(os.environ), output, [])


def operations(chosen: Iterable[Model]) -> dict[str, float | None]:
    """Return the operations per image of each model, counted by torch; None where it is not installed."""
    counted: dict[str, float | None] = {}
    for model in chosen:
        try:
            found = in_child(functools.partial(shared_artifacts.reference, model, Store()), fork=backends.may_fork())
        except Unsupported:
            counted[model.name] = None
        else:
            counted[model.name] = found.operations_per_image
    return counted
