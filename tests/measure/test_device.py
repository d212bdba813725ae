"""How a cell on a device is measured: batches resident, synchronised, two clocks, its memory; M5 of the fault list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import SMALL, DeviceFake

from helpers.project import Project, make_project
from machmeter import errors
from machmeter.backends import grid
from machmeter.backends.cuda import _device, _session
from machmeter.backends.cuda._peak import Peak
from machmeter.measure import opening
from machmeter.measure.record_parts import Part
from machmeter.tables.cells_found import machines
from machmeter.tables.cells_table import Row, build
from machmeter.workload import inputs, shared_artifacts

pytestmark = pytest.mark.quiet

EDGE = 1e9 * 0.010  # nanoseconds that the fake device works


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Sessions on a fake device, measured by one real asv run."""
    base = tmp_path_factory.mktemp("device")
    project = make_project(base / "project", base / "home", {"ondevice": {}, "asynchronous": {}})
    done = project.asv_run("--record-samples", "-b", "time_forward|track_sqnr")
    assert done.returncode == 2, done.stdout + done.stderr  # one of them fails, as it must
    return project


@pytest.fixture(scope="module")
def rows(project: Project) -> dict[str, Row]:
    (machine,) = machines(project.results)
    return {row.backend: row for row in build(project.results, machine).rows}


def test_a_call_is_over_when_the_device_has_finished(rows: dict[str, Row]) -> None:
    assert rows["ondevice"].status == "ok"
    assert rows["ondevice"].p50_ms is not None
    assert rows["ondevice"].p50_ms >= 10.0


def test_a_session_that_returns_early_has_no_number(rows: dict[str, Row]) -> None:
    """M5: without a wait the fake "takes" microseconds."""
    assert (rows["asynchronous"].status, rows["asynchronous"].p50_ms) == ("failed", None)
    assert rows["asynchronous"].reason == "not synchronised: a call returned while the GPU was still at work"


def test_both_clocks_and_the_state_of_the_device_are_on_record(project: Project, rows: dict[str, Row]) -> None:
    (timing,) = (item for item in project.records("cpu.ondevice.Small(fp32, 1)") if item.get("samples"))
    assert len(timing["device_sample_seconds"]) == timing["samples"]
    assert set(timing["device_sample_seconds"]) == {0.010}
    assert timing["device_median_seconds"] == 0.010
    assert timing["device_states"][0]["missing"] == {"power_watts": "no"}
    assert timing["device"]["gpu"] == "a fake"
    assert timing["inputs"]["resident"] == "device"
    assert timing["inputs"]["includes_transfer"] is False
    assert rows["ondevice"].device_p50_ms == 10.0


def test_the_memory_of_the_device_is_a_fact_of_the_cell(project: Project, rows: dict[str, Row]) -> None:
    assert project.records("cpu.ondevice.Small(fp32, 1)")[0]["device"]["peak_bytes"] == 123_000_000
    facts: dict[str, Any] = {}
    opening._note_device(DeviceFake("x", waits=True).load(SMALL, None, "fp32", batch=1, threads=1), _ignore, facts)
    assert facts == {"track_device_memory": 123_000_000}


def _ignore(part: Part) -> None:
    pass


def _opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, operations: float) -> opening.Opened:
    """Open a cell on the fake device whose model has `operations` per image; the device can do 1e12 a second."""
    backend = DeviceFake("x", waits=True)
    evaluation = tmp_path / "evaluation.npy"
    np.save(evaluation, np.random.default_rng(0).standard_normal((inputs.EVALUATION_IMAGES, 3, 8, 8), np.float32))
    monkeypatch.setenv("MACHMETER_STORE", str(tmp_path / "store"))
    artifact = backend.prepare(SMALL, "fp32", opening.Store(), batch=1)
    logits = np.zeros((inputs.EVALUATION_IMAGES, 4), np.float32)
    reference = shared_artifacts.Reference(
        evaluation=evaluation, calibration=evaluation, logits=logits, operations_per_image=operations, artifact=artifact
    )
    monkeypatch.setattr(opening, "_prepare", lambda *_: (artifact, reference))
    monkeypatch.setattr(opening, "in_child", lambda work, *, fork: work())
    monkeypatch.setattr(opening, "WARM_UP_SECONDS", 0.0)
    cell = grid.from_parameters(backend, SMALL, ("fp32", 1))  # type: ignore[arg-type]
    return opening.open_cell(backend, SMALL, cell, record=_ignore, facts={}, all_images=False)  # type: ignore[arg-type]


def test_a_call_that_is_faster_than_the_measured_peak_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """M5: 2e10 operations at 1e12 a second take 20 ms; a call of 10 ms did not do them."""
    opened = _opened(monkeypatch, tmp_path, operations=2e10)
    assert opened.least_seconds == pytest.approx(0.020)
    assert opened.problem(EDGE) == (
        "impossible: a call took 10.000 ms and this GPU needs at least 20.000 ms; it returns before its work is done"
    )
    assert opened.problem(2.5 * EDGE) is None


def test_what_is_timed_is_a_run_on_batches_that_lie_on_the_device(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened = _opened(monkeypatch, tmp_path, operations=1.0)
    assert opened.device is opened.session
    assert len(set(opened.buffers)) == 8
    assert all(isinstance(buffer, int) for buffer in opened.buffers)  # the fake's places
    assert opened.call(opened.buffers[0]) is None  # the answers stay on the device


@pytest.mark.parametrize(
    ("precision", "family", "least"),
    [("fp16", "convolutional", 1e12 / (1e15 * 1.6)), ("fp16", "transformer", 1e12 / (1e15 * 1.15))],
)
def test_the_bound_is_the_measured_peak_with_room_for_better_algorithms(
    precision: str, family: str, least: float
) -> None:
    session = object.__new__(_session.GpuSession)
    session._peak = Peak(operations_per_second=1e15)
    assert session.least_seconds(1e12, precision, family) == pytest.approx(least)
    session._peak = Peak(how="torch cannot multiply int8 matrices")
    assert session.least_seconds(1e12, precision, family) == 0.0


def test_the_memory_of_this_process_says_where_it_is_from() -> None:
    """In a container NVML shows no process of ours: then what the GPU has in use more than before; else no number."""
    found = _session.device_memory(own=3 << 30, used=9 << 30, used_before=5 << 30, torch_reserved=1 << 30)
    assert found == (3 << 30, "NVML, this process")
    found = _session.device_memory(own=None, used=9 << 30, used_before=5 << 30, torch_reserved=1 << 30)
    assert found == (4 << 30, "NVML, in use more than before this process")
    number, why = _session.device_memory(own=None, used=None, used_before=None, torch_reserved=1024)
    assert number is None
    assert "torch reserved 1024 bytes" in why


@pytest.mark.parametrize(
    ("built_for", "capability", "runs"),
    [
        (["sm_75", "sm_80", "sm_90"], (9, 0), True),
        (["sm_80"], (8, 9), True),
        (["sm_86"], (8, 0), False),
        (["sm_80"], (9, 0), False),
        (["sm_80", "compute_80"], (9, 0), True),
        (["sm_90a"], (9, 0), True),
        (["sm_100", "sm_120"], (12, 0), True),
        (["sm_75"], (7, 0), False),
        ([], (9, 0), False),
    ],
)
def test_a_torch_without_kernels_for_the_gpu_is_noticed(
    built_for: list[str], capability: tuple[int, int], runs: bool
) -> None:
    assert (_device.no_kernels(built_for, capability) is None) is runs


def test_out_of_memory_on_the_gpu_fails_the_cell_with_the_peak_of_its_memory() -> None:
    """M17 in CUDA's words."""
    from machmeter.measure import cell_record

    error = RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 15.00 GiB")
    error.peak_bytes = 14_000_000_000  # type: ignore[attr-defined]
    outcome = cell_record.failure(error)
    assert outcome.status == "failed"
    assert outcome.reason is not None
    assert outcome.reason.startswith("out of memory (CUDA out of memory. Tried to allocate 20.00 GiB")
    assert outcome.reason.endswith("the peak was 14000 MB")
    assert "out of memory" in (cell_record.failure(RuntimeError("CUBLAS_STATUS_ALLOC_FAILED")).reason or "")
    assert isinstance(errors.Unsupported("x"), NotImplementedError)
