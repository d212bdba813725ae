"""How the processes of a configuration are started: allocator, huge pages, launcher, instances.

Here is what a configuration asks for, and the command a person types for it. `measure/starting.py` starts the
processes and compares what each says of itself with the request: nothing is believed because it was asked for.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from machmeter.errors import BadSetting
from machmeter.machine.process import MemoryBinding

Allocator = Literal["system", "tcmalloc", "jemalloc"]
Launcher = Literal["none", "run_cpu"]

RUN_CPU = "torch.backends.xeon.run_cpu"

# Names to look for, the best first; how Debian calls the package; what makes it fit for long-lived tensors.
ALLOCATORS: Mapping[str, tuple[tuple[str, ...], str, Mapping[str, str]]] = {
    "tcmalloc": (("tcmalloc", "tcmalloc_minimal"), "libtcmalloc-minimal4", {}),
    "jemalloc": (
        ("jemalloc",),
        "libjemalloc2",
        # Returning freed pages to the kernel is what costs a forward call most; big blocks are kept as well.
        {"MALLOC_CONF": "oversize_threshold:1,background_thread:true,metadata_thp:auto,dirty_decay_ms:-1"},
    ),
}
# Read by torch's own CPU allocator. NumPy asks for huge pages by itself: without its own there is proof of torch's.
HUGE_PAGES = {"THP_MEM_ALLOC_ENABLE": "1", "NUMPY_MADVISE_HUGEPAGE": "0"}


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How processes are started. The default is what a plain `python script.py` gives."""

    allocator: Allocator = "system"
    huge_pages: bool = False
    launcher: Launcher = "none"
    instances: int = 1

    def __post_init__(self) -> None:
        for name, known in (("allocator", ("system", *ALLOCATORS)), ("launcher", ("none", "run_cpu"))):
            if getattr(self, name) not in known:
                raise BadSetting(f"{name} is {getattr(self, name)!r}: choose from {', '.join(known)}")
        if not isinstance(self.instances, int) or isinstance(self.instances, bool) or self.instances < 1:
            raise BadSetting(f"instances is {self.instances!r}: it must be a whole number from 1 on")
        if not isinstance(self.huge_pages, bool):
            raise BadSetting(f"huge_pages is {self.huge_pages!r}: it must be true or false")


def shell(launch: Launch, cpus: Sequence[Sequence[int]], variables: Mapping[str, str]) -> str:
    """Return the shell command that starts `python program.py` as processes were started, "" where that is all.

    `cpus` are those of each instance, `variables` the environment that they told of.
    """
    program = "python program.py"
    names: list[str] = []
    if launch.allocator != "system":
        names += ["LD_PRELOAD", *ALLOCATORS[launch.allocator][2]]
    if launch.huge_pages:
        names += HUGE_PAGES
    prefix = "".join(f"{name}={shlex.quote(variables[name])} " for name in names if name in variables)
    if launch.launcher == "run_cpu":
        listed = ",".join(str(cpu) for share in cpus for cpu in share)
        options = f"--ninstances {launch.instances} --ncores-per-instance {len(cpus[0])} --core-list {listed}"
        return f"{prefix}python -m {RUN_CPU} {options} --use-default-allocator program.py"
    if launch.instances > 1:
        bound = [f"{prefix}taskset -c {','.join(map(str, share))} {program}" for share in cpus]
        return " & ".join(bound)
    return f"{prefix}{program}" if prefix else ""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What a process says of how it was started. None: the kernel does not tell."""

    pid: int | None = None
    allocator: str = ""
    allocator_library: str | None = None
    huge_page_bytes: int | None = None
    launcher: str = ""
    cpus: tuple[int, ...] = ()
    physical_cores: tuple[tuple[str, str], ...] = ()  # each by its package and its number there
    memory_binding: MemoryBinding = MemoryBinding()
    openmp: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)  # of the environment, those that matter
