"""One side of a comparison, read from asv's results and our evidence of one machine."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from machmeter import asv_names, units
from machmeter.compare import comparable
from machmeter.compare.documents import Better, Measurements, Process, Row, Side, Status
from machmeter.errors import SideUnknown
from machmeter.history import benchmarks
from machmeter.store import asv_files, columns, commit_order, copies, recorded, settings
from machmeter.store.columns import FAILED, OK, SKIPPED, Header, Table
from machmeter.store.recorded import Record, Run
from machmeter.workload import names as names_module
from machmeter.workload import pinned

_SINCE = 1_577_836_800.0  # 2020: seconds since then fit into a document
_MOST = 1e300  # what a document can hold
_STATES: dict[int, Status] = {OK: "ok", FAILED: "failed", SKIPPED: "not run"}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A result file, by what it says of itself."""

    path: Path
    commit: str
    environment: str
    date: int
    also: tuple[Path, ...] = ()  # further files of the same commit and environment, as the results branch has them


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
    return _read(one(find(results, machine, which, environment=environment, repository=where), which), which, where)


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


def _read(chosen: Candidate, which: str, repository: Path) -> Side:
    tables = sorted(
        (_table(path) for path in (chosen.path, *chosen.also)), key=lambda item: item.row_started.max(initial=0)
    )
    return _side(chosen.path.parent.parent, columns.concatenate(tables), chosen.path, which, repository)


def _table(path: Path) -> Table:
    try:
        return asv_files.parse(path.read_bytes(), f"{path.parent.name}/{path.name}")
    except asv_files.Unusable as problem:
        raise SideUnknown(f"{path} {problem}") from problem
    except OSError as error:
        raise SideUnknown(f"cannot read {path}: {error.strerror or error}") from error


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
    try:
        header = asv_files.look(path.read_bytes(), f"{path.parent.name}/{path.name}")
    except OSError as error:
        raise asv_files.Unusable(f"cannot be read: {error.strerror or error}") from error
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


# ------------------------------------------------------------------ from files to rows


def _side(results: Path, table: Table, path: Path, which: str, repository: Path) -> Side:
    header = table.headers[-1]
    found = recorded.read_at(asv_names.evidence_folder(results) / path.parent.name / path.name)
    runs = recorded.alike(found) if found else []
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
        rows=_rows(table, benchmarks.read(results)[0], settings.load(results.parent / settings.FILE), runs),
    )


def _host(header: Header, newest: Run, machine: str) -> dict[str, str]:
    facts = dict(header.facts)
    noted = {"CPU as asv has it": facts.get("cpu", ""), "architecture": facts.get("arch", "")}
    if not newest.host:
        noted["logical CPUs"] = facts.get("num_cpu", "")
    found = {"machine": machine, **noted, **comparable.facts(newest.host)}
    return {name: text[:1000] for name, text in found.items() if text}


def _pins(newest: Run, stack: str, commit: str, repository: Path) -> dict[str, str]:
    """Return what the requirements of a stack asked for at `commit`; of a sweep, the version it was told."""
    if newest.swept:
        return {str(newest.swept.get("library", ""))[:300] or "?": str(newest.swept.get("version", ""))[:1000]}
    if not commit or not re.fullmatch(r"[A-Za-z0-9._-]+", stack):
        return {}
    requirements = commit_order.text_at(repository, commit, f"requirements/{stack}.txt") or ""
    return dict(list(pinned.pins(requirements).items())[:2000])


def _rows(
    table: Table, known: dict[str, benchmarks.Described], chosen: settings.Settings, runs: list[Run]
) -> list[Row]:
    found: list[Row] = []
    newest: dict[tuple[str, str], tuple[Any, int]] = {}  # the best claim, and which row has it
    start = 0
    told: dict[str, list[Record]] = {}
    for number, grid in enumerate(table.row_grid.tolist()):
        name, params = table.grids[grid]
        described = known.get(name, benchmarks.Described())
        unit = described.unit if described.unit not in (None, "unit") else units.guess(name)[1]
        factor, unit = units.base(unit or "")
        direction = chosen.direction(name, units.direction(name, unit))
        owner, _, method = name.rpartition(".")
        started = table.row_started[number] / 1000.0
        for values in columns.combinations(params):
            label = ", ".join(map(columns.shown, values))
            cell = f"{owner}({label})" if values else owner or name
            records = told.setdefault(cell, recorded.records(runs, cell)) if runs else []
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
    if state == OK:
        return "ok", ""
    last = recorded.outcome(records, metric)
    if state == SKIPPED:
        if last is not None and last.status in ("n/a", "failed"):
            return ("n/a" if last.status == "n/a" else "failed"), last.reason
        return "not run", ""
    reason = last.reason if last is not None and last.status == "failed" else ""
    return "failed", reason or ("asv has no number that could be read" if state not in _STATES else "")


def _processes(metric: str, value: float, samples: int, started: float, records: list[Record]) -> list[Process]:
    """Return what each process found, where that is on record, and else the one number that asv has."""
    if metric == recorded.MEDIAN:
        told = [
            (record.started_at, record.median_seconds, record.samples or 1, record.disturbed_share)
            for record in records
            if record.status == "ok" and record.benchmark == metric and record.median_seconds is not None
        ]
    else:
        told = [
            (record.started_at, float(fact), 1, None)
            for record in records
            if record.status == "ok" and isinstance(fact := record.facts.get(metric), int | float)
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
    if all(row.cell.startswith(names_module.FOLDER) for row in tried):
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
