"""What commands share: their common options and how they speak."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

MODEL = Annotated[list[str] | None, typer.Option("--model", "-m", help="A model, or 'all'. May be repeated.")]
PROJECT = Annotated[Path, typer.Option("--project", help="The folder with asv.conf.json.")]


def say(line: str) -> None:
    """Print a line of progress at once."""
    print(line, flush=True)
