"""Results and evidence of a machine, written as small files for the tests of tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

COLUMNS = ["result", "params", "version", "started_at", "duration", "samples"]


def write_results(
    results: Path, benchmarks: dict[str, list[Any]], machine: str = "here", commit: str = "a" * 40
) -> Path:
    """Write one asv result file: {benchmark: [numbers, params, samples]}."""
    content = {
        "version": 2,
        "commit_hash": commit,
        "env_name": "env",
        "params": {"machine": machine},
        "result_columns": COLUMNS,
        "results": {
            name: [numbers, params, "1", 1_700_000_000_000, 1.0, samples]
            for name, (numbers, params, samples) in benchmarks.items()
        },
    }
    path = results / machine / f"{commit[:8]}-env.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def write_evidence(results: Path, cells: dict[str, dict[str, Any]], environment: str = "env", **run: Any) -> None:
    described = {
        "started": "2026-01-01T00:00:00Z",
        "cells": {key: {"p": record} for key, record in cells.items()},
        **run,
    }
    content = {"schema": 1, "machine": "here", "commit": "a" * 40, "environment": environment, "runs": {"r": described}}
    path = results.parent / "evidence" / "here" / "aaaaaaaa-env.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
