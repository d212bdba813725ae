"""What changed around the measurements between two consecutive runs: the machine, its software, the packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from machmeter.history.model import Event, History, Run

Difference = tuple[str, str, str]  # name, old, new; "" where it was absent

# How a fact of the host in the evidence is called, and where it is found.
_HOST = (
    ("CPU", ("cpu", "model")),
    ("physical cores", ("cpu", "physical_cores")),
    ("thread budget", ("thread_budget",)),
    ("CPU quota", ("limits", "cpu_quota")),
    ("kernel", ("kernel",)),
    ("driver", ("gpu", "driver")),
    ("GPU", ("gpu", "name")),
    ("frequency governor", ("governor",)),
    ("turbo disabled", ("turbo_disabled",)),
    ("huge pages", ("transparent_huge_pages",)),
)

# The same of what asv notes of a machine. Memory is left out: it is a few bytes off after every start.
_NOTED = (("CPU", "cpu"), ("logical CPUs", "num_cpu"), ("architecture", "arch"), ("system", "os"))

# Differences that make two numbers incomparable, rather than only explain a step.
INCOMPARABLE = ("CPU", "GPU", "driver", "thread budget", "CPU quota", "physical cores", "logical CPUs", "architecture")

_NAMED = 6  # in the line of text; the details have all


def between_runs(history: History) -> Iterator[Event]:
    """Yield where the host or the packages changed between consecutive runs of each machine and environment."""
    before: Run | None = None
    for run in history.runs:
        if before and (before.machine, before.environment) == (run.machine, run.environment):
            for kind, found in (("host", host(before, run)), ("packages", packages(before, run))):
                if found:
                    yield Event(
                        machine=run.machine,
                        environment=run.environment,
                        commit=run.commit,
                        text=text(found),
                        kind=kind,
                        details=tuple(found),
                    )
        before = run


def facts(run: Run) -> dict[str, str]:
    """Return what is on record of the host of `run` that bears on its numbers: from the evidence, else from asv."""
    found = {name: fact for name, path in _HOST if (fact := _fact(run.host, path))}
    for name, noted in _NOTED:
        if name not in found and run.params.get(noted):
            found[name] = run.params[noted]
    if "kernel" in found:  # asv's name of the system holds the same
        found.pop("system", None)
    return found


def host(old: Run, new: Run) -> list[Difference]:
    """Return the facts of the host that differ. What only one of the runs has on record is no difference."""
    if not old.host and not new.host and old.params == new.params:
        return []  # as in nearly every run of a foreign project
    first, second = facts(old), facts(new)
    return [(name, fact, second[name]) for name, fact in first.items() if second.get(name, fact) != fact]


def packages(old: Run, new: Run) -> list[Difference]:
    """Return the installed packages that differ, by name; none where either run has none on record."""
    if not old.packages or not new.packages:
        return []
    names = sorted({*old.packages, *new.packages})
    pairs = ((name, old.packages.get(name, ""), new.packages.get(name, "")) for name in names)
    return [(name, before, after) for name, before, after in pairs if before != after]


def text(differences: list[Difference]) -> str:
    """Return differences as one line: "torch 2.13.0 -> 2.14.1, 2 more"."""
    told = [f"{name} {before or 'none'} → {after or 'none'}" for name, before, after in differences[:_NAMED]]
    return ", ".join(told + ([f"{len(differences) - _NAMED} more"] if len(differences) > _NAMED else []))


def _fact(host: Mapping[str, Any], path: tuple[str, ...]) -> str:
    found: Any = host
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return "" if found is None else str(found).strip()
