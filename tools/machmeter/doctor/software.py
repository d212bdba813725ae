"""Checks of the programs and libraries that measuring needs."""

from __future__ import annotations

from machmeter.doctor.finding import Finding, judged
from machmeter.doctor.probe import Surroundings

# What each program is for, and Debian's package.
PROGRAMS = {
    "git": ("asv builds the commits it measures", "git"),
    "g++": ("inductor compiles with it", "g++"),
    "numactl": ("without it a launcher binds cores but no memory, and does not say so", "numactl"),
}
ALLOCATORS = {"tcmalloc": "libtcmalloc-minimal4", "jemalloc": "libjemalloc2"}


def programs(around: Surroundings) -> list[Finding]:
    """Check that the programs are there."""
    found = []
    for name, (why, package) in PROGRAMS.items():
        version = around.programs.get(name)
        do = f"sudo apt install {package}"
        found.append(judged(name, version is not None, version or "not installed", do=do, why=why))
    return found


def allocators(around: Surroundings) -> list[Finding]:
    """Check that the allocators of the tuning ladder can be preloaded."""
    return [
        judged(
            name,
            bool(path := around.allocators.get(name)),
            path or "not installed",
            do=f"sudo apt install {package}",
            why="its rungs of the tuning ladder are n/a without it",
        )
        for name, package in ALLOCATORS.items()
    ]


def python(around: Surroundings) -> Finding:
    """Check the version of Python."""
    version = around.programs.get("python") or "unknown"
    parts = version.split(".")
    good = len(parts) >= 2 and parts[0].isdigit() and parts[1].isdigit() and (int(parts[0]), int(parts[1])) >= (3, 11)
    return judged("python", good, version, do="sudo apt install python3.11-venv", why="machmeter needs 3.11 or newer")


def asv(around: Surroundings) -> Finding:
    """Check that asv is the version that the project pins."""
    version, pinned = around.programs.get("asv"), around.pinned_asv
    found = (version or "not installed") + (f", pinned is {pinned}" if pinned and version != pinned else "")
    good = version is not None and pinned in (None, version)
    do = f"make tools (or pip install asv=={pinned or '0.6.6'})"
    return judged("asv", good, found, do=do, why="another version may write other files, or time in another way")


def store(around: Surroundings) -> Finding:
    """Check that artifacts can be kept."""
    return judged(
        "artifact store",
        around.store_problem is None,
        around.store_problem or str(around.store),
        do="make it writable for this user, or set MACHMETER_STORE to a folder that is",
        why="nothing can be exported, quantized or compiled without it",
    )


def machine(around: Surroundings, runner: str = "NAME") -> Finding:
    """Check that asv would not ask who this machine is."""
    return judged(
        "known to asv",
        around.machine is not None,
        around.machine or "asv would ask who this machine is",
        do=f"machmeter runners name {runner}, or asv machine --yes",
        why="a job has nobody who could answer, and a machine that is named by its host changes its name with it",
    )
