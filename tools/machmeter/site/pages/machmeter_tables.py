"""What only a machmeter store has: tables of models, ladders and swept versions, read from its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from machmeter.history.data import History, Machine
from machmeter.measure import settling
from machmeter.site.links import ModelLink
from machmeter.tables import cells_table, ladder_table, versions_table
from machmeter.text import numbers
from machmeter.workload import rungs


@dataclass(frozen=True, kw_only=True)
class Own:
    """The tables of every machine, by the machine's key."""

    tables: Mapping[str, cells_table.Table] = field(default_factory=dict)
    ladders: Mapping[tuple[str, str], ladder_table.LadderTable] = field(default_factory=dict)  # by machine and model
    versions: Mapping[str, versions_table.Versions] = field(default_factory=dict)

    def models(self, machine: Machine) -> list[str]:
        """Return the models of a machine, in the order of the table, then those with a ladder alone."""
        built = self.tables.get(machine.key)
        names = list(dict.fromkeys(row.model for row in built.rows)) if built else []
        return names + [model for key, model in self.ladders if key == machine.key and model not in names]


def read(history: History, results: Path, evidence: Path) -> Own:
    """Read the tables of every machine that has evidence."""
    tables, ladders, swept = {}, {}, {}
    known = rungs.load()
    for machine in history.machines:
        if not any((evidence / machine.name).glob("*.json")):
            continue
        tables[machine.key] = cells_table.build(results, machine.name, evidence_folder=evidence)
        for model in _climbed(evidence / machine.name):
            built = ladder_table.build(results, machine.name, model, known.values(), evidence)
            if any(row.status == "ok" for row in built.rows):
                ladders[machine.key, model] = built
        found = versions_table.build(results, machine.name, evidence_folder=evidence)
        if found.series:
            swept[machine.key] = found
    return Own(tables={key: built for key, built in tables.items() if built.rows}, ladders=ladders, versions=swept)


def _climbed(folder: Path) -> list[str]:
    """Return the models whose ladder was climbed, in alphabetical order."""
    found = set()
    for path in sorted(folder.glob("*.json")):
        content = settling.read(path)
        for run in content["runs"].values() if content else ():
            found |= {key[len("tuning.") :].partition("(")[0] for key in run["cells"] if key.startswith("tuning.")}
    return sorted(found)


def model_links(own: Own, history: History) -> tuple[ModelLink, ...]:
    """Return every model page."""
    every = {model for machine in history.machines for model in own.models(machine)}
    names = numbers.files(every)
    return tuple(
        ModelLink(machine=machine, model=model, href=f"model/{machine.slug}/{names[model]}.html")
        for machine in history.machines
        for model in own.models(machine)
    )
