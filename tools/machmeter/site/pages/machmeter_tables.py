"""What only a machmeter store has: tables of models, ladders and swept versions, read from its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from machmeter.history import naming
from machmeter.history.data import History, Machine
from machmeter.site.links import ModelLink
from machmeter.store.found import Found
from machmeter.tables import cells_table, ladder_table, versions_table
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


def build(history: History, read: Mapping[str, Found]) -> Own:
    """Return the tables of every machine that has evidence; `read` is what was read of each, by its name."""
    tables, ladders, swept = {}, {}, {}
    known = rungs.load()
    for machine in history.machines:
        found = read.get(machine.name)
        if found is None:
            continue
        tables[machine.key] = cells_table.build_from(found)
        for model in ladder_table.climbed(found.runs):
            ladder = ladder_table.build_from(found.runs, machine.name, model, known.values())
            if any(row.status == "ok" for row in ladder.rows):
                ladders[machine.key, model] = ladder
        versions = versions_table.build_from(found.runs, machine.name)
        if versions.series:
            swept[machine.key] = versions
    return Own(tables={key: built for key, built in tables.items() if built.rows}, ladders=ladders, versions=swept)


def model_links(own: Own, history: History) -> tuple[ModelLink, ...]:
    """Return every model page."""
    every = {model for machine in history.machines for model in own.models(machine)}
    names = naming.pages(every)
    return tuple(
        ModelLink(machine=machine, model=model, href=f"model/{machine.slug}/{names[model]}.html")
        for machine in history.machines
        for model in own.models(machine)
    )
