"""Checks of limits and of what else runs."""

from __future__ import annotations

from machmeter.doctor.finding import Finding, judged, unknown
from machmeter.doctor.probe import Surroundings
from machmeter.machine import disturbance, host

LEAST_DISK = 20_000_000_000  # an environment has 6 GB, the artifacts of a model 1 GB


def quota() -> Finding:
    """Check that no control group stops this process after its share of each period."""
    why = "the kernel stops every thread for the rest of the period: some calls take up to 100 ms longer"
    if host.read("proc/self/cgroup") is None:
        return unknown("CPU quota", "/proc/self/cgroup cannot be read", why)
    if not (host.root() / "sys/fs/cgroup").is_dir():
        return unknown("CPU quota", "/sys/fs/cgroup is not there, so limits are not to be seen", why)
    limits = host.limits()
    times = limits.throttled_periods
    if limits.cpu_quota is None and not times:
        return Finding(check="CPU quota", state="ok", found="none")
    found = f"{limits.cpu_quota:g} CPUs" if limits.cpu_quota is not None else "none now"
    found += f", it stopped us in {times} periods" if times else ""
    do = "take the quota off and give whole CPUs instead (a cpuset; for Kubernetes the static CPU manager)"
    return judged("CPU quota", False, found, do=do, why=why)


def threads(expected: int | None) -> Finding:
    """Check that backends get the number of threads that the list of machines says."""
    budget = host.thread_budget()
    if expected is None:
        return Finding(check="threads", state="ok", found=f"{budget} for every backend")
    return judged(
        "threads",
        budget == expected,
        f"{budget}, and {expected} are expected" if budget != expected else str(budget),
        do="free the CPUs that are missing (affinity, control group, hyper-threads), or correct .github/runners.toml",
        why="results with another number of threads are not comparable, and would be filed under the same name",
    )


def load(around: Surroundings) -> Finding:
    """Check that nobody else uses the CPUs now."""
    why = "what others use is missing from the numbers, and different each time"
    if around.busy_share is None:
        return unknown("load", "the kernel does not say who used the CPUs", why)
    good = around.busy_share <= disturbance.TOO_MUCH
    found = f"others had {100 * around.busy_share:.0f} % of the CPUs"
    busiest = f" ({', '.join(around.busiest)})" if around.busiest and not good else ""
    return judged("load", good, found + busiest, do="end them, or wait until they have ended", why=why)


def watchdog() -> Finding:
    """Check that no periodic interrupt of the kernel's own debugging hits the cores."""
    why = "it interrupts every core by a performance counter, all the time"
    value = host.read("proc/sys/kernel/nmi_watchdog")
    if value is None:
        return unknown("watchdog", "the kernel does not tell", why)
    do = "sudo sysctl -w kernel.nmi_watchdog=0"
    return judged("watchdog", value == "0", "off" if value == "0" else "on", do=do, why=why)


def disk(around: Surroundings) -> list[Finding]:
    """Check that environments, results and artifacts have room."""
    found = []
    for check, free in (("disk for environments", around.project_free), ("disk for artifacts", around.store_free)):
        why = f"below {LEAST_DISK // 1_000_000_000} GB a run ends half-way"
        if free is None:
            found.append(unknown(check, "the file system does not tell", why))
        else:
            do = "machmeter's own: rm -r .asv/env ~/.cache/machmeter (both are made again)"
            found.append(judged(check, free >= LEAST_DISK, f"{free / 1e9:.0f} GB free", do=do, why=why))
    return found
