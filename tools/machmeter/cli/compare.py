"""The command that judges two sides: compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from machmeter import asv_names
from machmeter.cli.common import PROJECT
from machmeter.compare import documents
from machmeter.errors import SideUnknown

commands = typer.Typer()

EXIT_CODES = {"no regression": 0, "regression": 1, "could not judge": 2}


@commands.command("compare")
def compare_command(
    base: Annotated[
        str | None, typer.Argument(help="A commit, branch or tag, environment, openvino==X, or file.")
    ] = None,
    head: Annotated[str | None, typer.Argument(help="The same, of what may be better or worse.")] = None,
    measurements: Annotated[
        Path | None, typer.Option("--measurements", help="Judge this document of 'machmeter pr' instead.")
    ] = None,
    results: Annotated[Path | None, typer.Option("--results", help="asv's results folder, of any project.")] = None,
    machine: Annotated[str | None, typer.Option(help="Default: this machine.")] = None,
    environment: Annotated[str | None, typer.Option(help="Where a commit was measured in several.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, as in a pull request.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the judgement as JSON.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of the judgement.")] = False,
    project: PROJECT = Path(),
) -> None:
    """Say what got faster, slower, heavier or less accurate from BASE to HEAD, and how sure that is.

    Exit code 0: no regression, 1: a regression or a failure, 2: it could not be judged.
    """
    from machmeter.compare import judge, sides, terminal

    if schema:
        print(documents.schema())
        return
    if measurements is not None:
        if base is not None or head is not None:
            raise SideUnknown("--measurements has both sides already: leave BASE and HEAD out")
        told = documents.read(measurements)
    elif base is None or head is None:
        raise SideUnknown("two sides are needed: machmeter compare BASE HEAD, or --measurements FILE")
    else:
        folder = results or asv_names.results_folder(project)
        name = machine or asv_names.machine_name()
        told = sides.read(folder, name, base, head, environment=environment, repository=project)
    found = judge.compare(told)
    if as_json:
        print(documents.as_json(found))
    elif markdown:
        from machmeter.compare.markdown import render

        print(render(found))
    else:
        terminal.print_comparison(found, Console())
    raise typer.Exit(EXIT_CODES[found.result])
