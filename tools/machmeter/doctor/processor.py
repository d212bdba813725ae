"""Checks of the processor: clock rates, hyper-threads, and who else may use the cores."""

from __future__ import annotations

from machmeter.doctor.finding import Finding, judged, numbers, unknown
from machmeter.machine import host

_CPU = "sys/devices/system/cpu"
_STEADY_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")


def governor() -> Finding:
    """Check that the clock rate of every CPU is kept up."""
    why = "the rate then follows the load, so that the first calls and short ones run on a slow clock"
    found = {number: host.read(f"{_CPU}/cpu{number}/cpufreq/scaling_governor") for number in sorted(host.affinity())}
    if None in found.values():
        return unknown("governor", "the kernel shows no frequency scaling (a virtual machine, or no driver)", why)
    slow = sorted({str(name) for name in found.values() if name != "performance"})
    count = sum(name != "performance" for name in found.values())
    return judged(
        "governor",
        not slow,
        f"{', '.join(slow)} on {count} of {len(found)} CPUs" if slow else f"performance on {len(found)} CPUs",
        do="sudo cpupower frequency-set --governor performance",
        why=why,
    )


def turbo() -> Finding:
    """Check that the clock rate does not depend on temperature and on neighbours."""
    why = "with it the rate depends on temperature and on how many cores are busy, and so do the numbers"
    for file, off in ((f"{_CPU}/intel_pstate/no_turbo", "1"), (f"{_CPU}/cpufreq/boost", "0")):
        value = host.read(file)
        if value is not None:
            do = f"echo {off} | sudo tee /{file}"
            return judged("turbo", value == off, "off" if value == off else "on", do=do, why=why)
    return unknown("turbo", "the kernel shows no switch for it (a virtual machine, or no driver)", why)


def siblings() -> Finding:
    """Check that no core is shared by two hyper-threads."""
    why = "two threads on one core share its units: which of them waits changes from run to run"
    active, allowed = host.read(f"{_CPU}/smt/active"), host.affinity()
    cores = len(host.physical_cores(allowed))
    if active == "0":
        return Finding(check="hyper-threads", state="ok", found="off")
    told = all(host.read(f"{_CPU}/cpu{number}/topology/core_id") is not None for number in allowed)
    if active is None and not (told and cores < len(allowed)):
        return unknown("hyper-threads", "the kernel does not say whether cores are shared", why)
    found = f"on: {len(allowed)} CPUs on {cores} cores"
    return judged("hyper-threads", False, found, do=f"echo off | sudo tee /{_CPU}/smt/control", why=why)


def isolation() -> Finding:
    """Check that the system's own services keep off the CPUs that measure.

    A cpuset does it. `isolcpus` does not: the scheduler does not spread threads over isolated CPUs, so that a pool
    that does not bind its threads runs on one of them.
    """
    why = "services, timers and log-ins then run on the cores that measure, whenever they like"
    allowed = host.affinity()
    isolated = numbers(host.read(f"{_CPU}/isolated") or "") & allowed
    if len(isolated) > 1:
        return judged(
            "isolated cores",
            False,
            f"isolcpus has {len(isolated)} of our CPUs",
            do="take isolcpus= off the kernel's command line and give services other CPUs by a cpuset",
            why="the scheduler does not spread threads over CPUs in isolcpus: pools run on one of them",
        )
    shared: set[int] = set()
    for part in ("system.slice", "user.slice"):
        text = host.read(f"sys/fs/cgroup/{part}/cpuset.cpus.effective")
        if not text:
            reason = "no cpusets of services are to be seen (no systemd, or a container)"
            return unknown("isolated cores", reason, why)
        shared |= numbers(text) & allowed
    keep = min(allowed)
    return judged(
        "isolated cores",
        not shared,
        f"services may use {len(shared)} of our {len(allowed)} CPUs" if shared else "services have other CPUs",
        do=f"for part in system user; do sudo systemctl set-property $part.slice AllowedCPUs={keep}; done; "
        "and give the runner's own slice the other CPUs",
        why=why,
    )


def virtual() -> Finding:
    """Check that no hypervisor takes time from us."""
    why = "a hypervisor takes cores away for a while, and hides clock rates and caches"
    text = host.read("proc/cpuinfo")
    if text is None:
        return unknown("bare metal", "/proc/cpuinfo cannot be read", why)
    virtualised = " hypervisor " in f" {text} ".replace("\n", " ")
    return judged(
        "bare metal",
        not virtualised,
        "a virtual machine" if virtualised else "yes",
        do="measure on a machine of its own; where there is none, accept 'bare metal' in .github/runners.toml",
        why=why,
    )


def clock() -> Finding:
    """Check that reading the time is cheap and steady."""
    why = "reading the time then goes through a slow device, which costs microseconds per sample"
    name = host.read("sys/devices/system/clocksource/clocksource0/current_clocksource")
    if name is None:
        return unknown("clock source", "the kernel does not say which it uses", why)
    do = "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
    return judged("clock source", name in _STEADY_CLOCKS, name, do=do, why=why)
