"""The command line, one module per group. Everything that touches the world is called from here; nothing is decided."""

from __future__ import annotations

import os
import signal
import sys

import typer

from machmeter.cli import compare, github, machines, measure, pr, results, show, site
from machmeter.errors import Interrupted, MachmeterError

app = typer.Typer(
    help="Measure which deep-learning inference configuration is fastest on this machine, and still right.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(measure.commands)
app.add_typer(show.commands)
app.add_typer(compare.commands)
app.add_typer(pr.commands)
app.add_typer(site.commands, name="site")
app.add_typer(github.commands, name="github")
app.add_typer(results.commands, name="results")
app.add_typer(machines.commands)
app.add_typer(machines.runner_commands, name="runners")

INTERRUPTED = "interrupted; what was finished is kept: 'machmeter show' and 'machmeter versions' show it"


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
    except Interrupted as interruption:
        print(f"machmeter: {interruption}", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:  # the reader of our output has left, as `| head` does
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - for the flush at exit
        raise SystemExit(141) from None
    except SystemExit as ending:
        if ending.code == 130:  # what typer makes of an interruption
            print(f"machmeter: {INTERRUPTED}", file=sys.stderr)
        raise
