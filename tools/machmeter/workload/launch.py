"""How the processes of a configuration are started: allocator, huge pages, launcher, instances.

Nothing is believed because it was asked for: what a started process says of itself (`proof`) is compared
with the request (`falsehood`). Libraries are found by name through the system's loader, never at a fixed path.
"""

from __future__ import annotations

import ctypes.util
import functools
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from machmeter.errors import BadSetting, Unsupported
from machmeter.machine import host

Allocator = Literal["system", "tcmalloc", "jemalloc"]
Launcher = Literal["none", "run_cpu"]

RUN_CPU = "torch.backends.xeon.run_cpu"

# Names to look for, the best first; how Debian calls the package; what makes it fit for long-lived tensors.
_ALLOCATORS: Mapping[str, tuple[tuple[str, ...], str, Mapping[str, str]]] = {
    "tcmalloc": (("tcmalloc", "tcmalloc_minimal"), "libtcmalloc-minimal4", {}),
    "jemalloc": (
        ("jemalloc",),
        "libjemalloc2",
        # Returning freed pages to the kernel is what costs a forward call most; big blocks are kept as well.
        {"MALLOC_CONF": "oversize_threshold:1,background_thread:true,metadata_thp:auto,dirty_decay_ms:-1"},
    ),
}
# Read by torch's own CPU allocator. NumPy asks for huge pages by itself: without its own there is proof of torch's.
_HUGE_PAGES = {"THP_MEM_ALLOC_ENABLE": "1", "NUMPY_MADVISE_HUGEPAGE": "0"}


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How processes are started. The default is what a plain `python script.py` gives."""

    allocator: Allocator = "system"
    huge_pages: bool = False
    launcher: Launcher = "none"
    instances: int = 1

    def __post_init__(self) -> None:
        for name, known in (("allocator", ("system", *_ALLOCATORS)), ("launcher", ("none", "run_cpu"))):
            if getattr(self, name) not in known:
                raise BadSetting(f"{name} is {getattr(self, name)!r}: choose from {', '.join(known)}")
        if not isinstance(self.instances, int) or isinstance(self.instances, bool) or self.instances < 1:
            raise BadSetting(f"instances is {self.instances!r}: it must be a whole number from 1 on")
        if not isinstance(self.huge_pages, bool):
            raise BadSetting(f"huge_pages is {self.huge_pages!r}: it must be true or false")


@functools.cache
def find_library(allocator: str) -> str | None:
    """Return the path of the library to preload for `allocator`, or None where there is none that can be.

    The system's loader is asked for it by name, in a process that preloads it: that resolves the name to the
    path that run_cpu insists on (it drops a name from LD_PRELOAD without a word), and tries the library.
    """
    for name in _ALLOCATORS[allocator][0]:
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
        return f"{launch.allocator} is not installed (Debian: apt install {_ALLOCATORS[launch.allocator][1]})"
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
        variables |= _ALLOCATORS[launch.allocator][2]
    if launch.huge_pages:
        variables |= _HUGE_PAGES
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


def shell(launch: Launch, cpus: Sequence[Sequence[int]], variables: Mapping[str, str]) -> str:
    """Return the shell command that starts `python program.py` as processes were started, "" where that is all.

    `cpus` are those of each instance, `variables` the environment that they told of.
    """
    program = "python program.py"
    names: list[str] = []
    if launch.allocator != "system":
        names += ["LD_PRELOAD", *_ALLOCATORS[launch.allocator][2]]
    if launch.huge_pages:
        names += _HUGE_PAGES
    prefix = "".join(f"{name}={shlex.quote(variables[name])} " for name in names if name in variables)
    if launch.launcher == "run_cpu":
        listed = ",".join(str(cpu) for share in cpus for cpu in share)
        options = f"--ninstances {launch.instances} --ncores-per-instance {len(cpus[0])} --core-list {listed}"
        return f"{prefix}python -m {RUN_CPU} {options} --use-default-allocator program.py"
    if launch.instances > 1:
        bound = [f"{prefix}taskset -c {','.join(map(str, share))} {program}" for share in cpus]
        return " & ".join(bound)
    return f"{prefix}{program}" if prefix else ""


def proof() -> dict[str, Any]:
    """Return what this process can say of how it was started."""
    return {
        "pid": os.getpid(),
        "allocator": host.allocator(),
        "allocator_library": host.allocator_library(),
        "huge_page_bytes": host.huge_page_bytes(),
        "launcher": "run_cpu" if RUN_CPU in host.command_line(os.getppid()) else "none",
        "cpus": sorted(host.affinity()),
        "physical_cores": [list(core) for core in sorted(host.physical_cores(host.affinity()))],
        "memory_binding": host.memory_binding(),
        "openmp": host.openmp_library(),
        "variables": {
            name: os.environ[name]
            for name in ("LD_PRELOAD", "MALLOC_CONF", "THP_MEM_ALLOC_ENABLE", "OMP_NUM_THREADS", "KMP_AFFINITY")
            if name in os.environ
        },
    }


def falsehood(launch: Launch, proofs: Sequence[Mapping[str, Any]]) -> str | None:
    """Return why processes with these `proofs` were not started as `launch` says, or None where they were."""
    for told in proofs:
        if told["allocator"] != launch.allocator:
            return f"asked for {launch.allocator} and {told['allocator']} is mapped"
        if launch.huge_pages and not told["huge_page_bytes"]:
            return "asked for huge pages and none is in use (AnonHugePages is 0)"
        if told["launcher"] != launch.launcher:
            return f"asked for launcher {launch.launcher} and was started by {told['launcher']}"
    taken: set[tuple[Any, ...]] = set()
    for told in proofs if launch.instances > 1 else ():
        cores = {tuple(core) for core in told["physical_cores"]}
        if not cores or cores & taken:
            return f"two instances share a physical core: {[item['cpus'] for item in proofs]}"
        taken |= cores
    return None
