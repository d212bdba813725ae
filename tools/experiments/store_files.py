"""The frame of a file of results as asv writes it, and of one of evidence: what the generated stores share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def result_file(
    commit: str,
    environment: str,
    date: int,
    rows: Mapping[str, Any],
    columns: Sequence[str],
    params: Mapping[str, Any],
    *,
    python: str = "3.11",
    requirements: Mapping[str, str] | None = None,
    variables: Mapping[str, str | None] | None = None,
) -> dict[str, Any]:
    """Return asv's file of `commit`, of `date` in milliseconds: `rows` have their values in order of `columns`."""
    return {
        "commit_hash": commit,
        "env_name": environment,
        "date": date,
        "params": params,
        "python": python,
        "requirements": requirements or {},
        "env_vars": variables or {},
        "result_columns": columns,
        "results": rows,
        "durations": {},
        "version": 2,
    }


def evidence_file(
    commit: str, machine: str, environment: str, stack: str | None, runs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the evidence of the `runs` of `commit` in one environment."""
    return {
        "schema": 1,
        "machine": machine,
        "commit": commit,
        "environment": environment,
        "stack": stack,
        "runs": runs,
    }
