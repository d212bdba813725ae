"""Results and evidence of a machine, written as small files for the tests of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helpers import asv_files, evidence

COLUMNS = ["result", "params", "version", "started_at", "duration", "samples"]


def write_results(
    results: Path, benchmarks: dict[str, list[Any]], machine: str = "here", commit: str = "a" * 40
) -> Path:
    """Write one asv result file: {benchmark: [numbers, params, samples]}."""
    rows = {
        name: [numbers, params, "1", 1_700_000_000_000, 1.0, samples]
        for name, (numbers, params, samples) in benchmarks.items()
    }
    return asv_files.write(results, commit, rows, machine=machine, result_columns=COLUMNS)


def write_evidence(results: Path, cells: dict[str, dict[str, Any]], environment: str = "env", **run: Any) -> None:
    """Write the evidence of cells of one process each."""
    evidence.write(results, evidence.single(cells), environment=environment, stack=None, **run)
