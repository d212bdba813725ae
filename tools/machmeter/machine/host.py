"""Facts about the machine, and the thread budget that every backend gets.

All of it is read from the files the kernel publishes, under `MACHMETER_HOST_ROOT` (default `/`), so that a
container whose host is mounted elsewhere, and a test, can point to another tree.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

# What an inference runtime can profit from; the evidence keeps only these of the hundred-odd CPU flags.
_RELEVANT_FEATURES = (
    "sse4_2", "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx_vnni",
    "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8", "asimd", "asimddp", "bf16", "i8mm", "sve",
)  # fmt: skip


def root() -> Path:
    """Return the folder under which `proc/` and `sys/` are read."""
    return Path(os.environ.get("MACHMETER_HOST_ROOT", "/"))


def read(relative: str) -> str | None:
    """Return the text of the kernel's file `relative` (to the root), or None where it cannot be read."""
    try:
        return (root() / relative).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


@dataclass(frozen=True, kw_only=True)
class Cpu:
    """The processor: its name, the instruction sets that matter here, and its cores."""

    model: str = ""
    features: tuple[str, ...] = ()
    physical_cores: int = 0
    logical_cpus: int = 0

    @property
    def has_bf16(self) -> bool:
        """Whether the CPU multiplies bfloat16 natively; without it bf16 is emulated, 40 times slower or worse."""
        return bool({"avx512_bf16", "amx_bf16", "bf16"} & set(self.features))

    @property
    def has_int8(self) -> bool:
        """Whether the CPU has int8 dot products (VNNI, AMX or the Arm equivalents)."""
        return bool({"avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm"} & set(self.features))


def affinity() -> set[int]:
    """Return the logical CPUs this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def cpu() -> Cpu:
    """Return the processor as the kernel describes it, restricted to the CPUs this process may use."""
    model, flags = platform.processor() or platform.machine(), set[str]()
    for line in (read("proc/cpuinfo") or "").splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key == "model name":
            model = value
        elif key in ("flags", "Features"):
            flags = set(value.split())
            break
    allowed = affinity()
    return Cpu(
        model=" ".join(model.split()),
        features=tuple(name for name in _RELEVANT_FEATURES if name in flags),
        physical_cores=max(1, len(physical_cores(allowed))),
        logical_cpus=len(allowed),
    )


def _core(number: int) -> tuple[str, str]:
    """Return the physical core of logical CPU `number`: its package and its number there."""
    topology = f"sys/devices/system/cpu/cpu{number}/topology"
    core = read(f"{topology}/core_id")
    return (read(f"{topology}/physical_package_id") or "0", core) if core is not None else ("unknown", str(number))


def physical_cores(cpus: set[int]) -> set[tuple[str, str]]:
    """Return the distinct cores of the logical CPUs `cpus`: hyper-thread siblings count once."""
    return {_core(number) for number in cpus}


def one_cpu_per_core() -> list[int]:
    """Return the first logical CPU of each physical core that this process may use."""
    first: dict[tuple[str, str], int] = {}
    for number in sorted(affinity()):
        first.setdefault(_core(number), number)
    return sorted(first.values())


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the control groups allow this process. None means no limit was found."""

    cpu_quota: float | None = None  # CPUs
    memory_bytes: int | None = None
    throttled_periods: int | None = None  # how often the quota has stopped the group so far


def _cgroup_folders() -> list[str]:
    """Return the control-group folders of this process, innermost first, relative to the root."""
    folders = []
    for line in (read("proc/self/cgroup") or "").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        wanted = {"": "", "cpu,cpuacct": "cpu,cpuacct", "cpu": "cpu", "memory": "memory"}.get(controllers)
        if wanted is None:
            continue
        base = "/".join(part for part in ("sys/fs/cgroup", wanted) if part)
        parts = [part for part in path.split("/") if part]
        folders += ["/".join([base, *parts[:depth]]) for depth in range(len(parts), -1, -1)]
    return folders or ["sys/fs/cgroup", "sys/fs/cgroup/cpu", "sys/fs/cgroup/memory"]


def limits() -> Limits:
    """Return the tightest CPU and memory limits over this process's control groups (versions 1 and 2)."""
    quotas: list[float] = []
    memories: list[int] = []
    throttled: list[int] = []
    for folder in _cgroup_folders():
        quota, period = [*(read(f"{folder}/cpu.max") or "").split(), "", ""][:2]
        if not quota:
            quota, period = (
                read(f"{folder}/cpu.cfs_quota_us") or "",
                read(f"{folder}/cpu.cfs_period_us") or "",
            )
        if quota.isdigit() and period.isdigit() and int(period):
            quotas.append(int(quota) / int(period))
        for name in ("memory.max", "memory.limit_in_bytes"):
            value = read(f"{folder}/{name}") or ""
            if value.isdigit() and int(value) < 1 << 60:  # version 1 writes a huge number for "no limit"
                memories.append(int(value))
        for line in (read(f"{folder}/cpu.stat") or "").splitlines():
            if line.startswith("nr_throttled "):
                throttled.append(int(line.split()[1]))
    return Limits(
        cpu_quota=min(quotas, default=None),
        memory_bytes=min(memories, default=None),
        throttled_periods=max(throttled, default=None),
    )


def thread_budget() -> int:
    """Return the threads every backend gets: the least of affinity, control-group quota and physical cores.

    A pool sized from the host inside a container with a quota is stopped by the kernel most of the time.
    A quota of 1.5 CPUs gives one thread: a second one would be throttled half of each period.
    """
    processor, quota = cpu(), limits().cpu_quota
    budget = min(processor.logical_cpus, processor.physical_cores)
    return max(1, min(budget, int(quota)) if quota is not None else budget)


def _memory_total() -> int | None:
    for line in (read("proc/meminfo") or "").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None


def memory_bytes() -> int | None:
    """Return the memory this process may use: the machine's, or less where a control group says so."""
    known = [size for size in (_memory_total(), limits().memory_bytes) if size]
    return min(known, default=None)


def last_level_cache_bytes() -> int:
    """Return the size of all last-level caches of the machine together, 0 where the kernel does not tell."""
    sizes: dict[int, dict[str, int]] = {}  # by level, then by the CPUs that share a cache
    for folder in (root() / "sys/devices/system/cpu").glob("cpu[0-9]*/cache/index*"):
        relative = folder.relative_to(root())
        level, size = read(f"{relative}/level") or "", read(f"{relative}/size") or ""
        if level.isdigit() and size.endswith("K") and size[:-1].isdigit():
            sharing = read(f"{relative}/shared_cpu_list") or folder.parts[-3]
            sizes.setdefault(int(level), {})[sharing] = int(size[:-1]) * 1024
    return sum(sizes[max(sizes)].values()) if sizes else 0


@dataclass(frozen=True, kw_only=True)
class HostFacts:
    """What a reader needs to know of the machine to compare its numbers with another's. None: it does not tell."""

    cpu: Cpu = Cpu()
    limits: Limits = Limits()
    affinity: tuple[int, ...] = ()  # the logical CPUs that the process may use
    thread_budget: int | None = None
    memory_bytes: int | None = None  # of the machine, whatever a control group allows
    kernel: str = ""
    system: str = ""
    architecture: str = ""
    governor: str | None = None
    turbo_disabled: str | None = None
    transparent_huge_pages: str | None = None
    virtualized: bool | None = None


def facts() -> HostFacts:
    """Return what this machine is, as far as the kernel tells."""
    cpufreq = "sys/devices/system/cpu/cpu0/cpufreq"
    return HostFacts(
        cpu=cpu(),
        limits=limits(),
        affinity=tuple(sorted(affinity())),
        thread_budget=thread_budget(),
        memory_bytes=_memory_total(),
        kernel=platform.release(),
        system=platform.system(),
        architecture=platform.machine(),
        governor=read(f"{cpufreq}/scaling_governor"),
        turbo_disabled=read("sys/devices/system/cpu/intel_pstate/no_turbo"),
        transparent_huge_pages=transparent_huge_pages(),
        virtualized=" hypervisor " in f" {read('proc/cpuinfo') or ''} ".replace("\n", " "),
    )


def busy_seconds(cpus: set[int]) -> float | None:
    """Return the time that `cpus` were busy since the machine started, with what a hypervisor took from them."""
    ticks, found = 0, False
    for line in (read("proc/stat") or "").splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in cpus:
            user, nice, system, _, _, interrupts, soft, stolen = (int(field) for field in (fields + ["0"] * 8)[:8])
            ticks, found = ticks + user + nice + system + interrupts + soft + stolen, True
    return ticks / os.sysconf("SC_CLK_TCK") if found else None


def transparent_huge_pages() -> str | None:
    """Return when the kernel gives huge pages, such as "always [madvise] never", or None where it does not tell."""
    return read("sys/kernel/mm/transparent_hugepage/enabled")


# Upper bounds per core and clock cycle: two 512-bit multiply-add units, or the AMX tile unit.
_OPERATIONS_PER_CYCLE = {"fp32": 64, "bf16": 128, "int8": 256}
_OPERATIONS_PER_CYCLE_AMX = {"fp32": 64, "bf16": 2048, "int8": 4096}
_FASTEST_CLOCK_HZ = 6.5e9  # no CPU of today runs faster; the bound must never accuse a real measurement


def least_seconds(operations: float, precision: str) -> float:
    """Return a time below which nobody can do `operations` multiplications and additions on this CPU.

    It is a generous bound (every core of the machine, the fastest clock there is, two full-width units),
    meant to catch a session that returns before its work is done, not to judge efficiency.
    """
    processor = cpu()
    rates = _OPERATIONS_PER_CYCLE_AMX if "amx_tile" in processor.features else _OPERATIONS_PER_CYCLE
    kind = "int8" if precision.startswith("int8") else "bf16" if precision in ("bf16", "fp16") else "fp32"
    return operations / (processor.logical_cpus * _FASTEST_CLOCK_HZ * rates[kind])
