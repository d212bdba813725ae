"""A folder that appears at once or not at all: written beside the old one, it takes its place when it is whole."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from machmeter.errors import SiteUnbuildable, from_os_error

MARKER = ".machmeter-site"  # only a folder that has it is ever replaced


def check(output: Path) -> None:
    """Raise SiteUnbuildable where `output` holds something that is not a site of ours."""
    if output.exists() and not output.is_dir():
        raise SiteUnbuildable(f"{output} is a file: name another folder with --output")
    if output.is_dir() and any(output.iterdir()) and not (output / MARKER).is_file():
        raise SiteUnbuildable(
            f"{output} holds something that is no site of machmeter: name another folder with --output, or empty it"
        )


@contextlib.contextmanager
def beside(output: Path) -> Iterator[Path]:
    """Give a new folder next to `output`, and put it in the place of `output` when all went well.

    On any failure the old folder stays as it was and the new one is removed.
    """
    check(output)
    new = output.with_name(f".{output.name}.new-{os.getpid()}")
    old = output.with_name(f".{output.name}.old-{os.getpid()}")
    try:
        with _writing(output):
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(parents=True)
            (new / MARKER).write_text("written by machmeter site build\n", encoding="utf-8")
        yield new
        with _writing(output):
            if output.exists():
                output.rename(old)
            try:
                new.rename(output)
            except OSError:
                if old.exists():
                    old.rename(output)
                raise
    finally:
        for folder in (new, old):
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _writing(output: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise from_os_error(error, output.parent, "the site", None) from error


def as_json(content: object) -> str:
    """Return `content` as strict JSON without blanks."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
