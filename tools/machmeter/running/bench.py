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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from machmeter import asv_names, backends
from machmeter.backends.base import Backend
from machmeter.errors import DiskFull, NoDevice, NothingSelected, UnknownName, Unsupported, from_os_error
from machmeter.isolation import in_child
from machmeter.machine import disturbance, gpu
from machmeter.measure import offline, peak
from machmeter.running import asv, configurations, waiting
from machmeter.running.waiting import Measured, Say
from machmeter.store import evidence
from machmeter.workload import cells, models, shared_artifacts
from machmeter.workload.artifacts import Store
from machmeter.workload.cells import Cell
from machmeter.workload.models import Model

DEFAULT_BATCHES = (1, 8)  # on a CPU
DEVICES = ("cpu", "cuda")
LEAST_FREE_BYTES = 2_000_000_000  # the artifacts of one model, with room for a quantizer's scratch files
STACK = "cpu"  # what `make setup` installs; other stacks have environments of their own
ANY = r"\w+"  # every benchmark of a cell, as a regular expression
LATENCY = rf"(?!{offline.BENCHMARK}\b)\w+"  # all but offline throughput


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one call of asv measures."""

    title: str
    patterns: tuple[str, ...]  # asv's, one for each of the cells
    cells: Sequence[Measured]


def select_models(names: Iterable[str]) -> list[Model]:
    """Return the models called `names`; "all" stands for every benchmarked one. Raises UnknownName."""
    chosen: list[Model] = []
    for name in names:
        chosen += (
            [model for model in models.MODELS if model.benchmarked] if name.lower() == "all" else [models.get(name)]
        )
    return list(dict.fromkeys(chosen))


def plan(
    chosen: list[Model],
    names: list[str],
    batches: list[int] | None,
    pattern: str | None,
    *,
    device: str | None = None,
    all_options: bool = False,
    with_offline: bool = False,
) -> list[Part]:
    """Return the parts that measure `chosen` on the backends `names`, or on all of `device` (see `_backends`).

    Where no `batches` are named, those of DEFAULT_BATCHES, on a GPU all that it has.
    `pattern` is a regular expression over cell names. Option values that take long to prepare are measured
    with `all_options` or a pattern, offline throughput only `with_offline`. Raises NothingSelected where nothing
    is left.
    """
    try:
        wanted = re.compile(pattern or "")
    except re.error as error:
        raise NothingSelected(f"--filter {pattern!r} is not a regular expression: {error}") from error
    check_benchmarked(chosen)
    parts = []
    for model in chosen:
        for backend in _backends(names, device):
            picked = tuple(
                cell
                for cell in cells.all_cells(backend, model)
                if (cell.batch in batches if batches else cell.device != "cpu" or cell.batch in DEFAULT_BATCHES)
                and wanted.search(cell.key())
                and (all_options or pattern or not set(cell.options.values()) & set(backend.on_request))
            )
            if picked:
                patterns = tuple(pattern_of(cell, ANY if with_offline else LATENCY) for cell in picked)
                name = backends.name_of(backend)
                parts.append(Part(title=f"{model.name} on {name}", patterns=patterns, cells=picked))
    if not parts:
        raise NothingSelected(
            f"nothing matches: models {', '.join(item.name for item in chosen)}, "
            f"backends {', '.join(names) or 'all'}, "
            f"batches {', '.join(map(str, batches or DEFAULT_BATCHES))}" + (f", filter {pattern!r}" if pattern else "")
        )
    return parts


def check_benchmarked(chosen: Iterable[Model]) -> None:
    """Raise UnknownName where a model has no benchmarks, BadSetting where its weights cannot be chosen."""
    for model in chosen:
        if not model.benchmarked:
            raise UnknownName(f"{model.name} is only for tests: choose from {benchmarked()}")
        model.weights()


def _backends(names: list[str], device: str | None) -> list[Backend]:
    """Return the backends called `names`. Raises UnknownName.

    Where none is named, those of `device`: of "cpu" those of the stack `cpu`, of "cuda" all. Without a device, those
    of the CPU, and those of the GPU too where there is one.
    """
    if device not in (None, *DEVICES):
        raise UnknownName(f"unknown device {device!r}: known devices are {', '.join(DEVICES)}")
    known = [backend for backend in map(backends.get, backends.names()) if backend.answers]
    for name in names:
        if name not in [backends.name_of(backend) for backend in known]:
            listed = ", ".join(backends.name_of(backend) for backend in known)
            raise UnknownName(f"unknown backend {name!r}: known backends are {listed}")
    if names:
        return [backend for backend in known if backends.name_of(backend) in names]
    wanted = [device] if device else ["cpu", *(["cuda"] if isinstance(gpu.find(), gpu.Gpu) else [])]
    stacks = {"cpu": STACK, "cuda": "cuda"}
    return [item for item in known if item.device in wanted and item.stack == stacks[item.device]]


def check_devices(parts: Iterable[Part]) -> None:
    """Raise NoDevice where `parts` measure on a GPU and there is none: every cell would be n/a for that reason."""
    found = gpu.find()
    if isinstance(found, str) and any(cell.key().startswith("cuda.") for part in parts for cell in part.cells):
        raise NoDevice(f"there is no GPU to measure on: {found}")


def fetch_weights(chosen: list[Model]) -> None:
    """Get pretrained weights into the store before anything runs. Raises WeightsUnavailable."""
    for model in chosen:
        if model.weights() == "pretrained" and not model.missing_packages():
            in_child(functools.partial(shared_artifacts.weights, model, Store()))


def benchmarked() -> str:
    """Return the names of the models that are measured, for a message."""
    return ", ".join(model.name for model in models.MODELS if model.benchmarked)


def pattern_of(cell: Cell, methods: str = ANY) -> str:
    """Return the regular expression with which asv selects the `methods` of `cell` (all of them) and no others."""
    values = [*(repr(text) for text in (cell.precision, *cell.options.values())), str(cell.batch)]
    return rf"^{re.escape(cell.series)}\.{methods}\({re.escape(', '.join(values))}\)$"


def check_folders(project: Path) -> None:
    """Raise where the project, the store or the disk cannot take a run."""
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
            asv.here(["-b", r"^control\."], project, environment, output, attributes)
        for part in parts:
            say(f"{part.title}: {len(part.cells)} cells")
            patterns = [argument for pattern in part.patterns for argument in ("-b", pattern)]
            asv.here(patterns, project, environment, output, attributes)
            listener.tell_silent(part.cells, waiting.endings(project, told[waiting.RUN]))
            counts += waiting.tally(project, told[waiting.RUN], part.cells)
            if again := _disturbed(part, project, told[waiting.RUN]):
                say(f"other programs had the CPUs during {len(again)} of them: measuring these once more")
                patterns = [argument for pattern in again for argument in ("-b", pattern)]
                anew = {**environment, waiting.RUN: waiting.new_run()}
                asv.here(patterns, project, anew, output, attributes)
    return counts


def _disturbed(part: Part, project: Path, run_name: str) -> list[str]:
    """Return the patterns of those cells of `part` during which other programs had the CPUs."""
    contents = evidence.read_folder(asv_names.results_folder(project), asv_names.machine_name())
    runs = [content["runs"][run_name] for content in contents if run_name in content["runs"]]
    found = disturbance.disturbed_cells(runs)
    return [pattern for pattern, cell in zip(part.patterns, part.cells, strict=True) if cell.key() in found]


def run_peak(project: Path, say: Say) -> None:
    """Measure what the machine can do at best. Raises RunFailed where asv itself cannot run."""
    asv.know_machine(project)
    say("measuring the peak of this machine (15 seconds) ...")
    with (project / asv.LOG).open("w", encoding="utf-8") as output:
        asv.here(["-b", rf"^control\.{peak.NAME}\."], project, dict(os.environ), output, [])


def operations(chosen: Iterable[Model]) -> dict[str, float | None]:
    """Return the operations per image of each model, counted by torch; None where it is not installed."""
    counted: dict[str, float | None] = {}
    for model in chosen:
        try:
            found = in_child(functools.partial(shared_artifacts.reference, model, Store()))
        except Unsupported:
            counted[model.name] = None
        else:
            counted[model.name] = found.operations_per_image
    return counted
