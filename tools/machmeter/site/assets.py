"""The files that are copied as they are: our own style and modules, and the chart library that npm installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

LIBRARY = ("uPlot.iife.min.js", "uPlot.min.css")


def own(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield what `folder`/static has."""
    static = folder / "static"
    for path in sorted(static.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            yield f"static/{path.relative_to(static).as_posix()}", path.read_bytes()


def find_library(folder: Path) -> Path | None:
    """Return where npm put uPlot for the clone that `folder` belongs to, or None where it was not installed."""
    clone = (folder / "templates").resolve().parents[1]  # the package has links to the clone's own files
    for place in (clone, Path.cwd()):
        found = place / "node_modules" / "uplot"
        if all((found / "dist" / name).is_file() for name in LIBRARY):
            return found
    return None


def library(found: Path) -> Iterator[tuple[str, bytes]]:
    """Yield uPlot's files, with its licence."""
    for name in LIBRARY:
        yield f"static/uplot/{name}", (found / "dist" / name).read_bytes()
    licence = found / "LICENSE"
    if licence.is_file():
        yield "static/uplot/LICENSE", licence.read_bytes()
