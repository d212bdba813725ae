"""What the kernel tells of this process and of others: mapped libraries, memory, identity."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from machmeter.json_shape import optional

_ALLOCATORS = ("tcmalloc", "jemalloc", "mimalloc")


def _mapped_library(*names: str) -> str | None:
    """Return the path of the first library mapped into this process whose name starts with one of `names`."""
    try:
        mapped = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    paths = (fields[5] for line in mapped.splitlines() if len(fields := line.split(maxsplit=5)) == 6)
    return next((path for path in paths if Path(path).name.startswith(tuple(f"lib{name}" for name in names))), None)


def allocator_library() -> str | None:
    """Return the path of the memory allocator that was preloaded into this process, or None."""
    return _mapped_library(*_ALLOCATORS)


def allocator() -> str:
    """Return which memory allocator is mapped into this process: the C library's unless one was preloaded."""
    library = allocator_library()
    return next((name for name in _ALLOCATORS if library and f"/lib{name}" in library), "system")


def openmp_library() -> str | None:
    """Return the path of the OpenMP runtime mapped into this process, or None."""
    return _mapped_library("iomp5", "gomp", "omp")


def huge_page_bytes() -> int | None:
    """Return how much of this process's memory lies in anonymous huge pages, or None where it is not told."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("AnonHugePages:")), None)


@dataclass(frozen=True, kw_only=True)
class MemoryBinding:
    """Whether a process's memory is bound to NUMA nodes, and why not where it is not."""

    bound: bool = False
    policy: str | None = None  # the kernel's word, such as "bind:0"
    why: str | None = optional()


def memory_binding() -> MemoryBinding:
    """Return whether this process's memory is bound to NUMA nodes."""
    try:
        policies = Path("/proc/self/numa_maps").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:2]
    except OSError:
        policies = []
    policy = policies[0] if policies else None
    if policy and policy.startswith("bind"):
        return MemoryBinding(bound=True, policy=policy)
    if policy is None:
        return MemoryBinding(why="the kernel has no NUMA support")
    why = (
        "nothing asked for it" if shutil.which("numactl") else "numactl is not installed (Debian: apt install numactl)"
    )
    return MemoryBinding(policy=policy, why=why)


def command_line(pid: int) -> list[str]:
    """Return the command line of process `pid`, nothing where there is none to read."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return []


def peak_resident_bytes() -> int | None:
    """Return the highest resident memory of this process so far (VmHWM), or None where it is not told."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def _process_status(pid: int) -> list[str]:
    """Return the fields of /proc/<pid>/stat from the state on, or nothing where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return []


def is_running(pid: int, identity: str) -> bool:
    """Return whether the process that `process_identity` called `identity` still runs: a zombie does not."""
    return process_identity(pid) == identity and _process_status(pid)[:1] not in ([], ["Z"], ["X"])


def process_identity(pid: int) -> str:
    """Return a name for process `pid` that no other process had or will have on this machine."""
    started = (_process_status(pid)[19:20] or ["unknown"])[0]
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        boot = "unknown"
    return hashlib.sha256(f"{boot} {pid} {started}".encode()).hexdigest()[:16]
