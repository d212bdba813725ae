"""What changed around the measurements between two consecutive runs: the machine, its software, the packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from machmeter import backends
from machmeter.history.data import Event, History, Run
from machmeter.machine.host import HostFacts

Difference = tuple[str, str, str]  # name, old, new; "" where it was absent

# How a fact of the host in the evidence is called, and where it is found. What an old file lacks is no fact.
_HOST: tuple[tuple[str, Callable[[HostFacts], str | float | None]], ...] = (
    ("CPU", lambda host: host.cpu.model),
    ("physical cores", lambda host: host.cpu.physical_cores or None),
    ("thread budget", lambda host: host.thread_budget),
    ("CPU quota", lambda host: host.limits.cpu_quota),
    ("kernel", lambda host: host.kernel),
    ("frequency governor", lambda host: host.governor),
    ("turbo disabled", lambda host: host.turbo_disabled),
    ("huge pages", lambda host: host.transparent_huge_pages),
    ("CPU features", lambda host: " ".join(sorted(host.cpu.features))),
    ("memory limit", lambda host: host.limits.memory_bytes and f"{host.limits.memory_bytes} bytes"),
)

# The same of what asv notes of a machine. Memory is left out: it is a few bytes off after every start.
_NOTED = (("CPU", "cpu"), ("logical CPUs", "num_cpu"), ("architecture", "arch"), ("system", "os"))

# Differences that make two numbers incomparable, rather than only explain a step.
INCOMPARABLE = (
    "CPU", "GPU", "driver", "thread budget", "CPU quota", "physical cores", "logical CPUs", "architecture",
    "CPU features", "memory limit",
)  # fmt: skip

_NAMED = 6  # in the line of text; the details have all
READABLE = 200  # characters of both sides of a difference
_LONGEST = 1000  # characters of a fact: those of a CPU's features are many


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
            # A run without evidence says nothing: the next that has some is compared with the last that had.
            run = replace(run, host=run.host or before.host, packages=run.packages or before.packages)
        before = run


def facts(run: Run) -> dict[str, str]:
    """Return what is on record of the host of `run` that bears on its numbers: from the evidence, else from asv."""
    found = {**noted(run), **(recorded(run.host) if run.host else {})}
    if "kernel" in found:
        found.pop("system", None)  # the kernel, once more
    return found


def host(old: Run, new: Run) -> list[Difference]:
    """Return the facts of the host that differ. What only one of the runs has on record is no difference."""
    if not old.host and not new.host and old.params == new.params:
        return []  # as in nearly every run of a foreign project
    # asv and the evidence name the same CPU differently: each is compared with its own kind.
    first, second = noted(old), noted(new)
    if old.host and new.host:
        first, second = {**first, **recorded(old.host)}, {**second, **recorded(new.host)}
        first.pop("system", None)  # the kernel, once more
    return [(name, fact, second[name]) for name, fact in first.items() if second.get(name, fact) != fact]


def recorded(host: HostFacts) -> dict[str, str]:
    """Return the facts of the machine `host`, as the evidence has it, under the names by which they are shown."""
    found = {name: fact for name, look in _HOST if (fact := _text(look(host)))}
    return {name: fact[:_LONGEST] for name, fact in found.items()}


def noted(run: Run) -> dict[str, str]:
    """Return what asv noted of the machine of `run`, under the names by which it is shown."""
    return {name: run.params[key] for name, key in _NOTED if run.params.get(key)}


def packages(old: Run, new: Run) -> list[Difference]:
    """Return the installed packages that differ, runtimes first; none where either run has none on record."""
    if not old.packages or not new.packages:
        return []
    runtimes = {"numpy"}.union(*backends.distributions().values())
    names = sorted({*old.packages, *new.packages}, key=lambda name: (name not in runtimes, name))
    pairs = ((name, old.packages.get(name, ""), new.packages.get(name, "")) for name in names)
    return [(name, before, after) for name, before, after in pairs if before != after]


def text(differences: list[Difference]) -> str:
    """Return differences as one line: "torch 2.13.0 -> 2.14.1, 2 more"."""
    named = [told(*found) for found in differences[:_NAMED]]
    return ", ".join(named + ([f"{len(differences) - _NAMED} more"] if len(differences) > _NAMED else []))


def told(name: str, before: str, after: str) -> str:
    """Return a difference in words; what is too long to be read is only named."""
    return f"{name} {before or 'none'} → {after or 'none'}" if len(before + after) <= READABLE else f"{name} differ"


def _text(fact: str | float | None) -> str:
    return "" if fact is None else str(fact).strip()
