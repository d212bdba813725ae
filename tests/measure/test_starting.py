"""Starting processes with an allocator, huge pages, a launcher or several instances: with the real ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import fakes
import pytest

from helpers.project import SUITE
from machmeter import backends
from machmeter.backends.base import Backend
from machmeter.errors import BadSetting, CellFailed, Unsupported
from machmeter.machine import host
from machmeter.measure import instances, starting
from machmeter.measure.instances import Configuration, Done
from machmeter.workload import models
from machmeter.workload.cells import Cell
from machmeter.workload.launch import Launch, Proof

pytestmark = pytest.mark.quiet

TWO_CORES = host.cpu().physical_cores >= 2

needs_two_cores = pytest.mark.skipif(not TWO_CORES, reason="needs two physical cores")


@pytest.fixture(autouse=True)
def _importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers find the fake backends, and keep their artifacts apart."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUITE), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("MACHMETER_STORE", str(tmp_path / "store"))


def run(name: str, how: Launch, batch: int = 1, seconds: float = 1.0) -> Done:
    backend: Backend = next(fake for fake in fakes.FAKES if fake.name == name)
    cell = Cell(device="cpu", backend=name, model="ResNet18", precision="fp32", batch=batch)
    return instances.run(Configuration(backend=backend, cell=cell, launch=how, seconds=seconds))


@pytest.fixture
def siblings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose four logical CPUs are two cores."""
    for number in range(4):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{number}/topology"
        folder.mkdir(parents=True)
        (folder / "core_id").write_text(str(number % 2))
        (folder / "physical_package_id").write_text("0")
    monkeypatch.setenv("MACHMETER_HOST_ROOT", str(tmp_path))
    monkeypatch.setattr(host, "affinity", lambda: {0, 1, 2, 3})


def test_a_batch_of_8_every_10_ms_is_800_images_per_second() -> None:
    """M1, through real processes."""
    done = run("sleeper", Launch(), batch=8)
    assert done.images_per_second == pytest.approx(800, rel=0.35)
    assert done.evidence().median_seconds == pytest.approx(0.010, rel=0.35)


@needs_two_cores
def test_two_equal_instances_are_twice_one() -> None:
    """M20: summed, planned is finished, on distinct cores."""
    one, two = run("sleeper", Launch()), run("sleeper", Launch(instances=2))
    assert two.images_per_second / one.images_per_second == pytest.approx(2.0, rel=0.25)
    assert len(two.calls) == 2
    cores = [worker.proof.physical_cores for worker in two.workers]
    assert len(set(cores)) == 2
    assert all(len(core) == 1 for core in cores)
    assert [worker.threads for worker in two.workers] == [1, 1]


@needs_two_cores
def test_one_killed_instance_fails_the_cell() -> None:
    """M20: the sum of those left would be a number of another configuration."""
    with pytest.raises(CellFailed, match=r"instance \d of 2 ended without a result: killed by signal 9"):
        run("mortal", Launch(instances=2), seconds=10)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("breaker", "ZeroDivisionError"),
        ("crasher", "killed by signal 11"),
        ("oom", "out of memory"),
        ("greedy", "runs 1000000 threads"),
        ("recompiles", "recompiled while it was timed"),
    ],
)
def test_what_goes_wrong_in_an_instance_is_told(name: str, reason: str) -> None:
    with pytest.raises(CellFailed, match=reason):
        run(name, Launch())


def test_no_process_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits goes away in the middle: the instances end with it."""

    def interrupted(crew: instances._Crew, event: str) -> None:
        raise KeyboardInterrupt

    started: list[int] = []
    popen = instances.subprocess.Popen
    monkeypatch.setattr(instances._Crew, "answers", interrupted)
    monkeypatch.setattr(instances.subprocess, "Popen", lambda *a, **k: started.append((p := popen(*a, **k)).pid) or p)
    with pytest.raises(KeyboardInterrupt):
        run("stuck", Launch())
    assert started
    assert not any(Path(f"/proc/{pid}").exists() for pid in started)


def test_the_parent_sleeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """M25: the waiting process uses less than 1 % of a CPU while its instances are timed."""
    notes = tmp_path / "parent"
    monkeypatch.setenv("MACHMETER_TEST_PARENT", str(notes))
    run("parent", Launch(), seconds=3.0)
    lines = [tuple(map(float, line.split())) for line in notes.read_text().splitlines()]
    (begin, before), (end, after) = lines[-28], lines[-1]
    assert end - begin > 2.0
    assert (after - before) / (end - begin) < 0.01 + 1.0 / os.sysconf("SC_CLK_TCK") / (end - begin)


@pytest.fixture
def quota_of_one_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This machine, in a container that may use one CPU's worth of time and has been stopped 95 times."""
    for source in [Path("/proc/cpuinfo"), *Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/*_id")]:
        target = tmp_path / source.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source.read_text())
    (tmp_path / "proc/self").mkdir()
    (tmp_path / "proc/self/cgroup").write_text("0::/box\n")
    group = tmp_path / "sys/fs/cgroup/box"
    group.mkdir(parents=True)
    (group / "cpu.max").write_text("100000 100000\n")
    (group / "cpu.stat").write_text("nr_periods 100\nnr_throttled 95\n")
    monkeypatch.setenv("MACHMETER_HOST_ROOT", str(tmp_path))
    return group / "cpu.stat"


def test_throttled_periods_of_the_timed_part_are_on_record(quota_of_one_cpu: Path) -> None:
    """M7: what was throttled before is not counted, and none is 0, not unknown."""
    (worker,) = run("sleeper", Launch()).workers
    assert worker.throttled_periods == 0


@pytest.mark.models
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("eager", {"layout": "contiguous"}),
        ("inductor", {"mode": "compile"}),
        ("onnxruntime", {}),
        ("openvino", {}),
    ],
)
def test_a_cpu_quota_limits_every_backend(
    name: str, options: dict[str, str], quota_of_one_cpu: Path, store_variable: Path
) -> None:
    """M7: a quota of one CPU gives one thread, read back from the runtime, whatever the host has."""
    if reason := backends.unsupported(backends.get(name), models.get("ResNet18"), "fp32", **options):
        pytest.skip(reason)
    cell = Cell(device="cpu", backend=name, model="ResNet18", precision="fp32", batch=1, options=options)
    done = instances.run(Configuration(backend=backends.get(name), cell=cell, launch=Launch(), seconds=0.5))
    (worker,) = done.workers
    assert worker.threads == 1
    assert worker.effective is not None
    assert worker.effective.threads == 1


@pytest.mark.usefixtures("siblings")
def test_hyper_thread_siblings_are_not_cores() -> None:
    """M8: four instances on two cores are refused, with the numbers."""
    reason = starting.unsupported(Launch(instances=4))
    assert reason == (
        "4 instances need 4 physical cores, and this process may use 2 "
        "(4 logical CPUs; hyper-thread siblings are not cores)"
    )
    with pytest.raises(Unsupported, match="4 instances need 4 physical cores"):
        run("sleeper", Launch(instances=4))
    assert starting.shares(Launch(instances=2)) == [[0], [1]]


@pytest.mark.usefixtures("siblings")
def test_instances_that_share_a_core_are_found_out() -> None:
    """M8: whatever a launcher did, cores are compared and not numbers of CPUs."""
    shared = [Proof(allocator="system", launcher="none", cpus=(cpu,), physical_cores=(("0", "0"),)) for cpu in (0, 2)]
    assert starting.falsehood(Launch(instances=2), shared) == "two instances share a physical core: [[0], [2]]"


@pytest.mark.parametrize("allocator", ["tcmalloc", "jemalloc"])
def test_the_allocator_is_really_mapped(allocator: str) -> None:
    """The real library, as `.ci/run` installs it."""
    assert starting.find_library(allocator), f"{allocator} is missing: .ci/run installs it"
    done = run("sleeper", Launch(allocator=allocator))  # type: ignore[arg-type]
    (worker,) = done.workers
    assert worker.proof.allocator == allocator
    assert allocator in (worker.proof.allocator_library or "")
    assert worker.allocator == allocator


def test_a_missing_allocator_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "find_library", lambda allocator: None)
    with pytest.raises(Unsupported, match=r"tcmalloc is not installed \(Debian: apt install libtcmalloc-minimal4\)"):
        run("sleeper", Launch(allocator="tcmalloc"))


def test_an_allocator_that_was_not_preloaded_fails_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "environment", lambda how, cores: dict(os.environ))
    with pytest.raises(CellFailed, match="asked for tcmalloc and system is mapped"):
        run("sleeper", Launch(allocator="tcmalloc"))


def test_huge_pages_that_nobody_uses_fail_the_cell() -> None:
    """A runtime that allocates by itself does not heed torch's variable."""
    if reason := starting.unsupported(Launch(huge_pages=True)):
        pytest.skip(reason)
    with pytest.raises(CellFailed, match="none is in use"):
        run("sleeper", Launch(huge_pages=True))


def test_a_kernel_without_huge_pages_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sys/kernel/mm/transparent_hugepage").mkdir(parents=True)
    (tmp_path / "sys/kernel/mm/transparent_hugepage/enabled").write_text("always madvise [never]\n")
    monkeypatch.setenv("MACHMETER_HOST_ROOT", str(tmp_path))
    assert "kernel gives no huge pages" in str(starting.unsupported(Launch(huge_pages=True)))


@pytest.mark.models
@needs_two_cores
def test_run_cpu_without_numactl_binds_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """M9: the launcher falls back to taskset without a word; cores are bound, memory is not, and that is on record."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("lscpu", "taskset", "hostname"):
        found = shutil.which(name)
        assert found, f"{name} is missing"
        (tools / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    done = run("sleeper", Launch(launcher="run_cpu", instances=2, allocator="tcmalloc"))
    for worker in done.workers:
        assert worker.proof.launcher == "run_cpu"
        assert worker.proof.allocator == "tcmalloc"
        assert worker.proof.memory_binding.bound is False
        assert "numactl is not installed" in (worker.proof.memory_binding.why or "") or (
            worker.proof.memory_binding.policy is None
        )
        assert len(worker.proof.cpus) == 1
    assert {tuple(worker.proof.cpus) for worker in done.workers} == {(cpu,) for cpu in host.one_cpu_per_core()[:2]}


@pytest.mark.models
def test_run_cpu_reports_an_instance_that_dies() -> None:
    with pytest.raises(CellFailed, match="instance 1 of 1 ended without a result"):
        run("crasher", Launch(launcher="run_cpu"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"allocator": "hoard"}, "allocator is 'hoard': choose from system, tcmalloc, jemalloc"),
        ({"launcher": "mpirun"}, "launcher is 'mpirun': choose from none, run_cpu"),
        ({"instances": 0}, "instances is 0: it must be a whole number from 1 on"),
        ({"instances": "two"}, "instances is 'two'"),
        ({"huge_pages": "yes"}, "huge_pages is 'yes': it must be true or false"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, object], message: str) -> None:
    with pytest.raises(BadSetting, match=message):
        Launch(**settings)  # type: ignore[arg-type]


def test_the_clock_is_shared_between_processes() -> None:
    """Windows of different processes can only be compared if their clocks are one: another's reading lies between."""
    command = [sys.executable, "-c", "import time; print(time.perf_counter_ns())"]
    before = time.perf_counter_ns()
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert before < int(told) < time.perf_counter_ns()
