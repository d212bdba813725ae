"""Evidence as runs leave it beside the results folder, for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

STARTED = "2026-01-01T00:00:00Z"


def single(records: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return cells of one process each."""
    return {cell: {"p": record} for cell, record in records.items()}


def write(
    results: Path,
    cells: Mapping[str, Mapping[str, Any]],
    *,
    commit: str = "a" * 40,
    machine: str = "here",
    environment: str = "env",
    stack: str | None = "cpu",
    run: str = "r",
    **described: Any,
) -> Path:
    """Write one run of {cell: {process: record}}; other runs of the commit in the environment stay."""
    path = results.parent / "evidence" / machine / f"{commit[:8]}-{environment}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    content: dict[str, Any] = {"schema": 1, "machine": machine, "commit": commit, "environment": environment}
    content |= {"stack": stack} if stack else {}
    content["runs"] = json.loads(path.read_text())["runs"] if path.exists() else {}
    content["runs"][run] = {"started": STARTED, **described, "cells": cells}
    path.write_text(json.dumps(content))
    return path
