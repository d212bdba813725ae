"""What the doctor says of a machine, from copies of the kernel's files."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.project import ROOT
from machmeter import doctor
from machmeter.doctor import Finding, Surroundings, gpus, probe
from machmeter.doctor.finding import numbers
from machmeter.machine import host

SMI = "0, NVIDIA H200, 580.65.06, Enabled, Disabled, 31, 1980\n"

# A machine on which nothing is to be changed.
READY = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Test CPU\nflags\t\t: fpu avx2\n",
    "proc/meminfo": "MemTotal: 65536000 kB\nMemAvailable: 60000000 kB\nHugePages_Total: 0\nHugepagesize: 2048 kB\n",
    "proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n",
    "proc/self/cgroup": "0::/runner.slice\n",
    "proc/sys/kernel/randomize_va_space": "2",
    "proc/sys/kernel/numa_balancing": "0",
    "proc/sys/kernel/nmi_watchdog": "0",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "sys/devices/system/node/online": "0-1",
    "sys/devices/system/cpu/smt/active": "0",
    "sys/devices/system/cpu/isolated": "",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    "sys/fs/cgroup/system.slice/cpuset.cpus.effective": "0",
    "sys/fs/cgroup/user.slice/cpuset.cpus.effective": "0",
    "sys/fs/cgroup/runner.slice/cpu.max": "max 100000",
    **{f"sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor": "performance" for number in range(4)},
    **{f"sys/devices/system/cpu/cpu{number}/topology/core_id": str(number) for number in range(4)},
}
QUIET = Surroundings(
    programs={"git": "2.47", "g++": "14.2", "numactl": "/usr/bin/numactl", "python": "3.11.2", "asv": "0.6.6"},
    pinned_asv="0.6.6",
    allocators={"tcmalloc": "/lib/libtcmalloc_minimal.so.4", "jemalloc": "/lib/libjemalloc.so.2"},
    store_free=100_000_000_000,
    project_free=100_000_000_000,
    machine="xeon",
    busy_share=0.01,
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that is ready: CPU 0 for services, 1 to 3 for us."""
    monkeypatch.setenv("MACHMETER_HOST_ROOT", str(tmp_path))
    monkeypatch.setattr(host, "affinity", lambda: {1, 2, 3})
    for path, text in READY.items():
        _write(tmp_path, path, text)
    return tmp_path


def _write(tree: Path, path: str, text: str) -> None:
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(text + "\n")


def _found(check: str, around: Surroundings = QUIET, threads: int | None = None) -> Finding:
    return next(item for item in doctor.examine(around, threads=threads) if item.check == check)


def test_nothing_is_to_be_changed_on_a_machine_that_is_ready(tree: Path) -> None:
    findings = doctor.examine(QUIET, threads=3)
    assert {item.check: item.state for item in findings if item.state != "ok"} == dict.fromkeys(gpus.CHECKS, "n/a")
    assert doctor.as_json(findings)["ready"] is True


def test_every_check_is_listed_once_in_the_order_of_the_output(tree: Path) -> None:
    assert tuple(item.check for item in doctor.examine(QUIET)) == doctor.NAMES
    with_gpu = dataclasses.replace(QUIET, gpus=gpus.parse(SMI))
    assert tuple(item.check for item in doctor.examine(with_gpu)) == doctor.NAMES


CPU = "sys/devices/system/cpu"
KERNEL = "proc/sys/kernel"
SERVICES = "sys/fs/cgroup/system.slice/cpuset.cpus.effective"
OURS = "sys/fs/cgroup/runner.slice"
CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"
PAGES = "sys/kernel/mm/transparent_hugepage/enabled"
MEMORY = READY["proc/meminfo"]
SWAP = "Filename\n/dev/sda2 partition 1 0 -2"
STORE = "/store: Permission denied"


@pytest.mark.parametrize(
    ("check", "path", "text", "found", "do"),
    [
        ("bare metal", "proc/cpuinfo", "flags\t: fpu hypervisor avx2", "a virtual machine", "accept 'bare metal'"),
        ("governor", f"{CPU}/cpu2/cpufreq/scaling_governor", "powersave", "powersave on 1 of 3 CPUs", "cpupower"),
        ("turbo", f"{CPU}/intel_pstate/no_turbo", "0", "on", f"echo 1 | sudo tee /{CPU}/intel_pstate/no_turbo"),
        ("hyper-threads", f"{CPU}/smt/active", "1", "on: 3 CPUs on 3 cores", f"echo off | sudo tee /{CPU}/smt/control"),
        ("isolated cores", SERVICES, "0-3", "services may use 3 of our 3 CPUs", "CPUs=1"),
        ("isolated cores", f"{CPU}/isolated", "1-3", "isolcpus has 3 of our CPUs", "take isolcpus= off"),
        ("clock source", CLOCK, "hpet", "hpet", "echo tsc"),
        ("huge pages", PAGES, "[always] madvise never", "[always] madvise never", "echo madvise"),
        ("huge pages", PAGES, "always madvise [never]", "always madvise [never]", "echo madvise"),
        ("reserved huge pages", "proc/meminfo", MEMORY.replace("Total: 0", "Total: 9000"), "18.9 GB", "nr_hugepages=0"),
        ("NUMA balancing", f"{KERNEL}/numa_balancing", "1", "on, 2 nodes", "sudo sysctl -w kernel.numa_balancing=0"),
        ("swap", "proc/swaps", SWAP, "1 area", "sudo swapoff --all"),
        ("address layout", f"{KERNEL}/randomize_va_space", "0", "randomize_va_space is 0", "randomize_va_space=2"),
        ("free memory", "proc/meminfo", MEMORY.replace("60000000", "1000000"), "1.0 GB", "ps aux"),
        ("CPU quota", f"{OURS}/cpu.max", "250000 100000", "2.5 CPUs", "a cpuset"),
        ("CPU quota", f"{OURS}/cpu.stat", "nr_throttled 95", "none now, it stopped us in 95 periods", "cpuset"),
        ("watchdog", f"{KERNEL}/nmi_watchdog", "1", "on", "sudo sysctl -w kernel.nmi_watchdog=0"),
    ],
)  # fmt: skip
def test_what_is_to_be_changed_is_told_with_its_command_and_reason(
    tree: Path, check: str, path: str, text: str, found: str, do: str
) -> None:
    _write(tree, path, text)
    finding = _found(check)
    assert (finding.state, finding.found) == ("change", found)
    assert do in finding.do
    assert finding.why


@pytest.mark.parametrize(
    ("check", "path"),
    [
        ("bare metal", "proc/cpuinfo"),
        ("governor", f"{CPU}/cpu1/cpufreq/scaling_governor"),
        ("turbo", f"{CPU}/intel_pstate/no_turbo"),
        ("hyper-threads", f"{CPU}/smt/active"),
        ("isolated cores", "sys/fs/cgroup/user.slice/cpuset.cpus.effective"),
        ("clock source", CLOCK),
        ("huge pages", PAGES),
        ("reserved huge pages", "proc/meminfo"),
        ("NUMA balancing", f"{KERNEL}/numa_balancing"),
        ("swap", "proc/swaps"),
        ("address layout", f"{KERNEL}/randomize_va_space"),
        ("free memory", "proc/meminfo"),
        ("CPU quota", "proc/self/cgroup"),
        ("watchdog", f"{KERNEL}/nmi_watchdog"),
    ],
)
def test_what_the_kernel_does_not_tell_is_unknown_and_never_ok(tree: Path, check: str, path: str) -> None:
    (tree / path).unlink()
    finding = _found(check)
    assert finding.state == "unknown"
    assert finding.found
    assert finding.why
    assert doctor.as_json([finding])["ready"] is False


def test_nothing_is_ok_where_no_file_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty root: only what is not read from it may be ok."""
    monkeypatch.setenv("MACHMETER_HOST_ROOT", str(tmp_path))
    findings = doctor.examine(Surroundings())
    assert [item.check for item in findings if item.state == "ok"] == ["threads", "artifact store"]


def test_turbo_of_a_cpu_that_is_not_intel_s(tree: Path) -> None:
    (tree / f"{CPU}/intel_pstate/no_turbo").unlink()
    _write(tree, f"{CPU}/cpufreq/boost", "0")
    assert _found("turbo").state == "ok"
    _write(tree, f"{CPU}/cpufreq/boost", "1")
    assert _found("turbo").do == f"echo 0 | sudo tee /{CPU}/cpufreq/boost"


def test_siblings_are_seen_by_the_cores_where_the_switch_is_not_shown(tree: Path) -> None:
    """M8: hyper-thread siblings are not cores."""
    (tree / f"{CPU}/smt/active").unlink()
    _write(tree, f"{CPU}/cpu3/topology/core_id", "2")
    assert _found("hyper-threads").found == "on: 3 CPUs on 2 cores"


def test_one_node_has_nothing_to_balance(tree: Path) -> None:
    _write(tree, "sys/devices/system/node/online", "0")
    _write(tree, f"{KERNEL}/numa_balancing", "1")
    assert _found("NUMA balancing").state == "n/a"


def test_another_number_of_threads_than_expected_is_told(tree: Path) -> None:
    """M7: it would be filed under the same name, and is another measurement."""
    assert _found("threads", threads=3).state == "ok"
    finding = _found("threads", threads=16)
    assert (finding.state, finding.found) == ("change", "3, and 16 are expected")


@pytest.mark.parametrize(
    ("check", "changes", "found", "do"),
    [
        ("load", {"busy_share": 0.42, "busiest": ("ffmpeg",)}, "others had 42 % of the CPUs (ffmpeg)", "end them"),
        ("git", {"programs": {}}, "not installed", "sudo apt install git"),
        ("g++", {"programs": {}}, "not installed", "sudo apt install g++"),
        ("numactl", {"programs": {}}, "not installed", "sudo apt install numactl"),
        ("tcmalloc", {"allocators": {}}, "not installed", "sudo apt install libtcmalloc-minimal4"),
        ("jemalloc", {"allocators": {}}, "not installed", "sudo apt install libjemalloc2"),
        ("python", {"programs": {"python": "3.9.2"}}, "3.9.2", "python3.11-venv"),
        ("asv", {"programs": {"asv": "0.5"}}, "0.5, pinned is 0.6.6", "make tools"),
        ("artifact store", {"store_problem": STORE}, STORE, "MACHMETER_STORE"),
        ("known to asv", {"machine": None}, "asv would ask who this machine is", "machmeter runners name"),
        ("disk for environments", {"project_free": 3_000_000_000}, "3 GB free", "rm -r .asv/env"),
        ("disk for artifacts", {"store_free": 3_000_000_000}, "3 GB free", "rm -r .asv/env"),
    ],
)  # fmt: skip
def test_surroundings_that_are_to_be_changed(
    tree: Path, check: str, changes: dict[str, object], found: str, do: str
) -> None:
    finding = _found(check, dataclasses.replace(QUIET, **changes))  # type: ignore[arg-type]
    assert (finding.state, finding.found) == ("change", found)
    assert do in finding.do


def test_gpus_are_judged_by_what_their_driver_says(tree: Path) -> None:
    sleeping = gpus.parse(SMI.replace("Enabled", "Disabled"))
    around = dataclasses.replace(QUIET, gpus=sleeping, gpu_processes=["GPU-1, 42, python"])
    assert _found("gpu driver", around).found == "NVIDIA H200 (driver 580.65.06)"
    assert _found("gpu persistence", around).do == "sudo nvidia-smi --persistence-mode=1"
    assert _found("gpu processes", around).found == "1: GPU-1, 42, python"
    assert _found("gpu clocks", around).state == "unknown"
    awake = dataclasses.replace(QUIET, gpus=gpus.parse(SMI))
    assert [_found(check, awake).state for check in gpus.CHECKS] == ["ok", "ok", "unknown", "ok"]


def test_a_driver_that_does_not_answer_is_unknown(tree: Path) -> None:
    around = dataclasses.replace(QUIET, gpus=None, gpu_processes=None, gpu_reason="nvidia-smi failed: run it")
    assert {_found(check, around).state for check in gpus.CHECKS} == {"unknown"}
    assert _found("gpu driver", around).found == "nvidia-smi failed: run it"


def test_what_is_accepted_does_not_keep_a_machine_from_being_ready(tree: Path) -> None:
    _write(tree, "proc/swaps", SWAP)
    assert doctor.as_json(doctor.examine(QUIET))["ready"] is False
    findings = doctor.examine(QUIET, accepted=frozenset({"swap"}))
    assert next(item.state for item in findings if item.check == "swap") == "accepted"
    assert doctor.as_json(findings)["ready"] is True


def test_what_is_to_be_changed_is_printed_first(tree: Path) -> None:
    _write(tree, "proc/swaps", SWAP)
    lines = doctor.as_text(doctor.examine(QUIET)).splitlines()
    assert lines[:3] == [
        "change   swap                   1 area",
        "         do:  sudo swapoff --all",
        "         why: a page that comes back from disk takes 1,000 times as long as one in memory, or more",
    ]
    assert lines[-1] == "1 change, 26 ok, 4 n/a"


@pytest.mark.parametrize(("columns", "widest"), [("80", 80), ("60", 60), ("20", 60)])
def test_the_command_keeps_to_the_width_of_the_terminal(tree: Path, columns: str, widest: int) -> None:
    """All but commands, which are there to be copied; no word is lost, and a file has no width."""
    _write(tree, "proc/swaps", SWAP)
    _write(tree, "sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never")
    program = "from machmeter.cli import main; main()"
    command = [sys.executable, "-c", program, "doctor", "--project", str(ROOT)]
    lines = {}
    for width in (columns, ""):
        around = {**os.environ, "COLUMNS": width}
        lines[width] = subprocess.run(
            command, env=around, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        ).stdout.splitlines()
    text = [line for line in lines[columns] if "sudo " not in line]
    assert max(len(line) for line in text if "/" not in line) <= widest  # a path is never broken
    assert max(map(len, lines[""])) > 90
    why = "a page that comes back from disk takes 1,000 times as long as one in memory, or more"
    assert why in " ".join(" ".join(lines[columns]).split())
    command_line = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
    assert f"         do:  {command_line}" in lines[columns]


@pytest.mark.parametrize(
    ("text", "expected"), [("0-3,8", {0, 1, 2, 3, 8}), ("", set()), ("5\n", {5}), ("a-b,1-", {1}), ("3-x", set())]
)
def test_lists_of_cpus(text: str, expected: set[int]) -> None:
    assert numbers(text) == expected


def test_who_is_busy_is_named(tmp_path: Path) -> None:
    """The real kernel: a process that spins for as long as we look is among the busiest."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        share, _ = probe._busy()
    finally:
        busy.kill()
        busy.wait()
    assert share is not None
    assert share > 0.05


def test_the_command_prints_json_and_fails_where_it_is_strict(tree: Path) -> None:
    _write(tree, "proc/swaps", SWAP)
    program = "from machmeter.cli import main; main()"
    command = [sys.executable, "-c", program, "doctor", "--json", "--project", str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    checks = {item["check"]: item["state"] for item in json.loads(done.stdout)["checks"]}
    assert checks["swap"] == "change"
    strict = subprocess.run([*command, "--strict"], capture_output=True, text=True, check=False)
    assert strict.returncode == 42
    assert strict.stderr.startswith("machmeter: this machine is not ready to measure: ")
    assert len(strict.stderr.splitlines()) == 1
    refused = subprocess.run([*command, "--accept", "luck"], capture_output=True, text=True, check=False)
    assert refused.returncode == 9
    assert "--accept is 'luck', which is no check" in refused.stderr
