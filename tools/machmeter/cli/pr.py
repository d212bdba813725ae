"""The command that measures two commits against each other: pr."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from machmeter.cli.common import PROJECT, say
from machmeter.cli.compare import EXIT_CODES

commands = typer.Typer()


@commands.command("pr")
def pr_command(
    base: Annotated[str, typer.Argument(help="What the change is for: a branch, a tag or a commit.")],
    head: Annotated[str, typer.Argument(help="The change. HEAD is the current commit.")] = "HEAD",
    bench: Annotated[
        list[str] | None, typer.Option("--bench", "-b", help="A regular expression, as asv's -b. May be repeated.")
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=1000, help="At most so many processes per side.")] = 8,
    budget: Annotated[str, typer.Option("--budget", help="Time for measuring: 30m, 1h30m, 90s.")] = "30m",
    output: Annotated[Path, typer.Option("--output", help="Where everything is kept.")] = Path("pr-results"),
    stack: Annotated[str, typer.Option("--stack", help="The name of a file in requirements/.")] = "cpu",
    project: PROJECT = Path(),
) -> None:
    """Measure HEAD against the commit where it parted from BASE, in turn, and say what got faster or slower.

    Exit code 0: no regression, 1: a regression or a failure, 2: it could not be judged.
    """
    from machmeter.compare import judge, terminal
    from machmeter.pull_request import command
    from machmeter.text import durations as budgets

    measured = command.run(
        project.resolve(),
        base,
        head,
        patterns=bench or [],
        rounds=rounds,
        seconds=budgets.parse(budget),
        output=output.resolve(),
        stack=stack,
        say=say,
    )
    found = judge.compare(measured)
    say("")
    terminal.print_comparison(found, Console())
    raise typer.Exit(EXIT_CODES[found.result])
