"""Whether other programs had this process's CPUs while something was timed.

A shared machine makes a version or a commit look slow that is not. The kernel counts the time that each CPU was
busy, and that a hypervisor took from it; what this process did not use of it, others did.
"""

from __future__ import annotations

import resource
import time

from machmeter.machine import host

# Of the CPUs' time. asv, which waits, and the system itself stay below 2 %.
TOO_MUCH = 0.10

SHARE = "disturbed_share"  # under this name a record keeps it
MARK = "disturbed: "  # and so begins every note about it


class Watch:
    """Looks at the CPUs from its making on."""

    def __init__(self) -> None:
        self._cpus = host.affinity()
        self._busy, self._own, self._start = host.busy_seconds(self._cpus), time.process_time(), time.perf_counter()
        self._children = _children_seconds()

    def share_around(self) -> float | None:
        """Return what `share` does where our children worked: those that ended, with theirs, are no others."""
        return self.share(_children_seconds() - self._children)

    def share(self, children: float = 0.0) -> float | None:
        """Return the share of the CPUs' time that others had so far, or None where the kernel does not tell.

        `children` is the CPU time, in seconds, of processes that are this one's and not others.
        """
        now, wall = host.busy_seconds(self._cpus), time.perf_counter() - self._start
        if self._busy is None or now is None or wall <= 0.0:
            return None
        own = time.process_time() - self._own + children
        return max(0.0, now - self._busy - own) / (wall * len(self._cpus))


def _children_seconds() -> float:
    """Return the CPU time of this process's children that have ended and were waited for, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def known_quiet(share: float | None) -> bool:
    """Return whether it is on record that nobody disturbed a measurement: what nobody looked at is not."""
    return share is not None and note(share) is None


def note(share: float | None) -> str | None:
    """Return what to say of a measurement during which others had this share of the CPUs, None if it was not much."""
    if share is None or share <= TOO_MUCH:
        return None
    return f"{MARK}other programs had {100 * share:.0f} % of the CPUs while it was timed"
