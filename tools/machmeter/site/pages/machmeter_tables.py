"""What only a machmeter store has: tables of models, ladders and swept versions, read from its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from machmeter.history.data import History, Machine
from machmeter.site.links import ModelLink
from machmeter.store import evidence
from machmeter.tables import cells_table, ladder_table, versions_table
from machmeter.text import numbers
from machmeter.workload import rungs
from machmeter.workload.names import parse_rung


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


def read(history: History, results: Path, folder: Path) -> Own:
    """Read the tables of every machine that has evidence in `folder`."""
    tables, ladders, swept = {}, {}, {}
    known = rungs.load()
    for machine in history.machines:
        if not any((folder / machine.name).glob("*.json")):
            continue
        tables[machine.key] = cells_table.build(results, machine.name, evidence_folder=folder)
        for model in _climbed(folder / machine.name):
            built = ladder_table.build(results, machine.name, model, known.values(), folder)
            if any(row.status == "ok" for row in built.rows):
                ladders[machine.key, model] = built
        found = versions_table.build(results, machine.name, evidence_folder=folder)
        if found.series:
            swept[machine.key] = found
    return Own(tables={key: built for key, built in tables.items() if built.rows}, ladders=ladders, versions=swept)


def _climbed(folder: Path) -> list[str]:
    """Return the models whose ladder was climbed, in alphabetical order."""
    files, _ = evidence.read_all(folder, samples=False)
    names = {name for file in files for run in file.runs.values() for name in run.cells}
    return sorted({rung[0] for name in names if (rung := parse_rung(name))})


def model_links(own: Own, history: History) -> tuple[ModelLink, ...]:
    """Return every model page."""
    every = {model for machine in history.machines for model in own.models(machine)}
    names = numbers.files(every)
    return tuple(
        ModelLink(machine=machine, model=model, href=f"model/{machine.slug}/{names[model]}.html")
        for machine in history.machines
        for model in own.models(machine)
    )
