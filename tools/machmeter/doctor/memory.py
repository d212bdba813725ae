"""Checks of the memory: pages, nodes, swap, and how much is free."""

from __future__ import annotations

from machmeter.doctor.finding import Finding, judged, numbers, unknown
from machmeter.machine import host
from machmeter.text.numbers import plural

LEAST_FREE = 8 << 30  # for exporting and quantizing; a choice, not a measurement
_MOST_RESERVED = 0.1  # of the memory


def transparent_pages() -> Finding:
    """Check that programs decide themselves whether they get huge pages."""
    why = "with 'always' the kernel decides page by page at run time; with 'never' the rungs with huge pages cannot run"
    text = host.transparent_huge_pages()
    if text is None:
        return unknown("huge pages", "the kernel does not tell", why)
    do = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
    return judged("huge pages", "[madvise]" in text, text, do=do, why=why)


def reserved_pages() -> Finding:
    """Check that no large part of the memory is set aside for huge pages that nothing here uses."""
    why = "this memory is taken from everything else, and no runtime here asks for reserved pages"
    fields = _meminfo()
    if not {"HugePages_Total", "Hugepagesize", "MemTotal"} <= set(fields):
        return unknown("reserved huge pages", "the kernel does not tell", why)
    reserved = fields["HugePages_Total"] * fields["Hugepagesize"] * 1024
    good = reserved <= _MOST_RESERVED * fields["MemTotal"] * 1024
    return judged(
        "reserved huge pages", good, f"{reserved / 1e9:.1f} GB", do="sudo sysctl -w vm.nr_hugepages=0", why=why
    )


def numa_balancing() -> Finding:
    """Check that the kernel does not move memory between nodes while something is timed."""
    why = "the kernel unmaps pages to see who uses them and moves them: pauses in the middle of a call"
    nodes = numbers(host.read("sys/devices/system/node/online") or "")
    if len(nodes) == 1:
        return Finding(check="NUMA balancing", state="n/a", found="the machine has one node")
    value = host.read("proc/sys/kernel/numa_balancing")
    if value is None:
        return unknown("NUMA balancing", "the kernel tells neither its nodes nor whether it balances them", why)
    found = f"{'off' if value == '0' else 'on'}, {len(nodes) or 'an unknown number of'} nodes"
    return judged("NUMA balancing", value == "0", found, do="sudo sysctl -w kernel.numa_balancing=0", why=why)


def swap() -> Finding:
    """Check that no memory of a measured process can be written to disk."""
    why = "a page that comes back from disk takes 1,000 times as long as one in memory, or more"
    text = host.read("proc/swaps")
    if text is None:
        return unknown("swap", "/proc/swaps cannot be read", why)
    areas = text.splitlines()[1:]
    return judged("swap", not areas, plural(len(areas), "area") if areas else "none", do="sudo swapoff --all", why=why)


def layout() -> Finding:
    """Check that each process gets a memory layout of its own.

    A fixed one makes numbers look steadier than they are: it is one draw, and another build draws anew.
    """
    why = "with one fixed layout a lucky placement looks like fast code; random ones even out over processes"
    value = host.read("proc/sys/kernel/randomize_va_space")
    if value is None:
        return unknown("address layout", "the kernel does not tell", why)
    found = "random" if value == "2" else f"randomize_va_space is {value}"
    return judged("address layout", value == "2", found, do="sudo sysctl -w kernel.randomize_va_space=2", why=why)


def free_memory() -> Finding:
    """Check that models fit in the memory that is free."""
    why = f"below {LEAST_FREE >> 30} GB preparing the larger models may not fit: it is killed, or swaps"
    available, limit = _meminfo().get("MemAvailable"), host.limits().memory_bytes
    if available is None:
        return unknown("free memory", "the kernel does not tell", why)
    free = min(available * 1024, limit if limit is not None else available * 1024)
    do = "end what holds the memory (ps aux --sort=-rss), or raise the limit of the control group"
    return judged("free memory", free >= LEAST_FREE, f"{free / 1e9:.1f} GB", do=do, why=why)


def _meminfo() -> dict[str, int]:
    """Return the fields of /proc/meminfo: kB, or numbers of pages."""
    fields: dict[str, int] = {}
    for line in (host.read("proc/meminfo") or "").splitlines():
        name, _, rest = line.partition(":")
        value = rest.split()[:1]
        if value and value[0].isdigit():
            fields[name] = int(value[0])
    return fields
