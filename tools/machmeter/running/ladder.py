"""Climb the ladder of a model: run its rungs with asv, here and in the stacks whose environments exist."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from machmeter.errors import UnknownName
from machmeter.measure import rung_configuration
from machmeter.running import bench, selection, stacks
from machmeter.running.waiting import Say
from machmeter.workload import rungs
from machmeter.workload.models import Model
from machmeter.workload.names import LADDER, rung_key
from machmeter.workload.rungs import Rung


@dataclass(frozen=True, kw_only=True)
class _Step:
    """A rung as `bench.run` sees it."""

    name: str
    batch: int

    def key(self) -> str:
        return self.name


def choose(model: Model, names: list[str]) -> dict[str, Rung]:
    """Return the rungs `names` (all where none is named), after checking each of them against `model`.

    Raises UnknownName or BadSetting before anything runs.
    """
    if not model.benchmarked:
        raise UnknownName(f"{model.name} is only for tests: choose from {selection.benchmarked()}")
    model.weights()  # a wrong MACHMETER_WEIGHTS is told before anything runs
    known = rungs.load()
    chosen = {name: rungs.get(name, known) for name in names} or known
    for rung in chosen.values():
        rung_configuration.configuration(rung, known, model.name)
    return chosen


def part(model: Model, chosen: Mapping[str, Rung]) -> selection.Part:
    """Return what asv has to measure for the rungs `chosen`."""
    known = rungs.load()
    steps = tuple(
        _Step(name=rung_key(model.name, name), batch=rungs.settings(rung, known).batch) for name, rung in chosen.items()
    )
    return selection.Part(
        title=f"the ladder of {model.name}",
        patterns=tuple(pattern(model, {name: rung}) for name, rung in chosen.items()),
        cells=steps,
    )


def pattern(model: Model, chosen: Mapping[str, Rung]) -> str:
    """Return the regular expression with which asv selects the rungs `chosen` and no others."""
    return rf"^{LADDER}\.{model.name}\.\w+\('({'|'.join(map(re.escape, chosen))})'\)$"


def run(model: Model, chosen: Mapping[str, Rung], project: Path, say: Say) -> Counter[str]:
    """Measure `chosen`, one process tree each: here, or in the stack of a rung's backend where that has an environment.

    Without one a rung is tried here too, and n/a with its reason. Returns how many rungs are what.
    """
    counts: Counter[str] = Counter()
    here = dict(chosen)
    for stack, rungs_of_it in _elsewhere(model, chosen).items():
        if stacks.exists(project, stack):
            here = {name: rung for name, rung in here.items() if name not in rungs_of_it}
            say(f"{len(rungs_of_it)} rungs in the environment of the stack {stack}, of the newest commit")
            counts += stacks.measure(project, stack, part(model, rungs_of_it), say)
        else:
            say(
                f"{', '.join(rungs_of_it)} need the stack {stack}, which has no environment yet: make it with "
                f"'machmeter run --stack {stack} -b {pattern(model, rungs_of_it)!r}'"
            )
    if here:
        counts += bench.run([part(model, here)], project, say, control=False)
    return counts


def _elsewhere(model: Model, chosen: Mapping[str, Rung]) -> dict[str, dict[str, Rung]]:
    """Return those of `chosen` whose backend lives in another stack than this environment's, by that stack."""
    known = rungs.load()
    found: dict[str, dict[str, Rung]] = {}
    for name, rung in chosen.items():
        stack = rung_configuration.configuration(rung, known, model.name).backend.stack
        if stack not in (selection.STACK, "minimal"):
            found.setdefault(stack, {})[name] = rung
    return found
