"""Is this machine fit to measure? Each check says what it found, what to change and why.

The kernel's files are read through `machmeter.machine.host`, so from any root; everything else is in `Surroundings`.
`examine` only looks at those two.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import Any

from machmeter.doctor import gpus, memory, processor, software, system
from machmeter.doctor.finding import Finding, State
from machmeter.doctor.probe import Surroundings, look

__all__ = ["NAMES", "OPEN", "Finding", "Surroundings", "as_json", "as_text", "examine", "look"]

OPEN: tuple[State, ...] = ("change", "unknown")  # what `--strict` does not let pass
_NARROWEST = 60  # columns: less leaves no room beside the names
_ORDER: tuple[State, ...] = ("change", "unknown", "accepted", "ok", "n/a")

# Every check, in the order of the output. The list of machines and `--accept` use these names.
NAMES = (
    "bare metal", "governor", "turbo", "hyper-threads", "isolated cores", "clock source",
    "huge pages", "reserved huge pages", "NUMA balancing", "swap", "address layout", "free memory",
    "CPU quota", "threads", "load", "watchdog", "disk for environments", "disk for artifacts",
    "git", "g++", "numactl", "tcmalloc", "jemalloc", "python", "asv", "artifact store", "known to asv",
    *gpus.CHECKS,
)  # fmt: skip


def examine(
    around: Surroundings, *, threads: int | None = None, accepted: frozenset[str] = frozenset()
) -> list[Finding]:
    """Return what every check found, in the order of NAMES; what is `accepted` is said to be."""
    found = [
        processor.virtual(),
        processor.governor(),
        processor.turbo(),
        processor.siblings(),
        processor.isolation(),
        processor.clock(),
        memory.transparent_pages(),
        memory.reserved_pages(),
        memory.numa_balancing(),
        memory.swap(),
        memory.layout(),
        memory.free_memory(),
        system.quota(),
        system.threads(threads),
        system.load(around),
        system.watchdog(),
        *system.disk(around),
        *software.programs(around),
        *software.allocators(around),
        software.python(around),
        software.asv(around),
        software.store(around),
        software.machine(around),
        *gpus.examine(around.gpus, around.gpu_processes, around.gpu_reason),
    ]
    return [
        dataclasses.replace(item, state="accepted") if item.state in OPEN and item.check in accepted else item
        for item in found
    ]


def as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the findings as plain data; `ready` is what `--strict` judges by."""
    return {
        "ready": all(item.state not in OPEN for item in findings),
        "checks": [dataclasses.asdict(item) for item in findings],
    }


def as_text(findings: Sequence[Finding], width: int = 0) -> str:
    """Return the findings for a reader: what is to be changed first, with the command and the reason.

    Lines are wrapped at `width` columns, or at 60 where that is less; 0 wraps none. A command stays on one line: it
    is there to be copied.
    """
    lines: list[str] = []
    for item in sorted(findings, key=lambda item: _ORDER.index(item.state)):
        lines += _wrapped(f"{item.state:<8} {item.check:<22} ", item.found, width)
        if item.state in OPEN and item.do:
            lines += _wrapped(f"{'':<9}do:  ", item.do, 0 if "sudo " in item.do else width)
        if item.state in OPEN and item.why:
            lines += _wrapped(f"{'':<9}why: ", item.why, width)
    counts = {state: sum(item.state == state for item in findings) for state in _ORDER}
    lines.append(", ".join(f"{count} {state}" for state, count in counts.items() if count))
    return "\n".join(lines)


def _wrapped(before: str, text: str, width: int) -> list[str]:
    """Return `text` after `before`, in lines of at most `width` columns of which all but the first are indented."""
    if not width:
        return [(before + text).rstrip()]
    room = max(width, _NARROWEST) - len(before)
    first, *more = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    return [(before + first).rstrip(), *(" " * len(before) + line for line in more)]
