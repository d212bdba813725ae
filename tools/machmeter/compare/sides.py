"""One side of a comparison, read from asv's results and our evidence of one machine."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from machmeter import asv_names, units
from machmeter.compare.documents import Better, Measurements, Process, Row, Side, Status
from machmeter.compare.result_files import Candidate, find, one
from machmeter.errors import SideUnknown
from machmeter.history import environment_changes
from machmeter.measure.evidence_shape import Record, Run
from machmeter.store import asv_files, asv_notes, columns, commit_order, copies, evidence, settings
from machmeter.store.columns import Header, Table
from machmeter.workload import names as names_module
from machmeter.workload import pinned

_SINCE = 1_577_836_800.0  # 2020: seconds since then fit into a document
_MOST = 1e300  # what a document can hold
_MEDIAN = "time_forward"  # the metric whose processes are on record each


def read(
    results: Path, machine: str, base: str, head: str, *, environment: str | None = None, repository: Path | None = None
) -> Measurements:
    """Return what was measured of both sides on `machine`: see `read_side`.

    Of versions and environments the newest commit that has both counts, of commits the environment that both have.
    Raises SideUnknown.
    """
    where = repository or results.parent
    found = [find(results, machine, which, environment=environment, repository=where) for which in (base, head)]
    for part in ("commit", "environment"):
        common = {getattr(item, part) for item in found[0]} & {getattr(item, part) for item in found[1]}
        if common:
            found = [[item for item in side if getattr(item, part) in common] for side in found]
    sides = [_read(one(side, which), which, where) for side, which in zip(found, (base, head), strict=True)]
    return together(sides[0], sides[1], machine)


def read_side(
    results: Path, machine: str, which: str, *, environment: str | None = None, repository: Path | None = None
) -> Side:
    """Return what was measured of `which` on `machine`.

    `which` is a result file, a commit, branch or tag, an environment, or a swept version ("openvino==2026.4.1"); the
    newest commit that has it counts. `environment` chooses where a commit has several. Raises SideUnknown.
    """
    where = repository or results.parent
    return _read(
        one(find(results, machine, which, environment=environment, repository=where), which),
        which,
        where,
    )


def _read(chosen: Candidate, which: str, repository: Path) -> Side:
    tables = sorted(
        (_table(path) for path in (chosen.path, *chosen.also)), key=lambda item: item.row_started.max(initial=0)
    )
    return _side(chosen.path.parent.parent, columns.concatenate(tables), chosen.path, which, repository)


def _table(path: Path) -> Table:
    try:
        return asv_files.read(path)
    except asv_files.Unusable as problem:
        raise SideUnknown(f"{path} {problem}") from problem


# ------------------------------------------------------------------ from files to rows


def _side(results: Path, table: Table, path: Path, which: str, repository: Path) -> Side:
    header = table.headers[-1]
    found = evidence.read_at(asv_names.evidence_folder(results) / path.parent.name / path.name, samples=False)
    runs = evidence.alike(found) if found else []
    newest = runs[-1] if runs else Run()
    commit = header.commit if re.fullmatch("[0-9a-f]{40}", header.commit) else ""
    stack = (found.stack if found else None) or dict(header.variables).get("STACK") or ""
    return Side(
        label=which[-300:],
        commit=commit,
        environment=header.environment[:1000],
        stack=stack[:100],
        host=_host(header, newest, path.parent.name),
        versions={name[:300]: text[:1000] for name, text in sorted(newest.versions.items())[:2000]},
        pins=_pins(newest, stack, commit, repository),
        rows=_rows(table, asv_notes.benchmarks(results)[0], settings.load(results.parent / settings.FILE), runs),
    )


def _host(header: Header, newest: Run, machine: str) -> dict[str, str]:
    facts = dict(header.facts)
    noted = {"CPU as asv has it": facts.get("cpu", ""), "architecture": facts.get("arch", "")}
    told = evidence.host(newest)
    if told is None:
        noted["logical CPUs"] = facts.get("num_cpu", "")
    found = {"machine": machine, **noted, **(environment_changes.recorded(told) if told else {})}
    return {name: text[:1000] for name, text in found.items() if text}


def _pins(newest: Run, stack: str, commit: str, repository: Path) -> dict[str, str]:
    """Return what the requirements of a stack asked for at `commit`; of a sweep, the version it was told."""
    if newest.swept:
        return {newest.swept.library[:300] or "?": newest.swept.version[:1000]}
    if not commit or not re.fullmatch(r"[A-Za-z0-9._-]+", stack):
        return {}
    requirements = commit_order.text_at(repository, commit, f"requirements/{stack}.txt") or ""
    return dict(list(pinned.pins(requirements).items())[:2000])


def _rows(table: Table, known: dict[str, asv_notes.Described], chosen: settings.Settings, runs: list[Run]) -> list[Row]:
    found: list[Row] = []
    newest: dict[tuple[str, str], tuple[Any, int]] = {}  # the best claim, and which row has it
    start = 0
    told: dict[str, list[Record]] = {}
    for number, grid in enumerate(table.row_grid.tolist()):
        name, params = table.grids[grid]
        described = known.get(name, asv_notes.Described())
        unit = described.unit if described.unit not in (None, "unit") else units.guess(name)[1]
        factor, unit = units.base(unit or "")
        direction = chosen.direction(name, units.direction(name, unit))
        owner, _, method = name.rpartition(".")
        started = table.row_started[number] / 1000.0
        for values in columns.combinations(params):
            label = ", ".join(map(columns.shown, values))
            cell = f"{owner}({label})" if values else owner or name
            place = names_module.in_evidence(cell, "")
            records = told.setdefault(cell, evidence.records(runs, place)) if runs else []
            value = float(table.value[start]) * factor
            status, reason = _status(int(table.state[start]), records, method)
            if status == "ok" and abs(value) > _MOST:
                status, reason = "failed", f"{value:.3g} is too large a number"
            claim = (copies.claim(int(table.state[start]), started), len(found))
            newest[cell, method] = max(claim, newest.get((cell, method), claim))
            found.append(
                Row(
                    cell=cell[:300] or "?",
                    metric=method[:300] or "?",
                    unit=unit[:40],
                    better=_better(direction),
                    version=table.versions[table.row_version[number]][:200],
                    status=status,
                    reason=reason[:1000],
                    processes=_processes(method, value, int(table.samples[start]), started, records)
                    if status == "ok"
                    else [],
                    control=names_module.is_control(name),
                )
            )
            start += 1
    if len(table.headers) == 1:
        return found
    return [found[number] for _, number in newest.values()]


def _better(direction: str | None) -> Better:
    return "lower" if direction == "lower" else "higher" if direction == "higher" else "unknown"


def _status(state: int, records: list[Record], metric: str) -> tuple[Status, str]:
    """Return status and reason; only the evidence tells n/a from not run, and knows why."""
    found = evidence.outcome(records, metric, state)
    if found.status == "running" or found.status == "interrupted":
        return "not run", found.reason
    return found.status, found.reason


def _processes(metric: str, value: float, samples: int, started: float, records: list[Record]) -> list[Process]:
    """Return what each process found, where that is on record, and else the one number that asv has."""
    if metric == _MEDIAN:
        told = [
            (record.started_at, record.median_seconds, record.samples or 1, record.disturbed_share)
            for record in records
            if record.status == "ok" and record.benchmark == metric and record.median_seconds is not None
        ]
    else:
        told = [
            (record.started_at, float(fact), 1, None)
            for record in records
            if record.status == "ok" and isinstance(fact := (record.facts or {}).get(metric), int | float)
        ]
    told = told or [(started, value, max(1, samples), None)]
    return [
        Process(
            round=number,
            order=max(0, round(when - _SINCE)),
            value=number_found,
            samples=count,
            disturbed=None if share is None else min(1.0, max(0.0, share)),
        )
        for number, (when, number_found, count, share) in enumerate(told[-1000:])
    ]


# ------------------------------------------------------------------ two sides together


def together(base: Side, head: Side, machine: str) -> Measurements:
    """Return two sides as one document: with places in one sequence, and whether they were measured alternately.

    Where nothing but controls was tried, they are what is asked for.
    """
    tried = [row for side in (base, head) for row in side.rows if row.status in ("ok", "failed")]
    if all(names_module.is_of_machine(row.cell) for row in tried):
        base, head = (
            msgspec.structs.replace(side, rows=[msgspec.structs.replace(row, control=False) for row in side.rows])
            for side in (base, head)
        )
    rows = {(row.cell, row.metric): row for row in head.rows}
    both = [(row, rows[row.cell, row.metric]) for row in base.rows if (row.cell, row.metric) in rows]
    repeated = [(one, other) for one, other in both if len(one.processes) > 1 and len(other.processes) > 1]
    return Measurements(
        machine=machine[:300],
        base=base,
        head=head,
        rounds=max((min(len(one.processes), len(other.processes)) for one, other in repeated), default=1),
        interleaved=bool(repeated) and all(_alternate(one.processes, other.processes) for one, other in repeated),
    )


def _alternate(base: Iterable[Process], head: Iterable[Process]) -> bool:
    """Return whether every round of both sides was over before the next began."""
    pairs = [(one.order, other.order) for one, other in zip(base, head, strict=False)]
    return all(max(before) <= min(after) for before, after in itertools.pairwise(pairs))
