"""Small results stores as asv writes them, for tests; and the real ones, where they are at hand."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

COLUMNS = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b"]
COLUMNS += ["stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples", "profile"]

REAL = Path(__file__).parents[3] / "shared" / "data" / "asv-results.tar.xz"

DAY = 86_400_000


def commit_hash(number: int) -> str:
    return f"{number:02x}" * 20


def result(values: Any, params: Any = (), version: Any = "1", **columns: Any) -> list[Any]:
    """Return one row: {"low": [...], "high": [...], "repeat": [...], "started": ms} are its other columns."""
    low, high, repeat = (columns.get(name) for name in ("low", "high", "repeat"))
    row = [values, list(params), version, columns.get("started", 1_700_000_000_000), 1.0]
    return [*row, low, high, None, None, None, repeat]


def write(results: Path, commit: int | str, rows: dict[str, Any], **changed: Any) -> Path:
    """Write one result file; `changed` replaces parts of it. `machine`, `folder`, `environment` name its place."""
    name = commit if isinstance(commit, str) else commit_hash(commit)
    machine = changed.pop("machine", "here")
    folder = changed.pop("folder", machine)
    environment = changed.pop("environment", "env")
    number = commit if isinstance(commit, int) else 0
    content = {
        "commit_hash": name,
        "env_name": environment,
        "date": 1_600_000_000_000 + number * DAY,
        "params": {"machine": machine, "cpu": "Some CPU", "os": "Linux 1"},
        "python": "3.11",
        "requirements": {},
        "env_vars": {},
        "result_columns": COLUMNS,
        "results": rows,
        "durations": {},
        "version": 2,
        **changed,
    }
    content.pop("file", None)
    file = str(changed.get("file") or f"{name[:8]}-{environment[:100]}.json")
    path = results / folder / file.replace("/", "_")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def write_catalogue(results: Path, benchmarks: dict[str, dict[str, Any]]) -> None:
    """Write asv's list of benchmarks, each with what is told of it, and a note of every machine that has a folder."""
    plain = {"params": [], "param_names": [], "type": "time", "unit": "seconds", "version": "1", "code": ""}
    described = {name: {"name": name, **plain, **told} for name, told in benchmarks.items()}
    results.mkdir(parents=True, exist_ok=True)
    (results / "benchmarks.json").write_text(json.dumps({**described, "version": 2}))
    facts = {"arch": "x86_64", "cpu": "Some CPU", "num_cpu": "2", "os": "Linux", "ram": "8000000000", "version": 1}
    for folder in filter(Path.is_dir, list(results.iterdir())):
        (folder / "machine.json").write_text(json.dumps({**facts, "machine": folder.name}))


def real_store(name: str, folder: Path) -> Path:
    """Unpack the real store `name` into `folder`; skip the test, and say so, where it is not at hand."""
    if not REAL.is_file():
        pytest.skip(f"{REAL} is absent: the real stores are not read")
    with tarfile.open(REAL) as archive:
        members = [item for item in archive.getmembers() if item.name.startswith(f"asv-results/{name}/results")]
        archive.extractall(folder, members=members, filter="data")
    return folder / "asv-results" / name / "results"
