"""What the doctor needs beside the kernel's files: programs, libraries, disks, and who uses the CPUs now."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from machmeter import asv_names
from machmeter.machine import disturbance, host
from machmeter.measure import starting
from machmeter.workload.artifacts import Store

LOOK_SECONDS = 1.0  # long enough to see who is busy
_VERSION = re.compile(r"\d+(\.\d+)+")


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What was seen. A version, a path or a share is None where there is none."""

    programs: Mapping[str, str | None] = field(default_factory=dict)
    pinned_asv: str | None = None
    allocators: Mapping[str, str | None] = field(default_factory=dict)
    store: Path = Path("store")
    store_problem: str | None = None
    store_free: int | None = None
    project_free: int | None = None
    machine: str | None = None  # the name under which asv would file results without asking
    busy_share: float | None = None  # of our CPUs, by others
    busiest: tuple[str, ...] = ()
    gpus: list[Mapping[str, str]] | None = field(default_factory=list)
    gpu_processes: list[str] | None = field(default_factory=list)
    gpu_reason: str = ""


def look(project: Path) -> Surroundings:
    """Look around on this machine, for a second."""
    store = Store().root
    share, busiest = _busy()
    gpus, processes, reason = _gpus()
    return Surroundings(
        programs={
            "git": _version("git", "--version"),
            "g++": _version("g++", "--version"),
            "numactl": shutil.which("numactl"),
            "python": platform.python_version(),
            "asv": _distribution("asv"),
        },
        pinned_asv=_pinned(project, "asv"),
        allocators={name: starting.find_library(name) for name in ("tcmalloc", "jemalloc")},
        store=store,
        store_problem=_problem(store),
        store_free=_free(store),
        project_free=_free(project),
        machine=asv_names.machine_name() if asv_names.knows_machine() else None,
        busy_share=share,
        busiest=busiest,
        gpus=gpus,
        gpu_processes=processes,
        gpu_reason=reason,
    )


def _output(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _version(*command: str) -> str | None:
    found = _VERSION.search(_output(*command) or "")
    return found.group() if found else None


def _distribution(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _pinned(project: Path, name: str) -> str | None:
    with suppress(OSError):
        for line in (project / "requirements/tools.txt").read_text(encoding="utf-8").splitlines():
            if line.startswith(f"{name}=="):
                return line.split("==")[1].strip()
    return None


def _existing(folder: Path) -> Path:
    """Return `folder`, or the first of its parents that exists."""
    return next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))


def _problem(folder: Path) -> str | None:
    """Return why nothing can be written under `folder`, or None."""
    try:
        with tempfile.TemporaryFile(dir=_existing(folder)):
            return None
    except OSError as error:
        return f"{folder}: {error.strerror or error}"


def _free(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(_existing(folder)).free
    except OSError:
        return None


def _busy() -> tuple[float | None, tuple[str, ...]]:
    """Return the share of our CPUs that others have now, and the names of those who use most of them."""
    watch, before = disturbance.Watch(), dict(_processor_ticks())
    time.sleep(LOOK_SECONDS)
    share = watch.share()
    used = sorted(((ticks - before.get(key, ticks), key) for key, ticks in _processor_ticks()), reverse=True)
    least = 0.05 * LOOK_SECONDS * os.sysconf("SC_CLK_TCK")
    return share, tuple(name for ticks, (_, name) in used[:3] if ticks > least)


def _processor_ticks() -> Iterator[tuple[tuple[int, str], int]]:
    """Yield the processor time of each process but this one, by its number and name."""
    for folder in (host.root() / "proc").glob("[0-9]*"):
        head, _, rest = (host.read(f"proc/{folder.name}/stat") or "").rpartition(")")
        fields: Sequence[str] = rest.split()
        if len(fields) > 12 and int(folder.name) != os.getpid():
            yield (int(folder.name), head.partition("(")[2]), int(fields[11]) + int(fields[12])


def _gpus() -> tuple[list[Mapping[str, str]] | None, list[str] | None, str]:
    """Return the GPUs, their processes and why the driver did not answer."""
    from machmeter.doctor import gpus as gpus_module

    if shutil.which(gpus_module.QUERY[0]) is None:
        if (host.root() / "proc/driver/nvidia").exists():
            return None, None, "there is a driver, and nvidia-smi is not installed"
        return [], [], ""
    answer = _output(*gpus_module.QUERY)
    if answer is None:
        return None, None, "nvidia-smi failed: run it to see why"
    processes = _output(*gpus_module.PROCESSES)
    lines = None if processes is None else [line for line in processes.splitlines() if line.strip()]
    return list(gpus_module.parse(answer)), lines, ""
