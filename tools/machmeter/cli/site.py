"""Commands of the history site: build, serve."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from machmeter import asv_names
from machmeter.cli.common import say

commands = typer.Typer(help="The history site: built from any asv results, and shown.", no_args_is_help=True)

OUTPUT = Annotated[Path, typer.Option("--output", "-o", help="Where the site goes; an older one there is replaced.")]


@commands.command("build")
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
        results = asv_names.results_folder(here) if (here / asv_names.CONFIGURATION).is_file() else Path("results")
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


@commands.command("serve")
def site_serve_command(
    output: OUTPUT = Path("html"),
    port: Annotated[int, typer.Option("--port", help="0 takes a free one.")] = 8000,
    host_name: Annotated[str, typer.Option("--bind", help="The address to listen on.")] = "127.0.0.1",
) -> None:
    """Show a site that was built, until it is interrupted."""
    from machmeter.site import serve

    serve.run(output, host_name, port, say)
