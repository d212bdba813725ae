"""The machines that measure: read from `.github/runners.toml`, checked, and turned into the matrix of a workflow."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from machmeter import asv_names
from machmeter.errors import BadSetting, MachmeterError, RunFailed, RunnersInvalid, UnknownName
from machmeter.running import libraries, stacks
from machmeter.text import durations

FILE = Path(".github/runners.toml")

Workflow = Literal["benchmark", "versions", "benchmark-pr"]
WORKFLOWS: tuple[Workflow, ...] = ("benchmark", "versions", "benchmark-pr")


_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LISTS = ("labels", "stacks", "workflows", "sweeps", "accept")
_REQUIRED = ("name", "labels", "stacks", "threads", "benchmarks", "workflows")

# Labels that every self-hosted runner of such a machine has: they name no machine.
_COMMON_LABELS = {"self-hosted", "linux", "x64", "arm64"}


@dataclass(frozen=True, kw_only=True)
class Runner:
    """A machine that measures, and what it is used for."""

    name: str
    labels: tuple[str, ...]
    stacks: tuple[str, ...]
    threads: int
    benchmarks: str
    workflows: tuple[str, ...]
    sweeps: tuple[str, ...] = ()
    accept: tuple[str, ...] = ()  # checks of the doctor that cannot be met there
    budget: str = "30m"  # for the comparison of a pull request, with each stack


def load(project: Path) -> tuple[Runner, ...]:
    """Return the machines of `project`. Raises RunnersInvalid with all that is wrong with the list."""
    path = project / FILE
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunnersInvalid(f"cannot read {path} ({error}): it lists the machines that measure") from error
    entries = content.get("runner", [])
    if (
        set(content) - {"runner"}
        or not isinstance(entries, list)
        or not all(isinstance(item, dict) for item in entries)
    ):
        raise RunnersInvalid(f"{FILE}: write one [[runner]] for each machine, and nothing else")
    faults = [fault for number, entry in enumerate(entries, 1) for fault in _faults(number, entry)]
    if faults:
        raise RunnersInvalid(f"{FILE}: {'; '.join(faults)}")
    found = tuple(_runner(entry) for entry in entries)
    if faults := _together(found):
        raise RunnersInvalid(f"{FILE}: {'; '.join(faults)}")
    return found


def _runner(entry: Mapping[str, Any]) -> Runner:
    values: dict[str, Any] = {key: tuple(value) if key in _LISTS else value for key, value in entry.items()}
    return Runner(**values)


def _faults(number: int, entry: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with one entry taken by itself."""
    name = entry.get("name")
    called = repr(name) if isinstance(name, str) else f"runner {number}"
    faults = [f"{called} lacks {key}" for key in _REQUIRED if key not in entry]
    faults += [f"{called}: unknown key {key!r}" for key in entry if key not in Runner.__dataclass_fields__]
    for key in _LISTS:
        value = entry.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            faults.append(f"{called}: {key} must be a list of texts")
    if faults:
        return faults
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        faults.append(f"{called}: a name has lower-case letters, digits and hyphens only")
    if "self-hosted" not in entry["labels"] or not set(entry["labels"]) - _COMMON_LABELS:
        faults.append(f"{called}: labels need 'self-hosted' and one of its own, such as 'machmeter-{name}'")
    faults += [f"{called}: {label!r} is no label" for label in entry["labels"] if not _LABEL.fullmatch(label)]
    if not entry["stacks"]:
        faults.append(f"{called}: name at least one stack")
    try:
        durations.parse(entry.get("budget", "30m"))
    except (MachmeterError, TypeError) as error:
        faults.append(f"{called}: {error}")
    if not isinstance(entry["threads"], int) or isinstance(entry["threads"], bool) or entry["threads"] < 1:
        faults.append(f"{called}: threads must be a whole number from 1 on")
    faults += [f"{called}: unknown workflow {item!r}" for item in entry["workflows"] if item not in WORKFLOWS]
    if "versions" in entry["workflows"] and not entry.get("sweeps"):
        faults.append(f"{called}: versions needs sweeps, the libraries to measure")
    try:
        re.compile(entry["benchmarks"])
    except (re.error, TypeError) as error:
        faults.append(f"{called}: benchmarks is not a regular expression ({error})")
    return faults


def _together(found: Sequence[Runner]) -> list[str]:
    """Return what is wrong with the entries beside each other."""
    counts = Counter(runner.name for runner in found)
    faults = [f"{name!r} is there {count} times" for name, count in counts.items() if count > 1]
    for runner in found:
        # GitHub gives a job to any runner that has all of its labels.
        for other in found:
            if runner is not other and set(runner.labels) <= set(other.labels):
                faults.append(f"a job for {runner.name!r} could land on {other.name!r}: give each a label of its own")
    return faults


def check(project: Path) -> tuple[Runner, ...]:
    """Return the machines of `project`, whose stacks and libraries exist. Raises RunnersInvalid, StackUnpinned."""
    from machmeter import doctor

    found = load(project)
    for runner in found:
        for stack in runner.stacks:
            try:
                stacks.check(project, stack)
            except UnknownName as error:
                raise RunnersInvalid(f"{FILE}: {runner.name!r}: {error}") from error
        for library in runner.sweeps:
            try:
                libraries.get(library)
            except MachmeterError as error:
                raise RunnersInvalid(f"{FILE}: {runner.name!r}: {error}") from error
        if unknown := sorted(set(runner.accept) - set(doctor.NAMES)):
            raise RunnersInvalid(f"{FILE}: {runner.name!r} accepts {unknown[0]!r}, which is no check of the doctor")
    return found


def get(project: Path, name: str) -> Runner:
    """Return the machine called `name`. Raises UnknownName."""
    found = load(project)
    for runner in found:
        if runner.name == name:
            return runner
    raise UnknownName(f"unknown runner {name!r}: {FILE} has {', '.join(item.name for item in found) or 'none'}")


def matrix(found: Sequence[Runner], workflow: Workflow) -> dict[str, Any]:
    """Return the matrix of `workflow`: one job for each machine, and in `versions` for each library to sweep there."""
    jobs: list[dict[str, Any]] = []
    for runner in found:
        if workflow in runner.workflows:
            job = {"name": runner.name, "labels": list(runner.labels)}
            jobs += [{**job, "library": library} for library in runner.sweeps] if workflow == "versions" else [job]
    return {"include": jobs}


def name_machine(project: Path, name: str) -> None:
    """Let asv file this machine's results under `name`, whatever the host is called.

    Single-use runners have another host name each time. Raises RunFailed, BadSetting.
    """
    if not (asv_names.knows_machine() and asv_names.machine_name() == name):
        command = [sys.executable, "-m", "asv", "machine", "--yes", "--machine", name]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RunFailed(f"asv cannot note the facts of this machine: {(done.stdout + done.stderr).strip()[-300:]}")
    check_name(name)


def check_name(name: str) -> None:
    """Raise BadSetting where asv would file this machine's results under another name than `name`."""
    if not asv_names.knows_machine():
        raise BadSetting(f"asv does not know this machine yet: run 'machmeter runners name {name}'")
    if (known := asv_names.machine_name()) != name:
        raise BadSetting(
            f"asv would file the results under {known!r}, not {name!r}: remove ~/.asv-machine.json, "
            f"then run 'machmeter runners name {name}'"
        )
