"""The evidence file: append-only, never lost, and honest about processes that died."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from machmeter import asv_names
from machmeter.machine import process
from machmeter.measure import dead_processes
from machmeter.measure.current_run import AsvRun
from machmeter.measure.record_parts import Outcome, Speed, Surveyed
from machmeter.measure.recorder import Recorder
from machmeter.workload import pinned


@pytest.fixture
def run(tmp_path: Path) -> AsvRun:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/cpu.txt").write_text("# pins\nnumpy==0.0.1\nnobody-has-this==1.0\n-r other.txt\n")
    return AsvRun(
        run="r1",
        machine="here",
        commit="c" * 40,
        environment="existing-py_x",
        stack="cpu",
        project=tmp_path,
        results=tmp_path / "results",
    )


def content(run: AsvRun) -> dict[str, Any]:
    found = dead_processes.read(run.evidence_file)
    assert found is not None
    return found


def test_a_stack_label_is_compared_with_what_is_installed(run: AsvRun) -> None:
    """With --python=same asv stamps a stack that it never installed."""
    mismatches = pinned.mismatches(run.project, "cpu")
    assert mismatches is not None
    assert [line.split(":")[0] for line in mismatches] == ["numpy", "nobody-has-this"]
    assert mismatches[1] == "nobody-has-this: pinned 1.0, installed nothing"
    assert pinned.mismatches(run.project, "unknown") is None


def test_records_of_one_process_grow(run: AsvRun) -> None:
    recorder = Recorder(run)
    recorder.begin("cell", "survey", 60.0)
    recorder.record("cell", Outcome(status="ok"), Surveyed(facts={"a": 1}))
    (record,) = content(run)["runs"]["r1"]["cells"]["cell"].values()
    assert (record["status"], record["facts"], record["benchmark"]) == ("ok", {"a": 1}, "survey")
    assert content(run)["runs"]["r1"]["stack_mismatches"]


def test_runs_are_kept_beside_each_other(run: AsvRun) -> None:
    for name in ("r1", "r2"):
        other = AsvRun(**{**vars(run), "run": name})
        Recorder(other).begin("cell", "survey", 60.0)
    assert sorted(content(run)["runs"]) == ["r1", "r2"]


def test_an_unreadable_file_is_kept_aside(run: AsvRun, capsys: pytest.CaptureFixture[str]) -> None:
    """R10: never read as empty and overwritten."""
    run.evidence_file.parent.mkdir(parents=True)
    run.evidence_file.write_text('{"schema": 1, "runs": {"old": ')
    Recorder(run).begin("cell", "survey", 60.0)
    (aside,) = run.evidence_file.parent.glob("*.unreadable-*")
    assert aside.read_text() == '{"schema": 1, "runs": {"old": '
    assert "unreadable" in capsys.readouterr().err
    assert "r1" in content(run)["runs"]


WRITER = """
import sys
from pathlib import Path
from machmeter.measure.recorder import Recorder
from machmeter.measure.record_parts import Outcome
from machmeter.measure.current_run import AsvRun
folder = Path(sys.argv[1])
run = AsvRun(run="r1", machine="here", commit="c" * 40, environment="e", stack=None, project=folder,
             results=folder / "results")
recorder = Recorder(run)
for number in range(10):
    recorder.begin(f"cell {sys.argv[2]} {number}", "survey", 60.0)
    recorder.record(f"cell {sys.argv[2]} {number}", Outcome(status="ok"))
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(i)]) for i in range(4)]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    (path,) = (tmp_path / "evidence" / "here").glob("*.json")
    found = dead_processes.read(path)
    assert found is not None
    assert len(found["runs"]["r1"]["cells"]) == 40


def _dead_record(tmp_path: Path, trace: str | None, **facts: Any) -> dict[str, Any]:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    identity = process.process_identity(child.pid)
    child.wait()
    path = tmp_path / "trace.txt"
    if trace is not None:
        path.write_text(trace)
    return {"status": "running", "pid": child.pid, "process": identity, "order": 1, "trace": str(path), **facts}


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        ("Fatal Python error: Segmentation fault\n\nCurrent thread", "crashed (signal 11, segmentation fault)"),
        ("Fatal Python error: Aborted\n", "crashed (signal 6, aborted)"),
        ("Fatal Python error: Illegal instruction\n", "crashed (signal 4, illegal instruction)"),
        ("", "killed (signal 9), most likely by the kernel for lack of memory"),
        (None, "killed (signal 9), most likely by the kernel for lack of memory"),
    ],
)
def test_the_cause_of_a_death(tmp_path: Path, trace: str | None, reason: str) -> None:
    dead = _dead_record(tmp_path, trace)
    later = {"status": "ok", "order": 2}
    settled = dead_processes.settle({"runs": {"r": {"cells": {"a": {"p": dead}, "b": {"q": later}}}}})
    assert settled["runs"]["r"]["cells"]["a"]["p"]["reason"] == reason
    assert settled["runs"]["r"]["cells"]["a"]["p"]["status"] == "failed"
    assert dead["status"] == "running"  # reading changes nothing


def test_the_last_process_of_a_run_may_have_been_interrupted(tmp_path: Path) -> None:
    settled = dead_processes.settle({"runs": {"r": {"cells": {"a": {"p": _dead_record(tmp_path, None)}}}}})
    assert "or the run was interrupted" in settled["runs"]["r"]["cells"]["a"]["p"]["reason"]


def test_a_stop_at_the_time_limit_is_a_time_out(tmp_path: Path) -> None:
    record = _dead_record(tmp_path, "Current thread 0x1 (most recent call first):\n", timeout=8.0)
    record["started_at"] = time.time() - 8.2
    settled = dead_processes.settle({"runs": {"r": {"cells": {"a": {"p": record}}}}})
    assert settled["runs"]["r"]["cells"]["a"]["p"]["reason"] == "timed out: stopped after 8 s (limit 8 s)"
    record["timeout"] = 600.0  # told to stop long before: somebody pressed Ctrl-C
    settled = dead_processes.settle({"runs": {"r": {"cells": {"a": {"p": record}}}}})
    assert settled["runs"]["r"]["cells"]["a"]["p"]["status"] == "interrupted"


def test_a_process_that_lives_is_left_running() -> None:
    record = {"status": "running", "pid": os.getpid(), "process": process.process_identity(os.getpid()), "order": 1}
    settled = dead_processes.settle({"runs": {"r": {"cells": {"a": {"p": record}}}}})
    assert settled["runs"]["r"]["cells"]["a"]["p"]["status"] == "running"


def test_everything_written_is_strict_json(run: AsvRun) -> None:
    recorder = Recorder(run)
    recorder.begin("cell", "survey", 60.0)
    with pytest.raises(ValueError, match="not JSON compliant"):
        recorder.record("cell", Speed(images_per_second=float("nan")))
    json.loads(run.evidence_file.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_long_environment_names_get_asvs_own_short_name(tmp_path: Path) -> None:
    """R5: the evidence file is called as asv calls its result file."""
    from asv.results import get_filename

    for name in ("short", "x" * 127, "x" * 128, "y" * 300):
        ours = asv_names.evidence_file(tmp_path / "results", "m", "abcdef0123456789", name)
        assert ours.relative_to(tmp_path / "evidence") == Path(get_filename("m", "abcdef0123456789", name))
