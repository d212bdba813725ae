"""Read a results store of any asv project as a `History`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from machmeter import asv_names
from machmeter.history import benchmarks, environment_changes, grouping, reasons
from machmeter.history.data import Commit, Environment, History, LeftOut, Machine, Run, short_hash
from machmeter.history.grouping import Places
from machmeter.history.naming import environment_labels, slug
from machmeter.store import asv_notes, commit_order, reading_runs
from machmeter.store.columns import Header, Table
from machmeter.store.found import Found, Results
from machmeter.store.parsing import Progress, parse_all
from machmeter.store.runs import FolderOfRuns
from machmeter.store.settings import Settings


def read(
    results: Path,
    evidence: Path | None = None,
    git: Path | None = None,
    settings: Settings | None = None,
    *,
    cache: Path | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> History:
    """Return everything that the asv store `results` holds.

    `evidence` is the folder of the evidence (default: the one beside the results), `git` a repository that has the
    commits (default: none, they are ordered by date), `cache` a folder for what was parsed (default: none is kept).
    Files are parsed in up to `jobs` processes (default: the CPUs of this one). What cannot be used is in `left_out`.
    """
    return read_once(results, evidence, git, settings, cache=cache, jobs=jobs, progress=progress).history


@dataclass(frozen=True, kw_only=True)
class Read:
    """A history, and what it was made of: tables are built of the same, and no file is opened twice."""

    history: History
    machines: Mapping[str, Found]  # by name, those with evidence


def read_once(
    results: Path,
    evidence: Path | None = None,
    git: Path | None = None,
    settings: Settings | None = None,
    *,
    cache: Path | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Read:
    """Return what `read` does, and what else was read of each machine that has evidence."""
    processes = jobs or len(os.sched_getaffinity(0))
    known, left_out = benchmarks.read(results)
    parsed = parse_all(results, cache, processes, progress)
    headers = parsed.table.headers
    left_out += [LeftOut(path=path, reason=reason) for path, reason in parsed.unusable.items()]
    problems = [(header.path, problem) for header in headers for problem in header.problems]
    left_out += [LeftOut(path=path, reason=problem) for path, problem in sorted(problems)]
    machines, of_machine, odd = _machines(results, headers)
    environments, of_environment = _environments(headers)
    places = commit_order.order(git) if git else None
    commits, of_commit = _commits(headers, places)
    table, placed = grouping.in_order(
        parsed.table, Places(machine=of_machine, environment=of_environment, commit=of_commit)
    )
    if cache:
        parsed.keep(cache, table)
    found = grouping.catalogue(table, known, settings or Settings())
    series, twice = grouping.series(table, placed, machines, environments, found)
    history = History(
        machines=tuple(machines),
        environments=tuple(environments),
        commits=tuple(commits),
        benchmarks=tuple(found.benchmarks),
        series=tuple(series),
        runs=tuple(_runs(table, placed, machines, environments)),
        left_out=(*left_out, *odd, *twice),
        files=len(table.headers),
        has_repository=places is not None,
    )
    return _with_evidence(
        history,
        Results(results, parsed.table, parsed.unusable),
        evidence or asv_names.evidence_folder(results),
        cache,
        processes,
    )


def _with_evidence(history: History, results: Results, folder: Path, cache: Path | None, processes: int) -> Read:
    """Return `history` with the reasons that the evidence in `folder` gives, and the runs of each machine beside it."""
    runs: dict[str, FolderOfRuns] = {}
    if folder.is_dir():
        names = [name for item in history.machines for name in (item.folder, item.name)]
        runs = reading_runs.read(folder, names, cache, processes)
        history = reasons.add_read(history, folder, runs)
    return Read(
        history=replace(history, events=tuple(environment_changes.between_runs(history))),
        machines={
            item.name: Found(machine=item.name, results=results, runs=runs[item.name])
            for item in history.machines
            if item.name in runs and (runs[item.name].places or runs[item.name].unreadable)
        },
    )


def _machines(results: Path, headers: Sequence[Header]) -> tuple[list[Machine], NDArray[np.int32], list[LeftOut]]:
    """Return the machines by name, and the number of each file's machine.

    A folder is a machine. Files in it that name another one are that machine's, kept apart from both.
    """
    left_out: list[LeftOut] = []
    noted: dict[str, dict[str, str]] = {}
    for folder in sorted({header.folder for header in headers}):
        told = asv_notes.machine(results, folder)
        noted[folder] = told or {}
        if told is None:
            path = f"{folder}/{asv_notes.MACHINE}" if folder else asv_notes.MACHINE
            left_out.append(LeftOut(path=path, reason="is not asv's note of a machine"))
    identities = [
        (header.folder, header.machine or noted[header.folder].get("machine") or header.folder) for header in headers
    ]
    newest: dict[tuple[str, str], Header] = {}
    for identity, header in zip(identities, headers, strict=True):
        if identity not in newest or (header.date, header.path) > (newest[identity].date, newest[identity].path):
            newest[identity] = header
    machines = []
    for (folder, name), header in newest.items():
        told = noted[folder]
        facts = told if told.get("machine", name) == name else {}
        facts = {fact: value for fact, value in {**dict(header.facts), **facts}.items() if value and fact != "machine"}
        plain = () if folder == name else (folder,)
        machines.append(
            Machine(
                key=short_hash("machine", folder, name), slug=slug(name, *plain), name=name, folder=folder, facts=facts
            )
        )
    machines.sort(key=lambda machine: (machine.name, machine.folder))
    number = {(machine.folder, machine.name): position for position, machine in enumerate(machines)}
    return machines, np.array([number[identity] for identity in identities], np.int32), left_out


def _environments(headers: Sequence[Header]) -> tuple[list[Environment], NDArray[np.int32]]:
    """Return the environments by name, and the number of each file's environment."""
    identities = [(header.environment, header.python, header.requirements, header.variables) for header in headers]
    ordered = sorted(set(identities))
    keys = [short_hash("environment", *identity) for identity in ordered]
    described = [
        (name, key, {"Python": "(existing)" if "/" in python else python, **dict(requirements), **dict(variables)})
        for key, (name, python, requirements, variables) in zip(keys, ordered, strict=True)
    ]
    labels = environment_labels(described)
    environments = [
        Environment(
            key=key,
            slug=slug(name, python, requirements, variables),
            name=name,
            python=python,
            requirements=dict(requirements),
            variables=dict(variables),
            label=label,
        )
        for key, label, (name, python, requirements, variables) in zip(keys, labels, ordered, strict=True)
    ]
    number = {identity: position for position, identity in enumerate(ordered)}
    return environments, np.array([number[identity] for identity in identities], np.int32)


def _commits(
    headers: Sequence[Header], places: Mapping[str, commit_order.Place] | None
) -> tuple[list[Commit], NDArray[np.int32]]:
    """Return the commits, oldest first, and the number of each file's commit.

    Git's order decides where git knows a commit; the others stand where their date puts them.
    """
    dates: dict[str, int] = {}
    for header in headers:
        dates[header.commit] = max(dates.get(header.commit, 0), header.date)
    known = places or {}
    in_git = sorted((name for name in dates if name in known), key=lambda name: known[name].position)
    ranked: list[tuple[int, int, str]] = []
    latest = 0
    for number, name in enumerate(in_git):
        # A child may be dated before its parent: it still comes after it.
        latest = max(latest, dates[name])
        ranked.append((latest, number, name))
    ranked += [(date, len(in_git), name) for name, date in dates.items() if name not in known]
    ranked.sort()
    commits = []
    for _, _, name in ranked:
        place = known.get(name)
        commits.append(
            Commit(
                hash=name,
                date=dates[name] or (place.date if place else 0),
                tags=place.tags if place else (),
                position=place.position if place else None,
                orphan=places is not None and place is None,
            )
        )
    numbered = {commit.hash: position for position, commit in enumerate(commits)}
    return commits, np.array([numbered[header.commit] for header in headers], np.int32)


def _runs(table: Table, places: Places, machines: Sequence[Machine], environments: Sequence[Environment]) -> list[Run]:
    """Return one run for each machine, environment and commit, in that order."""
    runs: dict[tuple[int, int, int], Run] = {}
    for number, header in enumerate(table.headers):
        started = table.row_started[table.file_rows[number] : table.file_rows[number + 1]]
        where = (int(places.machine[number]), int(places.environment[number]), int(places.commit[number]))
        runs[where] = Run(
            machine=machines[where[0]],
            environment=environments[where[1]],
            commit=where[2],
            started=int(started.max()) if len(started) else 0,
            params=dict(header.facts),
        )
    return list(runs.values())
