"""The machines, what is known of them, the environments, and the commits that no repository has."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from machmeter import json_shape
from machmeter.history.data import Commit, Machine, Run
from machmeter.machine.host import HostFacts
from machmeter.site.links import ModelLink, commit_name
from machmeter.site.pages.shared import Site
from machmeter.text import numbers

_NOTED = {"arch": "architecture", "cpu": "CPU", "num_cpu": "CPUs", "os": "system", "ram": "memory"}


@dataclass(frozen=True, kw_only=True)
class ShownEnvironment:
    """What is known of an environment."""

    label: str
    name: str
    python: str
    stack: str
    requirements: str
    runs: int
    first: int
    last: int
    packages: str
    package_count: int


@dataclass(frozen=True, kw_only=True)
class ShownEvent:
    """A change of the machine or of what is installed."""

    date: int
    commit: str
    environment: str
    kind: str
    text: str


@dataclass(frozen=True, kw_only=True)
class ShownMachine:
    """What is known of a machine."""

    name: str
    folder: str
    slug: str
    facts: Sequence[tuple[str, str]]
    newest: int | None
    runs: int
    environments: Sequence[ShownEnvironment]
    events: Sequence[ShownEvent]
    models: Sequence[ModelLink]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the template of the page of machines is given."""

    machines: Sequence[ShownMachine]
    orphans: Sequence[Commit]
    repository: bool


def context(site: Site) -> Context:
    """Return what the page of machines shows."""
    history = site.history
    runs: dict[str, list[Run]] = {}
    for run in history.runs:
        runs.setdefault(run.machine.key, []).append(run)
    orphans = [commit for commit in history.commits if commit.orphan]
    return Context(
        machines=[_machine(machine, runs.get(machine.key, []), site) for machine in history.machines],
        orphans=list(reversed(orphans)),
        repository=history.has_repository,
    )


def _machine(machine: Machine, runs: list[Run], site: Site) -> ShownMachine:
    history = site.history
    newest = max(runs, key=lambda run: (run.started, run.commit), default=None)
    environments: dict[str, list[Run]] = {}
    for run in runs:
        environments.setdefault(run.environment.key, []).append(run)
    host = next(
        (run.host for run in sorted(runs, key=lambda run: (run.started, run.commit), reverse=True) if run.host), None
    )
    return ShownMachine(
        name=machine.name,
        folder=machine.folder if machine.folder != machine.name else "",
        slug=machine.slug,
        facts=_facts(machine.facts, host),
        newest=(newest.started or history.commits[newest.commit].date) if newest else None,
        runs=len(runs),
        environments=[_environment(group, site) for group in environments.values()],
        events=[
            ShownEvent(
                date=history.commits[event.commit].date,
                commit=commit_name(history.commits[event.commit]),
                environment=event.environment.label,
                kind=event.kind,
                text=event.text,
            )
            for event in reversed(history.events)
            if event.machine.key == machine.key
        ],
        models=[link for link in site.models if link.machine.key == machine.key],
    )


def _environment(runs: list[Run], site: Site) -> ShownEnvironment:
    environment, commits = runs[0].environment, site.history.commits
    packages = next((run.packages for run in reversed(runs) if run.packages), {})
    return ShownEnvironment(
        label=environment.label,
        name=environment.name,
        python=environment.python,
        stack=environment.stack or "",
        requirements=", ".join(
            f"{name} {version}".strip() for name, version in sorted(environment.requirements.items())
        ),
        runs=len(runs),
        first=commits[runs[0].commit].date,
        last=commits[runs[-1].commit].date,
        packages=", ".join(f"{name} {version}" for name, version in sorted(packages.items())),
        package_count=len(packages),
    )


def _facts(noted: Mapping[str, str], host: HostFacts | None) -> list[tuple[str, str]]:
    """Return what is known of a machine: what asv noted, then what the evidence read from the machine itself."""
    found = []
    for name, title in _NOTED.items():
        text = str(noted.get(name, ""))
        if name == "ram" and text.isdigit():
            text = numbers.value(float(text), "bytes")
        if text:
            found.append((title, text))
    for key, value in sorted(json_shape.encode(host).items() if host else ()):
        if key in ("architecture", "system"):
            continue
        for name, inner in sorted(value.items()) if isinstance(value, dict) else [("", value)]:
            text = _text(inner, f"{key} {name}")
            if text and text not in dict(found).values():
                found.append((f"{key} {name}".replace("_", " ").strip(), text))
    return found


def _text(value: Any, name: str) -> str:
    if value is None or value == [] or value == {}:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    if "bytes" in name and isinstance(value, int | float):
        return numbers.value(float(value), "bytes")
    return str(value)
