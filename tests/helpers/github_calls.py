"""What the tests of comments share: what was called, and the comments that are there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from helpers import comment_samples as samples

MARKER = "<!-- machmeter: comparison -->"


SHA = samples.HEAD


class Called:
    """What a command has said, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


Call = Callable[..., Called]


def comment(call: Call, *paths: Path, number: int = 7, sha: str = SHA, more: tuple[object, ...] = ()) -> Called:
    return call("comment", "--repository", "o/r", "--pull-request", number, "--sha", sha, *more, *paths)
