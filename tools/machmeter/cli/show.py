"""Commands that show what was measured: show, versions, recommend, list, host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from machmeter import asv_names, json_shape, recommend
from machmeter.cli.common import MODEL, PROJECT
from machmeter.errors import MachmeterError, NoResults, from_os_error
from machmeter.machine import host
from machmeter.running import libraries, selection
from machmeter.tables import available, cells_found, cells_table, show_versions, versions_table
from machmeter.tables import ladder_table as ladder_results
from machmeter.tables import show_cells as shown
from machmeter.text import table_width
from machmeter.workload import models, rungs
from machmeter.workload.artifacts import Store

commands = typer.Typer()


@commands.command("show")
def show_command(
    model: MODEL = None,
    machine: Annotated[str | None, typer.Option(help="Default: this machine.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON, with the same digits.")] = False,
    project: PROJECT = Path(),
) -> None:
    """Show what was measured: a table per model, best first, failed and n/a cells with their reasons."""
    show_table([item.name for item in selection.select_models(model or [])], machine, as_json, project.resolve())


def show_table(names: list[str], machine: str | None, as_json: bool, project: Path) -> None:
    """Print the table of the models `names`, of every model where none is named."""
    built = _table(names, machine, project)
    if as_json:
        print(json.dumps(built.as_json(), indent=2, allow_nan=False))
        return
    # Never narrower than the table: a wrapped row can be read, a number that was cut cannot.
    shown.print_table(built, Console(width=max(Console().width, shown.least_width())), table_width.terminal_width())


@commands.command("versions")
def versions_command(
    library: Annotated[str | None, typer.Argument(help="Default: every library that was swept.")] = None,
    model: MODEL = None,
    machine: Annotated[str | None, typer.Option(help="Default: this machine.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON, with the same digits.")] = False,
    project: PROJECT = Path(),
) -> None:
    """Show how each cell moved over the versions of a library that were swept."""
    names = [libraries.get(library).name] if library else []
    show_versions_of(
        names, [item.name for item in selection.select_models(model or [])], machine, as_json, project.resolve()
    )


def show_versions_of(names: list[str], chosen: list[str], machine: str | None, as_json: bool, project: Path) -> None:
    """Print what sweeps of the libraries `names` found of the models `chosen`."""
    name = machine or asv_names.machine_name()
    built = versions_table.build(asv_names.results_folder(project), name, names, chosen)
    if not built.series:
        raise NoResults(
            f"no sweep of {', '.join(names) or 'any library'} over {', '.join(chosen) or 'any model'} "
            f"on {name} yet: run 'machmeter sweep'"
        )
    if as_json:
        print(json.dumps(built.as_json(), indent=2, allow_nan=False))
        return
    show_versions.print_versions(
        built, Console(width=max(Console().width, show_versions.least_width())), table_width.terminal_width()
    )


def _known_machine(results: Path, machine: str | None) -> str:
    """Return `machine`, or the name of this one. Raises NoResults where nothing was measured on it."""
    known = cells_found.machines(results)
    name = machine or asv_names.machine_name()
    if name not in known:
        others = f"; there are results of {', '.join(known)}: use --machine" if known else ""
        raise NoResults(f"nothing was measured on {name} yet: run 'make bench' or 'asv run'{others}")
    return name


def _table(names: list[str], machine: str | None, project: Path) -> cells_table.Table:
    results = asv_names.results_folder(project)
    name = _known_machine(results, machine)
    built = cells_table.build(results, name, names)
    if not built.rows:
        raise NoResults(f"nothing was measured of {', '.join(names) or 'any model'} on {name} yet: run 'make bench'")
    return built


@commands.command("recommend")
def recommend_command(
    model: Annotated[str, typer.Argument(help="A model.")],
    min_agreement: Annotated[str | None, typer.Option(help="Least share of images with fp32's class: 0.99.")] = None,
    max_latency: Annotated[str | None, typer.Option(help="Of one call (p95), with its unit: 50ms.")] = None,
    min_throughput: Annotated[str | None, typer.Option(help="Images per second: 100.")] = None,
    max_memory: Annotated[str | None, typer.Option(help="Peak resident memory, with its unit: 1GB.")] = None,
    batch: Annotated[int | None, typer.Option(help="Only this batch. Default: any.")] = None,
    snippet: Annotated[Path | None, typer.Option(help="Write the program into this file.")] = None,
    machine: Annotated[str | None, typer.Option(help="Default: this machine.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the same as JSON.")] = False,
    project: PROJECT = Path(),
) -> None:
    """Say which measured configuration of a model is fastest within limits, and how to load it without machmeter."""
    name = models.get(model).name
    limits = recommend.parse(
        {"agreement": min_agreement, "latency": max_latency, "throughput": min_throughput, "memory": max_memory}
    )
    results = asv_names.results_folder(project.resolve())
    built = cells_table.build(results, _known_machine(results, machine), [name])
    rungs_of_it = ladder_results.build(results, built.machine, name, rungs.load().values())
    candidates = recommend.at_batch(recommend.measured(built, rungs_of_it), batch)
    verdict = recommend.judge(candidates, limits)
    program: str | None = None
    reason: MachmeterError | None = None
    try:
        program = recommend.snippet(verdict.recommended, Store())
    except MachmeterError as error:
        reason = error
    if as_json:
        found = recommend.as_json(verdict, limits, built.machine, program, str(reason) if reason else None)
        print(json.dumps(found, indent=2, allow_nan=False))
    else:
        print(recommend.as_text(verdict, limits, built.machine, program or str(reason)))
    if snippet and reason:
        raise reason
    if snippet and program:
        try:
            snippet.write_text(program, encoding="utf-8")
        except OSError as error:
            raise from_os_error(error, snippet, "the program", None) from error


@commands.command("list")
def list_command() -> None:
    """List models, backends and precisions, and what cannot run here with the reason."""
    print("\n".join(available.lines()))


@commands.command("host")
def host_command() -> None:
    """Print the facts of this machine that go into the evidence."""
    print(json.dumps(json_shape.encode(host.facts()), indent=2))
