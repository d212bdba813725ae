"""The thread budget and the facts of the machine, read from copies of the kernel's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from machmeter import backends
from machmeter.machine import host
from machmeter.workload import models

XEON = "fpu sse4_2 avx avx2 fma avx512f avx512bw avx512vl avx512_vnni avx512_bf16 amx_tile amx_bf16 amx_int8"
HASWELL = "fpu sse4_2 avx avx2 fma"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 8 logical CPUs on 4 cores, all allowed, without limits."""
    monkeypatch.setenv("MACHMETER_HOST_ROOT", str(tmp_path))
    monkeypatch.setattr(host, "affinity", lambda: set(range(8)))
    for number in range(8):
        topology = tmp_path / f"sys/devices/system/cpu/cpu{number}/topology"
        topology.mkdir(parents=True)
        (topology / "core_id").write_text(f"{number % 4}\n")
        (topology / "physical_package_id").write_text("0\n")
    _cpuinfo(tmp_path, XEON)
    return tmp_path


def _cpuinfo(tree: Path, flags: str) -> None:
    (tree / "proc").mkdir(exist_ok=True)
    (tree / "proc/cpuinfo").write_text(f"processor\t: 0\nmodel name\t: Test  CPU @ 2 GHz\nflags\t\t: {flags}\n\n")


def _write(tree: Path, path: str, text: str) -> None:
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(text)


def test_hyper_thread_siblings_count_once(tree: Path) -> None:
    assert host.cpu().physical_cores == 4
    assert host.thread_budget() == 4


def test_affinity_limits_the_budget(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "affinity", lambda: {0, 4, 1})  # 0 and 4 are one core
    assert host.thread_budget() == 2


@pytest.mark.parametrize(("quota", "budget"), [("100000 100000", 1), ("150000 100000", 1), ("250000 100000", 2)])
def test_quota_of_control_groups_version_2(tree: Path, quota: str, budget: int) -> None:
    """M7: a quota of one CPU gives one thread, whatever the host has."""
    _write(tree, "proc/self/cgroup", "0::/kubepods/pod1/c1\n")
    _write(tree, "sys/fs/cgroup/kubepods/pod1/cpu.max", quota)
    _write(tree, "sys/fs/cgroup/kubepods/pod1/c1/cpu.max", "max 100000")
    assert host.thread_budget() == budget


def test_quota_of_control_groups_version_1(tree: Path) -> None:
    _write(tree, "proc/self/cgroup", "4:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n")
    _write(tree, "sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "200000")
    _write(tree, "sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000")
    _write(tree, "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "1073741824")
    assert host.thread_budget() == 2
    assert host.limits().memory_bytes == 1 << 30


def test_throttled_periods_are_recorded(tree: Path) -> None:
    _write(tree, "proc/self/cgroup", "0::/a\n")
    _write(tree, "sys/fs/cgroup/a/cpu.max", "100000 100000")
    _write(tree, "sys/fs/cgroup/a/cpu.stat", "nr_periods 100\nnr_throttled 95\n")
    assert host.facts().limits == host.Limits(cpu_quota=1.0, memory_bytes=None, throttled_periods=95)


def test_no_limits_where_there_are_no_control_groups(tree: Path) -> None:
    assert host.limits() == host.Limits(cpu_quota=None, memory_bytes=None, throttled_periods=None)


def test_bf16_without_bf16_instructions_is_not_available(tree: Path) -> None:
    """M13: emulated bf16 is 44 to 500 times slower, so the cell is skipped with its reason, on every CPU backend."""
    _cpuinfo(tree, HASWELL)
    model = models.get("ResNet50")
    asked = 0
    for backend in map(backends.get, backends.names()):
        if backend.device == "cpu" and "bf16" in backend.precisions:
            options = {name: choices[0] for name, choices in backend.options.items()}
            reason = backends.unsupported(backend, model, "bf16", **options)
            assert reason is not None
            assert "no bf16 instructions" in reason
            asked += 1
    assert asked >= 3


def test_int8_of_inductor_without_vnni_is_not_available(tree: Path) -> None:
    _cpuinfo(tree, HASWELL)
    reason = backends.unsupported(backends.get("torchao"), models.get("ResNet50"), "int8")
    assert reason is not None
    assert "VNNI" in reason


def test_features_of_the_cpu(tree: Path) -> None:
    cpu = host.cpu()
    assert cpu.model == "Test CPU @ 2 GHz"
    assert (cpu.has_bf16, cpu.has_int8) == (True, True)
    assert "amx_int8" in cpu.features


def test_no_cpu_is_accused_of_what_it_can_do(tree: Path) -> None:
    """The bound behind "impossible" leaves room: 8 GFLOP on 8 CPUs need 2.4 ms at the very least, in fp32."""
    _cpuinfo(tree, HASWELL)
    assert host.least_seconds(8e9, "fp32") == pytest.approx(8e9 / (8 * 6.5e9 * 64))
    assert host.least_seconds(8e9, "int8") < host.least_seconds(8e9, "bf16") < host.least_seconds(8e9, "fp32")
