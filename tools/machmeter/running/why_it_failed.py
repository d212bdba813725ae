"""What programs said in a file of output: the line that tells why one of them failed."""

from __future__ import annotations

from pathlib import Path
from typing import IO

_LONGEST = 400


def position(output: IO[str]) -> int:
    """Return the end of what was said so far."""
    output.flush()
    return Path(output.name).stat().st_size


def why(output: IO[str], start: int) -> str:
    """Return the last line since `start` that tells of a failure: pip's error, Python's, or simply the last."""
    lines = _lines(output, start)
    by_pip = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    raised = [line for line in lines if _is_exception(line)]
    return (by_pip[-1:] or raised[-1:] or lines[-1:] or ["it said nothing"])[0][:_LONGEST]


def raised(output: IO[str], start: int) -> str:
    """Return the last line since `start` that ends a traceback, "" where there is none."""
    return next((line[:_LONGEST] for line in reversed(_lines(output, start)) if _is_exception(line)), "")


def _lines(output: IO[str], start: int) -> list[str]:
    output.flush()
    with Path(output.name).open(encoding="utf-8", errors="replace") as stream:
        stream.seek(start)
        return [text for line in stream if (text := line.strip(" ·\n"))]


def _is_exception(line: str) -> bool:
    """Return whether `line` is like "ValueError: no such thing"."""
    name = line.partition(":")[0]
    return name.endswith(("Error", "Exception")) and name.replace(".", "").isidentifier()
