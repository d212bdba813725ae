"""Starting the processes of a configuration, and the proof that they were started so."""

from __future__ import annotations

import ctypes.util
import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from machmeter.errors import Unsupported
from machmeter.machine import host, process
from machmeter.workload.launch import ALLOCATORS, HUGE_PAGES, RUN_CPU, Launch, Proof


@functools.cache
def find_library(allocator: str) -> str | None:
    """Return the path of the library to preload for `allocator`, or None where there is none that can be.

    The system's loader is asked for it by name, in a process that preloads it: that resolves the name to the
    path that run_cpu insists on (it drops a name from LD_PRELOAD without a word), and tries the library.
    """
    for name in ALLOCATORS[allocator][0]:
        found = ctypes.util.find_library(name)
        own = [str(file) for file in sorted(Path(sys.prefix, "lib").glob(f"lib{name}.so*"))]  # as conda has them
        for candidate in [found, *own] if found else own:
            command = [sys.executable, "-S", "-c", "print(open('/proc/self/maps').read())"]
            environment = {**os.environ, "LD_PRELOAD": candidate}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if path := next((line.split()[-1] for line in done.stdout.splitlines() if f"/lib{name}." in line), None):
                return path
    return None


def unsupported(launch: Launch) -> str | None:
    """Return why processes cannot be started like this here, or None where it can be tried."""
    if launch.allocator != "system" and find_library(launch.allocator) is None:
        return f"{launch.allocator} is not installed (Debian: apt install {ALLOCATORS[launch.allocator][1]})"
    if launch.huge_pages and "[never]" in (host.transparent_huge_pages() or "[never]"):
        return "the kernel gives no huge pages (/sys/kernel/mm/transparent_hugepage/enabled is 'never')"
    if launch.launcher == "run_cpu":
        if importlib.util.find_spec("torch") is None:
            return "not installed: torch, whose launcher run_cpu is"
        if not (shutil.which("numactl") or shutil.which("taskset")):
            return "run_cpu needs numactl or taskset to bind cores (Debian: apt install numactl)"
    cores, logical = host.cpu().physical_cores, host.cpu().logical_cpus
    if launch.instances > cores:
        return (
            f"{launch.instances} instances need {launch.instances} physical cores, and this process may use {cores} "
            f"({logical} logical CPUs; hyper-thread siblings are not cores)"
        )
    return None


def environment(launch: Launch, cores_per_instance: int) -> dict[str, str]:
    """Return the environment of the processes: this one's, and what `launch` adds. Raises Unsupported."""
    if reason := unsupported(launch):
        raise Unsupported(reason)
    variables = dict(os.environ)
    if launch.allocator != "system":
        library = find_library(launch.allocator)
        variables["LD_PRELOAD"] = ":".join(part for part in (library, os.environ.get("LD_PRELOAD")) if part)
        variables |= ALLOCATORS[launch.allocator][2]
    if launch.huge_pages:
        variables |= HUGE_PAGES
    if launch.launcher == "none" and launch.instances > 1:
        variables["OMP_NUM_THREADS"] = str(cores_per_instance)
    return variables


def shares(launch: Launch) -> list[list[int]]:
    """Return the logical CPUs of each instance: one for each physical core, evenly, what remains left idle.

    A single instance keeps every CPU that this process may use.
    """
    if launch.instances == 1:
        return [sorted(host.affinity())]
    cores = host.one_cpu_per_core()
    each = len(cores) // launch.instances
    return [cores[number * each : (number + 1) * each] for number in range(launch.instances)]


def commands(launch: Launch, worker: Sequence[str]) -> list[tuple[list[str], list[int] | None]]:
    """Return the command lines that start `worker`, each with the CPUs to bind it to, None where it binds itself.

    run_cpu asks `lscpu` for the host's cores, whatever this process may use: it is told which ones.
    """
    cpus = shares(launch)
    if launch.launcher == "none":
        return [([*worker], share if launch.instances > 1 else None) for share in cpus]
    cores = host.one_cpu_per_core() if launch.instances == 1 else [cpu for share in cpus for cpu in share]
    arguments = ["--ninstances", str(launch.instances), "--ncores-per-instance", str(len(cores) // launch.instances)]
    arguments += ["--core-list", ",".join(map(str, cores)), "--use-default-allocator"]
    return [([sys.executable, "-m", RUN_CPU, *arguments, "--no-python", *worker], None)]


def proof() -> Proof:
    """Return what this process can say of how it was started."""
    return Proof(
        pid=os.getpid(),
        allocator=process.allocator(),
        allocator_library=process.allocator_library(),
        huge_page_bytes=process.huge_page_bytes(),
        launcher="run_cpu" if RUN_CPU in process.command_line(os.getppid()) else "none",
        cpus=tuple(sorted(host.affinity())),
        physical_cores=tuple(sorted(host.physical_cores(host.affinity()))),
        memory_binding=process.memory_binding(),
        openmp=process.openmp_library(),
        variables={
            name: os.environ[name]
            for name in ("LD_PRELOAD", "MALLOC_CONF", "THP_MEM_ALLOC_ENABLE", "OMP_NUM_THREADS", "KMP_AFFINITY")
            if name in os.environ
        },
    )


def falsehood(launch: Launch, proofs: Sequence[Proof]) -> str | None:
    """Return why processes with these `proofs` were not started as `launch` says, or None where they were."""
    for instance in proofs:
        if instance.allocator != launch.allocator:
            return f"asked for {launch.allocator} and {instance.allocator} is mapped"
        if launch.huge_pages and not instance.huge_page_bytes:
            return "asked for huge pages and none is in use (AnonHugePages is 0)"
        if instance.launcher != launch.launcher:
            return f"asked for launcher {launch.launcher} and was started by {instance.launcher}"
    taken: set[tuple[str, str]] = set()
    for instance in proofs if launch.instances > 1 else ():
        cores = set(instance.physical_cores)
        if not cores or cores & taken:
            return f"two instances share a physical core: {[list(item.cpus) for item in proofs]}"
        taken |= cores
    return None
