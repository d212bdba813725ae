"""The table of one machine: every cell that was tried, with its newest numbers or the reason it has none.

Numbers come from asv's result files. The evidence says why there is none, and stands in for cells that were
measured in a run that ended before asv could write its file. All numbers of a row are of one commit and
environment; ratios may be to a cell that was last measured at another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from machmeter import asv_names, metrics
from machmeter.machine import disturbance
from machmeter.metrics import Metric
from machmeter.store import evidence
from machmeter.store.values import ResultFile, Value, read_all
from machmeter.tables import columns, peaks
from machmeter.text.numbers import throughput_digits
from machmeter.workload import cells, models
from machmeter.workload.cells import Cell

Status = Literal["ok", "failed", "n/a", "running", "not run"]

DEVICES = ("cpu", "cuda")
NOT_A_MODEL = ("cuda.transfer",)  # backends of which a throughput says nothing of a model
TIMED = ("median_seconds", "sample_seconds", "device_median_seconds")
_JSON_BEFORE = {"times_eager": 50, "device_p50_ms": 120}  # facts of a lower order than this stand before the field
BASELINE = {
    "backend": "eager",
    "precision": "fp32",
    "options": "contiguous",
}  # what every configuration of the same device is a multiple of


@dataclass(frozen=True, kw_only=True)
class Row:
    """One cell. Numbers are rounded to what is shown, so that every output has the same digits."""

    model: str
    backend: str
    precision: str
    options: str
    batch: int
    status: Status
    reason: str = ""
    p50_ms: float | None = None
    p95_ms: float | None = None
    images_per_second: float | None = None
    times_eager: float | None = None  # throughput over that of the fp32 eager baseline at the same batch
    times_own_fp32: float | None = None  # over the same backend, options and batch in fp32
    no_gain: bool = False  # a lower precision that is not faster than the same backend's fp32
    percent_of_peak: float | None = None  # arithmetic rate over this machine's peak for the precision
    device_p50_ms: float | None = None  # of a call by the GPU's own clock
    facts: columns.Facts = field(default_factory=dict)  # what `metrics.py` has a column for
    samples: int | None = None
    threads: int | None = None
    artifact: str = ""  # kind and key under which the store keeps what was measured
    commit: str = ""
    environment: str = ""
    stack: str = ""  # as the evidence names it, "" where there is none

    @property
    def top1_agreement(self) -> float | None:
        """Return the share of images with the first class of fp32: what decides whether answers count as the same."""
        return self.facts.get("top1_agreement")

    def as_json(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return columns.flat(self, "cells", _JSON_BEFORE)


@dataclass(frozen=True, kw_only=True)
class Table:
    """The rows of one machine, best first within each model, and what a reader must know beside them."""

    machine: str
    host: Mapping[str, Any]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    peaks: Mapping[str, float] = field(default_factory=dict)  # operations per second, by precision

    def as_json(self) -> dict[str, Any]:
        """Return the table as plain data."""
        return {
            "machine": self.machine,
            "host": dict(self.host),
            "peaks": dict(self.peaks),
            "rows": [row.as_json() for row in self.rows],
            "notes": list(self.notes),
        }


@dataclass(kw_only=True)
class _Found:
    """Everything on record of one cell at one commit in one environment."""

    cell: Cell
    commit: str
    environment: str
    stack: str = ""
    values: dict[str, Value] = field(default_factory=dict)  # asv's, by benchmark method
    record: dict[str, Any] = field(default_factory=dict)  # of the newest run that tried it
    status: Status = "not run"
    reason: str = ""

    @property
    def when(self) -> float:
        """Return when it was last tried.

        asv's own time is only the second choice: for all parameters of a benchmark it is that of the last
        run, even of those that the run left out.
        """
        return float(self.record.get("started_at") or max((v.started for v in self.values.values()), default=0.0))

    @property
    def ahead_of_asv(self) -> bool:
        """Return whether the evidence has a timing that asv's files lack: its run ended before asv wrote."""
        timing = self.values.get("time_forward")
        timed_at = self.record.get("timed_at")
        # asv's times are those of all parameters of a benchmark together, to the millisecond.
        return timed_at is not None and (timing is None or timed_at > timing.ended + 1.0)


def machines(results: Path) -> list[str]:
    """Return the machines that have results or evidence, by name."""
    folders = [*results.glob("*/"), *asv_names.evidence_folder(results).glob("*/")]
    return sorted({folder.name for folder in folders if folder.is_dir()})


def build(results: Path, machine: str, wanted: Iterable[str] = (), evidence_folder: Path | None = None) -> Table:
    """Return the table of `machine` for the models `wanted` (all where none is named).

    The evidence is looked for beside `results` where `evidence_folder` does not say otherwise.
    """
    files, unreadable = read_all(results, machine)
    found: dict[tuple[str, str, str], _Found] = {}
    for file in files:
        _take_results(file, found)
    newest, notes, swept = _take_evidence((evidence_folder or asv_names.evidence_folder(results)) / machine, found)
    # A sweep measures one version of a library among many; what it finds has a table of its own.
    found = {where: item for where, item in found.items() if where[1:] not in swept}
    notes += [f"left out: {item.path} {item.reason}" for item in unreadable]
    notes += [f"left out: {file.path}: {problem}" for file in files for problem in file.problems]
    models_wanted = set(wanted)
    chosen = [item for item in _newest(found.values()) if not models_wanted or item.cell.model in models_wanted]
    speeds = _speeds(chosen)
    highest = peaks.newest(files)
    rows = [_row(item, speeds, highest) for item in chosen]
    return Table(
        machine=machine,
        host=newest.get("host", {}),
        rows=tuple(sorted(rows, key=_rank)),
        notes=tuple(notes),
        peaks={precision: highest[precision] for precision in peaks.PRECISIONS if precision in highest},
    )


def _entry(key: str, commit: str, environment: str, found: dict[tuple[str, str, str], _Found]) -> _Found | None:
    """Return what is found so far of the cell called `key`, or None where `key` is not an inference cell."""
    cell = cells.parse(key)
    if cell is None or cell.device not in DEVICES or cell.runtime in NOT_A_MODEL:
        return None
    where = (cell.key(), commit[:8], environment)
    return found.setdefault(where, _Found(cell=cell, commit=commit, environment=environment))


def _take_results(file: ResultFile, found: dict[tuple[str, str, str], _Found]) -> None:
    for (benchmark, parameters), value in file.tried:
        series, _, method = benchmark.rpartition(".")
        item = _entry(f"{series}({', '.join(parameters)})", file.commit, file.environment, found)
        if item is not None:
            item.values[method] = value


def _take_evidence(
    folder: Path, found: dict[tuple[str, str, str], _Found]
) -> tuple[Mapping[str, Any], list[str], set[tuple[str, str]]]:
    """Add what the evidence says.

    Return the newest run, notes about runs that need one, and which commits and environments sweeps measured.
    """
    swept: set[tuple[str, str]] = set()
    newest: Mapping[str, Any] = {}
    contents, notes = evidence.read_all(folder)
    for content in contents:
        for run in content["runs"].values():
            if run.get("swept"):
                swept.add((content["commit"][:8], content["environment"]))
                continue
            if run.get("started", "") >= newest.get("started", ""):
                newest = run
            for key, processes in run["cells"].items():
                if item := _entry(key, content["commit"], content["environment"], found):
                    item.stack = str(content.get("stack") or "")
                    _take_records(item, list(processes.values()))
    if newest.get("uncommitted_changes"):
        notes.append("the newest run measured a working tree with uncommitted changes")
    if mismatches := newest.get("stack_mismatches"):
        notes.append(f"the installed packages are not those of stack {newest.get('stack')}: " + "; ".join(mismatches))
    return newest, notes, swept


def _take_records(item: _Found, records: list[Mapping[str, Any]]) -> None:
    """Let the newest run that says anything of a cell decide. What was only interrupted says nothing."""
    telling = [record for record in records if record["status"] != "interrupted"]
    if not telling:
        item.reason = item.reason or records[-1].get("reason", "")
        return
    started = max(record.get("started_at", 0.0) for record in telling)
    if started < item.record.get("started_at", 0.0):
        return
    reasons = {record["status"]: record.get("reason", "") for record in telling}
    item.status = next(status for status in ("failed", "n/a", "running", "ok") if status in reasons)
    item.reason = reasons[item.status]
    timed = [record for record in telling if record.get("samples")]
    surveyed = next((record for record in telling if record.get("facts")), {})
    item.record = {**surveyed, "facts": surveyed.get("facts", {}), "started_at": started}
    for name in ("artifact", "threads", "operations_per_image", "device"):
        item.record[name] = next((record[name] for record in reversed(telling) if record.get(name)), None)
    if timed:
        item.record |= {name: timed[-1].get(name) for name in (*TIMED, disturbance.SHARE)}
        item.record["timed_at"] = timed[-1].get("started_at", 0.0)


def _newest(found: Iterable[_Found]) -> list[_Found]:
    """Choose one commit and environment for each cell, so that all numbers of a row belong together.

    It is the newest that was timed or failed: what another environment lacks (n/a), or has not timed, does
    not hide what this one measured.
    """
    chosen: dict[str, _Found] = {}
    for item in found:
        rival = chosen.get(item.cell.key())
        if rival is None or _claim(item) > _claim(rival):
            chosen[item.cell.key()] = item
    return list(chosen.values())


def _claim(item: _Found) -> tuple[bool, float]:
    return _outcome(item)[0] in ("ok", "failed"), item.when


def _outcome(item: _Found) -> tuple[Status, str, float | None, tuple[float, ...]]:
    """Return status, reason, seconds per call and samples of a cell."""
    if item.status in ("failed", "n/a"):
        return item.status, item.reason, None, ()
    timing = None if item.ahead_of_asv else item.values.get("time_forward")
    seconds = timing.number if timing else item.record.get("median_seconds")
    if seconds is not None:
        late = "asv has no file of this measurement: its run was interrupted, or is not over"
        samples = (timing.samples if timing else ()) or tuple(item.record.get("sample_seconds") or ())
        notes = [late] if item.ahead_of_asv else []
        if disturbed := disturbance.note(item.record):
            notes.append(disturbed)
        return "ok", "; ".join(notes), seconds, samples
    if item.status == "running":
        return "running", "is being measured right now", None, ()
    if any(value.number is None for value in item.values.values()):
        return "failed", item.reason or "no reason on record", None, ()
    return "not run", item.reason or "its latency was not timed", None, ()


def _speeds(items: Iterable[_Found]) -> dict[tuple[str, ...], float]:
    """Return the images/s of every cell that can be compared, by what tells it from others.

    A number that other programs disturbed proves no gain, neither of it nor over it.
    """
    speeds = {}
    for item in items:
        seconds = _outcome(item)[2]
        if seconds and not disturbance.note(item.record):
            speeds[_coordinates(item.cell)] = metrics.images_per_second(seconds, item.cell.batch)
    return speeds


def _coordinates(cell: Cell, **other: str) -> tuple[str, ...]:
    found = {"backend": cell.runtime, "precision": cell.precision, "options": ", ".join(cell.options.values())}
    return (cell.model, str(cell.batch), *(found | other).values())


def _row(item: _Found, speeds: Mapping[tuple[str, ...], float], highest: Mapping[str, float]) -> Row:
    """Return the row of a cell, with its ratios to cells of the same model and batch and no others.

    `highest` is this machine's peak by precision, in operations per second.
    """
    cell = item.cell
    status, reason, seconds, samples = _outcome(item)
    speed = metrics.images_per_second(seconds, cell.batch) if seconds else None
    comparable = speeds.get(_coordinates(cell))
    baseline = BASELINE | {"backend": cells.runtime(cell.device, BASELINE["backend"])}
    eager = speeds.get(_coordinates(cell, **baseline))
    own = speeds.get(_coordinates(cell, precision="fp32")) if cell.precision != "fp32" else None
    times_own = comparable / own if comparable and own else None
    on_device = item.record.get("device") or {}
    bound = highest.get(peaks.kind(cell.precision)) if cell.device == "cpu" else on_device.get("peak_rate")
    share = peaks.share(item.record.get("operations_per_image"), speed, bound)
    return Row(
        model=cell.model,
        backend=cell.runtime,
        precision=cell.precision,
        options=", ".join(cell.options.values()),
        batch=cell.batch,
        status=status,
        reason=reason,
        p50_ms=_rounded(_milliseconds(seconds), 2),
        p95_ms=_rounded(_milliseconds(metrics.percentile(samples, 0.95)) if samples else None, 2),
        images_per_second=_rounded(speed, throughput_digits(speed)) if speed else None,
        times_eager=_rounded(comparable / eager if comparable and eager else None, 2),
        times_own_fp32=_rounded(times_own, 2),
        no_gain=times_own is not None and times_own < 1.0,
        percent_of_peak=_rounded(None if share is None else 100.0 * share, 1),
        samples=len(samples) or None,
        threads=item.record.get("threads"),
        artifact="/".join((item.record.get("artifact") or {}).get(part, "") for part in ("kind", "key")).strip("/"),
        commit=item.commit[:8],
        environment=item.environment,
        stack=item.stack,
        device_p50_ms=_rounded(_milliseconds(item.record.get("device_median_seconds")), 3),
        facts=columns.facts("cells", partial(_fact, item)),
    )


def _fact(item: _Found, metric: Metric) -> float | None:
    """Return what was measured once: from asv's files, or from the evidence where asv has none."""
    value = None if item.ahead_of_asv else item.values.get(metric.benchmark)
    return value.number if value and value.number is not None else metric.recorded(item.record)


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds


def _rounded(number: float | None, digits: int) -> float | None:
    return None if number is None else round(number, digits)


def _rank(row: Row) -> tuple[Any, ...]:
    order = {"ok": 0, "running": 1, "failed": 2, "n/a": 3, "not run": 4}
    names = [model.name for model in models.MODELS]
    return (
        names.index(row.model) if row.model in names else len(names),
        row.model,
        order[row.status],
        -(row.images_per_second or 0.0),
        row.backend,
        row.precision,
        row.options,
        row.batch,
    )
