"""Links inside a site, and what pages, feeds and issues call a series, a commit and the way to measure it again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from machmeter.history.data import Benchmark, Commit, Machine, Series
from machmeter.store import columns


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link inside the site; `href` is relative to its top folder."""

    title: str
    href: str
    key: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelLink:
    """A model page."""

    machine: Machine
    model: str
    href: str


def history_href(benchmark: Benchmark) -> str:
    """Return where the history page of `benchmark` lies."""
    return f"history/{benchmark.slug}.html"


def series_href(series: Series) -> str:
    """Return the link to the history page with this series chosen."""
    return f"{history_href(series.benchmark)}#s={series.key}"


def parameters(series: Series) -> str:
    """Return the parameters of a series with their names where the values alone say too little."""
    return named(series.benchmark, series.params)


def named(benchmark: Benchmark, params: Sequence[str]) -> str:
    """Return `params` of `benchmark` as `parameters` does."""
    shown = [columns.shown(value) for value in params]
    names = benchmark.param_names
    if len(names) != len(shown):
        return ", ".join(shown)
    plain = [
        value if name in ("precision", "layout", "mode", "rung", "model") or not _needs_name(name, value)
        else f"{name}={value}"
        for name, value in zip(names, shown, strict=True)
    ]  # fmt: skip
    return ", ".join(plain)


@lru_cache(maxsize=4096)
def _needs_name(name: str, value: str) -> bool:
    return bool(re.fullmatch(r"[-+0-9.eE]+|True|False|None", value)) and not re.fullmatch(r"param\d+", name)


def commit_name(commit: Commit) -> str:
    """Return a commit's tag, or its short hash."""
    return commit.tags[-1] if commit.tags else commit.short


def reproduce(series: Series, commit: str) -> str:
    """Return the shell command that measures this point again, in a clone of the project. `commit` is a hash."""
    name = series.benchmark.name
    called = f"{name}({', '.join(series.params)})" if series.params else name
    # A quote is written as any character: it would have to be quoted again in a shell.
    pattern = re.sub(r"['\"]", ".", f"^{re.escape(called)}$").replace("\\ ", " ").replace("\\-", "-")
    stack = series.environment.stack
    runner = f"machmeter run --stack {shlex.quote(stack)}" if stack else "asv run"
    return f"{runner} -b {shlex.quote(pattern)} {shlex.quote(commit + '^!')}"
