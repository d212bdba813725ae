"""Climb the ladder of a model: run its rungs with asv, here and in the stacks whose environments exist."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from machmeter import bench, rungs, tuning
from machmeter.errors import UnknownName
from machmeter.models import Model
from machmeter.rungs import Rung


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
        raise UnknownName(f"{model.name} is only for tests: choose from {bench.benchmarked()}")
    model.weights()  # a wrong MACHMETER_WEIGHTS is told before anything runs
    known = rungs.load()
    chosen = {name: rungs.get(name, known) for name in names} or known
    for rung in chosen.values():
        rungs.configuration(rung, known, model.name)
    return chosen


def part(model: Model, chosen: Mapping[str, Rung]) -> bench.Part:
    """Return what asv has to measure for the rungs `chosen`."""
    known = rungs.load()
    steps = tuple(
        _Step(name=tuning.key(model.name, name), batch=rungs.settings(rung, known)["batch"])
        for name, rung in chosen.items()
    )
    return bench.Part(title=f"the ladder of {model.name}", patterns=(pattern(model, chosen),), cells=steps)


def pattern(model: Model, chosen: Mapping[str, Rung]) -> str:
    """Return the regular expression with which asv selects the rungs `chosen` and no others."""
    return rf"^tuning\.{model.name}\.\w+\('({'|'.join(map(re.escape, chosen))})'\)$"


def elsewhere(model: Model, chosen: Mapping[str, Rung], here: str) -> dict[str, dict[str, Rung]]:
    """Return those of `chosen` whose backend lives in another stack than `here`, by that stack."""
    known = rungs.load()
    found: dict[str, dict[str, Rung]] = {}
    for name, rung in chosen.items():
        stack = rungs.configuration(rung, known, model.name).backend.stack
        if stack not in (here, "minimal"):
            found.setdefault(stack, {})[name] = rung
    return found


def run(model: Model, chosen: Mapping[str, Rung], project: Path, say: bench.Say) -> None:
    """Measure `chosen` in this environment, one process tree each."""
    bench.run([part(model, chosen)], project, say, control=False)
