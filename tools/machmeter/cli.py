"""The command line. Everything that touches the world is called from here; nothing is decided here."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console

from machmeter import (
    asvrun,
    backends,
    bench,
    cells,
    derived,
    evidence,
    host,
    ladder,
    libraries,
    models,
    recommend,
    releases,
    rungs,
    stacks,
    sweep,
)
from machmeter.artifacts import Store
from machmeter.errors import MachmeterError, NoResults, from_os_error
from machmeter.results import ladder as ladder_results
from machmeter.results import peaks, show_ladder, show_versions, table, versions
from machmeter.results import show as shown
from machmeter.results.store import read_all

app = typer.Typer(
    help="Measure which deep-learning inference configuration is fastest on this machine, and still right.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

INTERRUPTED = "interrupted; what was finished is kept: 'machmeter show' and 'machmeter versions' show it"

MODEL = Annotated[list[str] | None, typer.Option("--model", "-m", help="A model, or 'all'. May be repeated.")]
PROJECT = Annotated[Path, typer.Option("--project", help="The folder with asv.conf.json.")]


@app.command("bench")
def bench_command(
    model: MODEL = None,
    backend: Annotated[list[str] | None, typer.Option("--backend", help="May be repeated. Default: all.")] = None,
    batch: Annotated[list[int] | None, typer.Option("--batch", help="May be repeated. Default: 1 and 8.")] = None,
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
    """Measure models on every CPU backend and precision, then show the table."""
    project = project.resolve()
    chosen = bench.select_models(model or ["ResNet50"])
    parts = bench.plan(
        chosen,
        backend or [],
        list(batch or bench.DEFAULT_BATCHES),
        filter_,
        all_options=all_options,
        with_offline=with_offline,
    )
    bench.check_folders(project)
    bench.fetch_weights(chosen)
    bench.run(parts, project, _say, attribute or [])
    _show([item.name for item in chosen], None, False, project)


@app.command("show")
def show_command(
    model: MODEL = None,
    machine: Annotated[str | None, typer.Option(help="Default: this machine.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON, with the same digits.")] = False,
    project: PROJECT = Path(),
) -> None:
    """Show what was measured: a table per model, best first, failed and n/a cells with their reasons."""
    _show([item.name for item in bench.select_models(model or [])], machine, as_json, project.resolve())


def _show(names: list[str], machine: str | None, as_json: bool, project: Path) -> None:
    built = _table(names, machine, project)
    if as_json:
        print(json.dumps(built.as_json(), indent=2, allow_nan=False))
        return
    # Never narrower than the table: a wrapped row can be read, a number that was cut cannot.
    shown.print_table(built, Console(width=max(Console().width, shown.WIDTH)))


@app.command("run", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run_command(
    context: typer.Context,
    stack: Annotated[str, typer.Option("--stack", help="The name of a file in requirements/, such as ipex.")],
    project: PROJECT = Path(),
) -> None:
    """Run asv in an environment with the pins of a stack; what follows goes to 'asv run'."""
    if not stacks.run(project.resolve(), stack, context.args):
        print("some benchmarks failed: 'machmeter show' says why")


@app.command("sweep")
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
    chosen = bench.select_models(model or ["ResNet50"])
    bench.check_benchmarked(chosen)
    selected = libraries.select(
        swept, chosen, names=backend or [], precisions=precision or [], batches=batch or [], pattern=filter_
    )
    derived.check_project(project)
    wanted = releases.choose(swept.name, version or [], last, project, _say)
    bench.check_folders(project)
    bench.fetch_weights(chosen)
    prepared = sweep.prepare(swept, selected, project, _say, again=again)
    sweep.run(swept, wanted, prepared, project, _say, again=again)
    _show_versions([swept.name], [item.name for item in chosen], None, False, project)


@app.command("versions")
def versions_command(
    library: Annotated[str | None, typer.Argument(help="Default: every library that was swept.")] = None,
    model: MODEL = None,
    machine: Annotated[str | None, typer.Option(help="Default: this machine.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON, with the same digits.")] = False,
    project: PROJECT = Path(),
) -> None:
    """Show how each cell moved over the versions of a library that were swept."""
    names = [libraries.get(library).name] if library else []
    _show_versions(names, [item.name for item in bench.select_models(model or [])], machine, as_json, project.resolve())


def _show_versions(names: list[str], chosen: list[str], machine: str | None, as_json: bool, project: Path) -> None:
    name = machine or asvrun.machine_name()
    built = versions.build(asvrun.results_folder(project), name, names, chosen)
    if not built.series:
        raise NoResults(
            f"no sweep of {', '.join(names) or 'any library'} over {', '.join(chosen) or 'any model'} "
            f"on {name} yet: run 'machmeter sweep'"
        )
    if as_json:
        print(json.dumps(built.as_json(), indent=2, allow_nan=False))
        return
    show_versions.print_versions(built, Console(width=max(Console().width, show_versions.WIDTH)))


def _say(line: str) -> None:
    print(line, flush=True)


def _known_machine(results: Path, machine: str | None) -> str:
    """Return `machine`, or the name of this one. Raises NoResults where nothing was measured on it."""
    known = table.machines(results)
    name = machine or asvrun.machine_name()
    if name not in known:
        others = f"; there are results of {', '.join(known)}: use --machine" if known else ""
        raise NoResults(f"nothing was measured on {name} yet: run 'make bench' or 'asv run'{others}")
    return name


def _table(names: list[str], machine: str | None, project: Path) -> table.Table:
    results = asvrun.results_folder(project)
    name = _known_machine(results, machine)
    built = table.build(results, name, names)
    if not built.rows:
        raise NoResults(f"nothing was measured of {', '.join(names) or 'any model'} on {name} yet: run 'make bench'")
    return built


@app.command("recommend")
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
    results = asvrun.results_folder(project.resolve())
    built = table.build(results, _known_machine(results, machine), [name])
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


@app.command("peak")
def peak_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print the same as JSON.")] = False,
    project: PROJECT = Path(),
) -> None:
    """Measure what this machine can do at best: matrix products in fp32, bf16 and int8, and memory bandwidth."""
    project = project.resolve()
    bench.check_folders(project)
    bench.run_peak(project, lambda line: print(line, file=sys.stderr, flush=True))
    operations = bench.operations(bench.select_models(["all"]))
    results, name = asvrun.results_folder(project), asvrun.machine_name()
    files = [file for file in read_all(results)[0] if file.machine == name]
    runs = [run for content in evidence.read_folder(results, name) for run in content["runs"].values()]
    found = peaks.limits(files, runs, operations)
    print(json.dumps(found.as_json(), indent=2, allow_nan=False) if as_json else "\n".join(peaks.lines(found)))


@app.command("ladder")
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
    if not show_only:
        bench.check_folders(project)
        bench.fetch_weights([chosen_model])
        ladder.run(chosen_model, chosen, project, lambda line: print(line, flush=True, file=_progress(as_json)))
    _show_ladder(chosen_model.name, list(chosen) if rung else [], as_json, project)


def _progress(as_json: bool) -> TextIO:
    """Return where progress goes: not into JSON that somebody parses."""
    return sys.stderr if as_json else sys.stdout


def _show_ladder(model: str, names: list[str], as_json: bool, project: Path) -> None:
    """Show the rungs `names`, all where none is named; gains are over rungs that may not be among them."""
    machine = asvrun.machine_name()
    built = ladder_results.build(asvrun.results_folder(project), machine, model, rungs.load().values())
    if names:
        built = dataclasses.replace(built, rows=tuple(row for row in built.rows if row.rung in names))
    if all(row.status == "not run" for row in built.rows):
        raise NoResults(f"no rung of {model} was measured on {machine} yet: run 'machmeter ladder {model}'")
    if as_json:
        print(json.dumps(built.as_json(), indent=2, allow_nan=False))
        return
    show_ladder.print_ladder(built, Console(width=max(Console().width, show_ladder.WIDTH)))


@app.command("list")
def list_command() -> None:
    """List models, backends and precisions, and what cannot run here with the reason."""
    for name in backends.names():
        backend = backends.get(name)
        if not backend.answers:
            continue
        for model in models.MODELS:
            for cell in cells.all_cells(backend, model):
                if cell.batch == model.batches[0] and model.benchmarked:
                    reason = backends.unsupported(backend, model, cell.precision, **cell.options)
                    label = " ".join([cell.precision, *cell.options.values()])
                    print(f"{model.name:<18} {name:<12} {label:<22} {'n/a: ' + reason if reason else 'ok'}")


site_app = typer.Typer(help="The history site: built from any asv results, and shown.", no_args_is_help=True)
app.add_typer(site_app, name="site")

OUTPUT = Annotated[Path, typer.Option("--output", "-o", help="Where the site goes; an older one there is replaced.")]


@site_app.command("build")
def site_build_command(
    results: Annotated[
        Path | None, typer.Option("--results", help="asv's results folder, of any project. Default: that of this one.")
    ] = None,
    evidence_folder: Annotated[
        Path | None, typer.Option("--evidence", help="Default: the folder 'evidence' beside the results.")
    ] = None,
    output: OUTPUT = Path("html"),
    repository: Annotated[
        Path | None,
        typer.Option("--repository", help="A clone that knows the commits' order. Default: around the results."),
    ] = None,
    settings: Annotated[
        Path | None, typer.Option("--settings", help="Default: machmeter.toml beside the results.")
    ] = None,
    templates: Annotated[Path | None, typer.Option("--templates", help="A folder like 'site' of machmeter.")] = None,
    title: Annotated[str | None, typer.Option("--title", help="Default: the project's name as asv has it.")] = None,
    base: Annotated[str, typer.Option("--url", help="The site's address, for links in the feed.")] = "",
    cache: Annotated[
        Path | None, typer.Option("--cache", help="A folder for what was parsed, for the next build.")
    ] = None,
) -> None:
    """Build the site beside the old one, and swap it in."""
    from machmeter.site import build, progress

    if results is None:
        here = Path()
        results = asvrun.results_folder(here) if (here / asvrun.CONFIGURATION).is_file() else Path("results")
    request = build.Request(
        results=results,
        evidence=evidence_folder,
        output=output,
        repository=repository,
        settings=settings,
        templates=templates,
        title=title,
        base=base if not base or base.endswith("/") else f"{base}/",
        cache=cache,
        jobs=len(os.sched_getaffinity(0)),
    )
    with progress.shown() as say:
        summary = build.run(request, say)
    print("\n".join(summary.lines()))


@site_app.command("serve")
def site_serve_command(
    output: OUTPUT = Path("html"),
    port: Annotated[int, typer.Option("--port", help="0 takes a free one.")] = 8000,
    host_name: Annotated[str, typer.Option("--bind", help="The address to listen on.")] = "127.0.0.1",
) -> None:
    """Show a site that was built, until it is interrupted."""
    from machmeter.site import serve

    serve.run(output, host_name, port, _say)


@app.command("host")
def host_command() -> None:
    """Print the facts of this machine that go into the evidence."""
    print(json.dumps(host.facts(), indent=2))


def _terminated(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line; a problem the user can solve is one line and an exit code.

    Being told to end (by `timeout`, a service manager or CI) is an interruption like Ctrl-C: what measures ends too.
    """
    signal.signal(signal.SIGTERM, _terminated)
    try:
        app()
    except MachmeterError as error:
        print(f"machmeter: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except BrokenPipeError:  # the reader of our output has left, as `| head` does
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - for the flush at exit
        raise SystemExit(141) from None
    except SystemExit as ending:
        if ending.code == 130:  # what typer makes of an interruption
            print(f"machmeter: {INTERRUPTED}", file=sys.stderr)
        raise
