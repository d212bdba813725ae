"""Commands that measure: bench, run, sweep, peak, ladder."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console

from machmeter import asv_names
from machmeter.cli import show
from machmeter.cli.common import MODEL, PROJECT, say
from machmeter.errors import NoResults
from machmeter.running import bench, configurations, ladder, libraries, releases, selection, stacks, sweep, waiting
from machmeter.store import evidence
from machmeter.store.values import read_all
from machmeter.tables import ladder_table as ladder_results
from machmeter.tables import peaks, show_ladder
from machmeter.text import table_width
from machmeter.workload import models, rungs

commands = typer.Typer()


@commands.command("bench")
def bench_command(
    model: MODEL = None,
    backend: Annotated[list[str] | None, typer.Option("--backend", help="May be repeated. Default: all.")] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="cpu or cuda. Default: cpu, and cuda where there is a GPU.")
    ] = None,
    batch: Annotated[
        list[int] | None, typer.Option("--batch", help="May be repeated. Default: 1 and 8, on a GPU 1 to 128.")
    ] = None,
    filter_: Annotated[str | None, typer.Option("--filter", help="A regular expression over cell names.")] = None,
    attribute: Annotated[
        list[str] | None, typer.Option("--attribute", "-a", help="Passed to asv, such as rounds=4.")
    ] = None,
    all_options: Annotated[
        bool, typer.Option("--all-options", help="Also what takes long to prepare: inductor ahead of time.")
    ] = False,
    with_offline: Annotated[
        bool, typer.Option("--offline", help="Also offline throughput: requests running side by side.")
    ] = False,
    project: PROJECT = Path(),
) -> None:
    """Measure models on every backend and precision of this machine, then show the table."""
    project = project.resolve()
    chosen = selection.select_models(model or ["ResNet50"])
    parts = selection.plan(
        chosen,
        backend or [],
        list(batch) if batch else None,
        filter_,
        device=device,
        all_options=all_options,
        with_offline=with_offline,
    )
    selection.check_devices(parts)
    bench.check_folders(project)
    bench.fetch_weights(chosen)
    counts = bench.run(parts, project, say, attribute or [])
    show.show_table([item.name for item in chosen], None, False, project)
    waiting.check_measured(counts)


@commands.command("run", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run_command(
    context: typer.Context,
    stack: Annotated[str, typer.Option("--stack", help="The name of a file in requirements/, such as ipex.")],
    project: PROJECT = Path(),
) -> None:
    """Run asv in an environment with the pins of a stack; what follows goes to 'asv run'."""
    if not stacks.run(project.resolve(), stack, context.args):
        print("some benchmarks failed: 'machmeter show' says why")


@commands.command("sweep")
def sweep_command(
    library: Annotated[str, typer.Argument(help="openvino, onnxruntime or torch.")],
    version: Annotated[list[str] | None, typer.Argument(help="The versions to measure.")] = None,
    last: Annotated[int | None, typer.Option("--last", min=1, help="Also the newest N releases.")] = None,
    model: MODEL = None,
    backend: Annotated[list[str] | None, typer.Option("--backend", help="For torch: eager or inductor.")] = None,
    precision: Annotated[list[str] | None, typer.Option("--precision", help="May be repeated.")] = None,
    batch: Annotated[list[int] | None, typer.Option("--batch", help="May be repeated. Default: 1 and 8.")] = None,
    filter_: Annotated[str | None, typer.Option("--filter", help="A regular expression over cell names.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Prepare anew, and measure what was measured.")] = False,
    project: PROJECT = Path(),
) -> None:
    """Measure the same cells, from the same artifacts, with many versions of one library."""
    if not version and not last:
        raise typer.BadParameter("name versions, or use --last N")
    project = project.resolve()
    swept = libraries.get(library)
    chosen = selection.select_models(model or ["ResNet50"])
    selection.check_benchmarked(chosen)
    selected = libraries.select(
        swept, chosen, names=backend or [], precisions=precision or [], batches=batch or [], pattern=filter_
    )
    configurations.check_project(project)
    wanted = releases.choose(swept.name, version or [], last, project, say)
    bench.check_folders(project)
    bench.fetch_weights(chosen)
    prepared = sweep.prepare(swept, selected, project, say, again=again)
    counts = sweep.run(swept, wanted, prepared, project, say, again=again)
    show.show_versions_of([swept.name], [item.name for item in chosen], None, False, project)
    waiting.check_measured(counts)


@commands.command("peak")
def peak_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print the same as JSON.")] = False,
    project: PROJECT = Path(),
) -> None:
    """Measure what this machine can do at best: matrix products in fp32, bf16 and int8, and memory bandwidth."""
    project = project.resolve()
    bench.check_folders(project)
    bench.run_peak(project, lambda line: print(line, file=sys.stderr, flush=True))
    operations = bench.operations(selection.select_models(["all"]))
    results, name = asv_names.results_folder(project), asv_names.machine_name()
    files = read_all(results, name)[0]
    runs = [run for content in evidence.read_folder(results, name) for run in content.runs.values()]
    found = peaks.limits(files, runs, operations)
    print(json.dumps(found.as_json(), indent=2, allow_nan=False) if as_json else "\n".join(peaks.lines(found)))


@commands.command("ladder")
def ladder_command(
    model: Annotated[str, typer.Argument(help="A model, such as ResNet50.")] = "ResNet50",
    rung: Annotated[list[str] | None, typer.Option("--rung", help="Only these rungs. May be repeated.")] = None,
    rungs_file: Annotated[
        Path | None, typer.Option("--rungs", help="A file with rungs of your own (the form of rungs.toml).")
    ] = None,
    show_only: Annotated[bool, typer.Option("--show", help="Show what was measured; run nothing.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the ladder as JSON, with the same digits; with --show only that.")
    ] = False,
    project: PROJECT = Path(),
) -> None:
    """Run the tuning ladder of a model, each rung in processes of its own, and show what every step brought."""
    project, chosen_model = project.resolve(), models.get(model)
    if rungs_file:
        os.environ[rungs.VARIABLE] = str(rungs_file.resolve())
    chosen = ladder.choose(chosen_model, rung or [])
    counts: Counter[str] = Counter()
    if not show_only:
        bench.check_folders(project)
        bench.fetch_weights([chosen_model])
        counts = ladder.run(
            chosen_model, chosen, project, lambda line: print(line, flush=True, file=_progress(as_json))
        )
    _show_ladder(chosen_model.name, list(chosen) if rung else [], as_json, project)
    waiting.check_measured(counts)


def _progress(as_json: bool) -> TextIO:
    """Return where progress goes: not into JSON that somebody parses."""
    return sys.stderr if as_json else sys.stdout


def _show_ladder(model: str, names: list[str], as_json: bool, project: Path) -> None:
    """Show the rungs `names`, all where none is named; gains are over rungs that may not be among them."""
    machine = asv_names.machine_name()
    built = ladder_results.build(asv_names.results_folder(project), machine, model, rungs.load().values())
    if names:
        built = dataclasses.replace(built, rows=tuple(row for row in built.rows if row.rung in names))
    if all(row.status == "not run" for row in built.rows):
        raise NoResults(f"no rung of {model} was measured on {machine} yet: run 'machmeter ladder {model}'")
    if as_json:
        print(json.dumps(built.as_json(), indent=2, allow_nan=False))
        return
    show_ladder.print_ladder(
        built, Console(width=max(Console().width, show_ladder.least_width())), table_width.terminal_width()
    )
