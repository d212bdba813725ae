"""What a real asv run makes of backends that misbehave: the rows M1 to M25 of the fault list that need no model."""

from __future__ import annotations

import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.project import Project, make_project
from machmeter import suite
from machmeter.machine import process
from machmeter.measure import dead_processes
from machmeter.store.values import read_all
from machmeter.tables.cells_found import machines
from machmeter.tables.cells_table import Row, build

pytestmark = pytest.mark.quiet

MODULES: dict[str, dict[str, object]] = {
    "sleeper": {"batches": [1, 8, 32]},
    "slowstart": {},
    "recompiles": {},
    "crasher": {},
    "killed": {},
    "oom": {},
    "oom8": {"batches": [1, 8, 32]},
    "hanger": {"timeout": 8.0},
    "allocator": {},
    "busy": {},
    "clock": {},
    "parent": {"repeat": (30, 30, 3.0)},
    "inputs": {},
    "liar": {},
    "absent": {},
    "breaker": {},
    "unimplemented": {},
    "greedy": {},
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """All fake backends, measured by one asv run."""
    base = tmp_path_factory.mktemp("fakes")
    project = make_project(base / "project", base / "home", MODULES)
    project.variables |= {
        "MACHMETER_TEST_PARENT": str(base / "parent"),
        "MACHMETER_TEST_INPUTS": str(base / "inputs"),
        "MACHMETER_TEST_BUSY": str(base / "busy"),
    }
    done = project.asv_run("--record-samples", "-b", r"^(?!.*sleeper.*, 32\))")  # that cell is not run
    assert done.returncode == 2, done.stdout + done.stderr  # some benchmarks failed, as they must
    return project


@pytest.fixture(scope="module")
def rows(project: Project) -> dict[str, Row]:
    """The rows of the table, by backend, precision where there are several, and batch where there are several."""
    (machine,) = machines(project.results)
    built = build(project.results, machine)
    assert not built.notes or all("stack" in note for note in built.notes), built.notes
    return {f"{row.backend} {row.precision} {row.batch}": row for row in built.rows}


def test_throughput_counts_images_not_batches(rows: dict[str, Row]) -> None:
    """M1: the same 10 ms per call are 100 images/s at batch 1 and 800 at batch 8."""
    one, eight = rows["sleeper fp32 1"], rows["sleeper fp32 8"]
    assert one.images_per_second == pytest.approx(1000 / one.p50_ms, rel=0.01)
    assert one.p50_ms >= 10.0
    assert eight.images_per_second == pytest.approx(8000 / eight.p50_ms, rel=0.01)


def test_slow_first_calls_are_not_in_the_latency_but_in_their_own_metric(
    rows: dict[str, Row], project: Project
) -> None:
    """M2: the first calls take 300 ms, the others 3 ms."""
    first = _value(project, "cpu.slowstart.Small.track_first_inference_time")
    assert first >= 0.3
    assert 3.0 <= rows["slowstart fp32 1"].p50_ms < 1e3 * first / 2


def test_recompilation_while_timed_is_a_failure(rows: dict[str, Row]) -> None:
    """M3: no number, and the reason."""
    row = rows["recompiles fp32 1"]
    assert (row.status, row.p50_ms) == ("failed", None)
    assert "recompiled" in row.reason


def test_inputs_rotate_are_aligned_and_never_filled_in_place(project: Project) -> None:
    """M6: timed calls go round distinct, 64-byte aligned buffers; the choice is in the evidence."""
    calls = [line.split() for line in Path(project.variables["MACHMETER_TEST_INPUTS"]).read_text().splitlines()]
    timed = calls[-30:]
    assert {offset for _, offset, _, _ in calls} == {"0"}
    assert len({address for address, *_ in timed}) == 8
    by_address: dict[str, set[str]] = {}
    for address, _, total, _ in timed:
        by_address.setdefault(address, set()).add(total)
    assert all(len(totals) == 1 for totals in by_address.values())
    assert project.records("cpu.inputs.Small(fp32, 1)")[0]["inputs"]["rotating"] is True


def test_a_label_that_is_not_what_ran_fails_the_cell(rows: dict[str, Row]) -> None:
    """M10: "fp32" that executes bf16 fails, "int8" that quantized nothing fails, an honest bf16 passes."""
    assert "labelled fp32, but the runtime executed 52 bf16, 1 fp32" in rows["liar fp32 1"].reason
    assert "nothing was quantized" in rows["liar int8 1"].reason
    assert rows["liar bf16 1"].status in ("ok", "n/a")  # n/a where this CPU has no bf16


def test_out_of_memory_fails_that_cell_alone_with_the_peak(rows: dict[str, Row]) -> None:
    """M17: the largest batch does not shrink and the next cell is untouched."""
    assert [rows[f"oom8 fp32 {batch}"].status for batch in (1, 8, 32)] == ["ok", "failed", "ok"]
    assert "out of memory" in rows["oom8 fp32 8"].reason
    assert "the peak was" in rows["oom8 fp32 8"].reason
    assert rows["oom fp32 1"].status == "failed"


def test_a_crash_keeps_its_signal_and_the_others_go_on(rows: dict[str, Row]) -> None:
    """M18: a session that dies by SIGSEGV, and one that the kernel kills."""
    assert rows["crasher fp32 1"].reason == "crashed (signal 11, segmentation fault)"
    assert rows["killed fp32 1"].reason.startswith("killed (signal 9), most likely by the kernel for lack of memory")
    assert rows["sleeper fp32 1"].status == "ok"


def test_a_hang_is_stopped_at_the_time_limit(rows: dict[str, Row]) -> None:
    """A session that never returns: failed, timed out, with the limit."""
    assert rows["hanger fp32 1"].reason.startswith("timed out: stopped after")
    assert "(limit 8 s)" in rows["hanger fp32 1"].reason


def test_an_exception_keeps_its_text(rows: dict[str, Row]) -> None:
    """asv keeps no reason; the evidence does."""
    assert rows["breaker fp32 1"].reason == "ZeroDivisionError: division by zero"


def test_latency_is_elapsed_time(project: Project, rows: dict[str, Row]) -> None:
    """M19: two threads that compute for 50 ms took 50 ms of time, whatever they used of the CPUs."""
    notes = [line.split() for line in Path(project.variables["MACHMETER_TEST_BUSY"]).read_text().splitlines()]
    elapsed = [1e3 * float(wall) for wall, _ in notes[-rows["busy fp32 1"].samples :]]
    assert rows["busy fp32 1"].p50_ms == pytest.approx(statistics.median(elapsed), rel=0.05)


def test_latency_is_measured_with_a_clock_that_nobody_sets(rows: dict[str, Row]) -> None:
    """M19: a wall clock that steps an hour at each call changes nothing."""
    assert suite.Timing.timer is time.perf_counter
    assert rows["clock fp32 1"].p50_ms < 3_600_000 / 2


def test_peak_memory_sees_what_was_freed_before_the_call_returned(project: Project, rows: dict[str, Row]) -> None:
    """M21: 500 MB that live only inside the call."""
    assert _value(project, "cpu.allocator.Small.peakmem_forward") >= 500e6
    assert (rows["allocator fp32 1"].facts["peak_memory_mb"] or 0) >= 500
    assert (rows["sleeper fp32 1"].facts["peak_memory_mb"] or 999) < 300


def test_a_missing_package_is_not_a_failure(rows: dict[str, Row]) -> None:
    """M24: n/a with the reason; the rest ran."""
    row = rows["absent fp32 1"]
    assert (row.status, row.reason) == ("n/a", "not installed: a_package_that_nobody_has")


def test_what_a_runtime_has_not_implemented_is_a_failure(project: Project, rows: dict[str, Row]) -> None:
    """asv takes any NotImplementedError of a set-up for "n/a"; a runtime's own is a failure, in asv's file too."""
    assert rows["unimplemented fp32 1"].status == "failed"
    assert "aten::thing" in rows["unimplemented fp32 1"].reason
    files, _ = read_all(project.results)
    assert files[0].values["cpu.unimplemented.Small.time_forward", ("fp32", "1")].number is None


def test_more_threads_than_allowed_fail_the_cell(rows: dict[str, Row]) -> None:
    """M7: the effective number is read back, not believed."""
    assert rows["greedy fp32 1"].reason.startswith("runs 1000000 threads where ")


def test_the_waiting_parent_sleeps(project: Project) -> None:
    """M25: asv uses less than 1 % of a core while a cell is timed."""
    notes = [line.split() for line in Path(project.variables["MACHMETER_TEST_PARENT"]).read_text().splitlines()]
    times = [(float(clock), float(used)) for clock, used in notes[-30:]]  # the timed calls of the last process
    elapsed, used = times[-1][0] - times[0][0], times[-1][1] - times[0][1]
    assert elapsed > 2.0
    assert used / elapsed < 0.01


def test_not_available_failed_and_not_run_are_three_things(project: Project, rows: dict[str, Row]) -> None:
    """R7: one run has all three; asv's file alone has NaN for two of them."""
    assert rows["absent fp32 1"].status == "n/a"
    assert rows["breaker fp32 1"].status == "failed"
    assert "sleeper fp32 32" not in rows
    (path,) = project.results.glob("*/????????-*.json")
    written = json.loads(path.read_text())["results"]
    absent, sleeper = (written[f"cpu.{name}.Small.time_forward"][0] for name in ("absent", "sleeper"))
    assert math.isnan(absent[0])
    assert math.isnan(sleeper[2])
    assert written["cpu.breaker.Small.time_forward"][0] in ([None], None)


def test_a_run_that_is_killed_keeps_what_was_finished(tmp_path: Path) -> None:
    """R8: kill -9 in the middle. asv has no file yet; the evidence has the cells, and the next run goes on."""
    project = make_project(tmp_path / "project", tmp_path / "home", {"sleeper": {}, "stuck": {}})
    command = [sys.executable, "-m", "asv", "run", "--python=same", "--set-commit-hash", "HEAD"]
    with subprocess.Popen(
        command, cwd=project.folder, env=project.environment(), stdout=subprocess.DEVNULL, start_new_session=True
    ) as asv:
        while not (stuck := _running(project, "cpu.stuck.Small(fp32, 1)")):
            assert asv.poll() is None
            time.sleep(0.1)
        asv.kill()
        os.kill(stuck, signal.SIGKILL)
        while process.is_running(stuck, process.process_identity(stuck)):
            time.sleep(0.1)
    (machine,) = machines(project.results)
    rows = {row.backend: row for row in build(project.results, machine).rows}
    assert (rows["sleeper"].status, rows["sleeper"].samples) == ("ok", 30)
    assert "interrupted" in rows["sleeper"].reason
    assert "the run was interrupted" in rows["stuck"].reason
    done = project.asv_run("-b", "sleeper")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row.backend: row for row in build(project.results, machine).rows}
    assert rows["sleeper"].status == "ok"
    assert "interrupted" not in rows["sleeper"].reason


def _running(project: Project, key: str) -> int:
    """Return the process that is at work on the cell `key`, 0 where none is."""
    for path in project.evidence.glob("*/*.json"):
        for run in json.loads(path.read_text())["runs"].values():
            for record in run["cells"].get(key, {}).values():
                return int(record["pid"])
    return 0


def test_evidence_lies_beside_the_results_under_the_same_name(project: Project) -> None:
    """A plain `asv run` writes it too, and it is strict JSON."""
    (ours,) = project.evidence.glob("*/*.json")
    theirs = [path for path in project.results.glob("*/*.json") if path.name != "machine.json"]
    assert [ours.relative_to(project.evidence)] == [path.relative_to(project.results) for path in theirs]
    json.loads(ours.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_evidence_says_what_really_ran(project: Project) -> None:
    """Versions, threads, warm-up and each process's own samples."""
    (path,) = project.evidence.glob("*/*.json")
    content = dead_processes.read(path)
    assert content is not None
    (run,) = content["runs"].values()
    assert run["versions"]["numpy"]
    assert run["host"]["thread_budget"] >= 1
    assert run["stack"] == "cpu"
    survey, timing = project.records("cpu.sleeper.Small(fp32, 1)")
    assert survey["benchmark"] == "peakmem_forward"
    assert timing["samples"] == len(timing["sample_seconds"]) >= 5
    assert timing["warm_up"]["calls"] >= 3
    assert timing["warm_up"]["seconds"] >= 1.0


def test_asv_and_the_evidence_have_the_same_samples(project: Project) -> None:
    """asv's raw samples are the calls that the process itself counted, and the order of size holds."""
    files, unreadable = read_all(project.results)
    assert not unreadable
    value = files[0].values["cpu.sleeper.Small.time_forward", ("fp32", "1")]
    timing = project.records("cpu.sleeper.Small(fp32, 1)")[1]
    assert len(value.samples) == timing["samples"]
    assert min(value.samples) <= value.number <= max(value.samples)
    assert value.number == pytest.approx(timing["median_seconds"], rel=0.02)


def test_asv_itself_can_show_the_results(project: Project) -> None:
    """The results are asv's own files: `asv show` and `asv compare` read them."""
    shown = project.asv("show", "HEAD")
    assert "cpu.sleeper.Small.time_forward" in shown.stdout, shown.stderr
    compared = project.asv("compare", "HEAD", "HEAD")
    assert compared.returncode == 0, compared.stderr


def _value(project: Project, benchmark: str) -> float:
    files, _ = read_all(project.results)
    number = files[0].values[benchmark, ("fp32", "1")].number
    assert number is not None
    return number
