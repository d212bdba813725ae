"""What became of a cell, over the same cases through everything that says so: all of it asks `evidence.outcome`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helpers import evidence as helpers_evidence
from helpers.asv_files import commit_hash, result, write
from machmeter import asv_names
from machmeter.compare import sides
from machmeter.history.read import read
from machmeter.pull_request import call_results
from machmeter.pull_request.checkouts import Place
from machmeter.pull_request.plan import Item
from machmeter.running import waiting
from machmeter.store.columns import STATES
from machmeter.tables import cells_table, versions_table
from machmeter.workload import cells

NAN = float("nan")
CELL = "cpu.openvino.ResNet50(fp32, 8)"

OK = {"status": "ok", "samples": 3, "median_seconds": 1.0, "sample_seconds": [1.0] * 3}
SURVEYED = {"status": "ok", "benchmark": "track_sqnr", "facts": {"track_sqnr": 30.0}}
FAILED = {"status": "failed", "reason": "crashed (signal 11)"}
ABSENT = {"status": "n/a", "reason": "not installed: openvino"}
STOPPED = {"status": "interrupted", "reason": "stopped (signal 15) after 3 s"}
DIED = {"status": "running", "pid": 0, "process": "gone", "trace": "/nonexistent"}

# asv's value; what processes have on record, in order of time; what became of it; and of what was not, its reason.
CASES = [
    (1.0, [OK], "ok", ""),
    (1.0, [SURVEYED, OK], "ok", ""),
    (1.0, [STOPPED, OK], "ok", ""),
    (None, [FAILED], "failed", "crashed (signal 11)"),
    (NAN, [FAILED], "failed", "crashed (signal 11)"),
    (NAN, [OK, FAILED], "failed", "crashed (signal 11)"),
    (NAN, [ABSENT, FAILED], "failed", "crashed (signal 11)"),
    (None, [DIED], "failed", "killed (signal 9), most likely by the kernel for lack of memory"),
    (NAN, [DIED], "failed", "killed (signal 9), most likely by the kernel for lack of memory"),
    (NAN, [ABSENT], "n/a", "not installed: openvino"),
    (NAN, [FAILED, ABSENT], "n/a", "not installed: openvino"),
    (NAN, [STOPPED, ABSENT], "n/a", "not installed: openvino"),
    (NAN, [STOPPED], "not run", "stopped (signal 15) after 3 s"),
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{'-'.join(item['status'] for item in case[1])}")
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str, str]:
    """Write a store with one cell; return its results folder, and what is expected of it."""
    value, records, status, reason = request.param
    results = tmp_path / "results"
    write(results, 1, {"cpu.openvino.ResNet50.time_forward": result([value], [["'fp32'"], ["8"]])})
    write_evidence(results, records)
    (tmp_path / "asv.conf.json").write_text(json.dumps({"results_dir": "results"}))
    return results, status, reason


def write_evidence(results: Path, records: list[dict[str, Any]], **run: Any) -> None:
    processes = {
        f"p{number}": {"benchmark": "time_forward", "order": number, "started_at": 1.7e9 + number, **record}
        for number, record in enumerate(records, 1)
    }
    helpers_evidence.write(results, {CELL: processes}, commit=commit_hash(1), **run)


def test_a_table_says_so(case: tuple[Path, str, str]) -> None:
    """`machmeter show` and the page of a model."""
    results, status, reason = case
    (row,) = cells_table.build(results, "here").rows
    assert row.status == status
    assert row.reason.startswith(reason)


def test_the_history_says_so(case: tuple[Path, str, str]) -> None:
    """The site's plots and its page of failures."""
    results, status, reason = case
    (series,) = read(results).series
    assert STATES[series.state[0]] == status
    assert series.reasons.get(0, "").startswith(reason)


def test_a_comparison_says_so(case: tuple[Path, str, str]) -> None:
    """`machmeter compare`."""
    results, status, reason = case
    (row,) = sides.read_side(results, "here", commit_hash(1)).rows
    assert row.status == status
    assert row.reason.startswith(reason)


def test_a_pull_request_says_so(case: tuple[Path, str, str]) -> None:
    """Where asv was asked to measure a cell and skipped it, the cell is n/a."""
    results, status, reason = case
    place = Place(name="base", commit=commit_hash(1), work=results.parent, kept=results.parent)
    item = Item(
        cell=CELL, metric="time_forward", benchmark="cpu.openvino.ResNet50.time_forward", place=0, values=(),
        unit="seconds", better="lower", version="1", timed=True,
    )  # fmt: skip
    (found,) = call_results.outcomes(place, [item], {}, "r", "asv's last words", None).values()
    assert found.status == {"not run": "n/a"}.get(status, status)
    assert found.reason.startswith(reason)


def test_a_version_says_so(case: tuple[Path, str, str]) -> None:
    """`machmeter versions`: of what a sweep left."""
    results, status, reason = case
    path = results.parent / "evidence" / "here" / f"{commit_hash(1)[:8]}-env.json"
    content = json.loads(path.read_text())
    content["runs"]["r"]["swept"] = {"library": "openvino", "version": "2026.1.0", "released": None}
    path.write_text(json.dumps(content))
    ((row,),) = (series.rows for series in versions_table.build(results, "here").series)
    assert row.status == status
    assert row.reason.startswith(reason)


def test_the_tally_of_a_run_says_so(case: tuple[Path, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What was interrupted was not measured: to whoever waits for it, it failed."""
    results, status, _ = case
    monkeypatch.setattr(asv_names, "machine_name", lambda: "here")
    cell = cells.parse(CELL)
    assert cell is not None
    (found,) = waiting.tally(results.parent, "r", [cell])
    assert found == {"not run": "failed"}.get(status, status)


def test_without_evidence_only_asv_is_known(tmp_path: Path) -> None:
    """A number, a failure, and what was skipped."""
    rows = {"m.time_a": result([1.0, None, NAN], [["1", "2", "3"]])}
    write(tmp_path / "results", 1, rows)
    side = sides.read_side(tmp_path / "results", "here", commit_hash(1))
    assert [row.status for row in side.rows] == ["ok", "failed", "not run"]
    assert [STATES[series.state[0]] for series in read(tmp_path / "results").series] == ["ok", "failed", "skipped"]
