"""Telling a slow version from a busy machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from machmeter.machine import disturbance, host

pytestmark = pytest.mark.quiet

TICKS = os.sysconf("SC_CLK_TCK")


def write(tree: Path, first: int, second: int) -> None:
    (tree / "proc").mkdir(exist_ok=True)
    lines = [f"cpu  {first + second} 0 0 0 0 0 0 0 0 0", f"cpu0 {first} 0 0 900 0 0 0 0 0 0"]
    lines += [f"cpu1 0 {second} 0 900 0 0 0 0 0 0", "intr 5", "cpu2 999999 0 0 0 0 0 0 0 0 0"]
    (tree / "proc/stat").write_text("\n".join(lines) + "\n")


def test_busy_time_is_that_of_the_cpus_this_process_may_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 200 CPUs is busy elsewhere: that disturbs nobody in a container of two."""
    monkeypatch.setenv("MACHMETER_HOST_ROOT", str(tmp_path))
    write(tmp_path, 3 * TICKS, 4 * TICKS)
    assert host.busy_seconds({0, 1}) == 7.0
    assert host.busy_seconds({0}) == 3.0
    assert host.busy_seconds({7}) is None


def test_time_taken_by_a_hypervisor_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MACHMETER_HOST_ROOT", str(tmp_path))
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text(f"cpu0 0 0 0 50 60 {TICKS} {TICKS} {2 * TICKS} 70 80\n")
    assert host.busy_seconds({0}) == 4.0


def test_what_this_process_did_not_use_others_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """10 s on two CPUs, busy for 16 of 20: 9 were ours, 3 our children's, so others had 4 of 20."""
    monkeypatch.setenv("MACHMETER_HOST_ROOT", str(tmp_path))
    monkeypatch.setattr(host, "affinity", lambda: {0, 1})
    clocks = {"perf": 100.0, "own": 5.0}
    monkeypatch.setattr(time, "perf_counter", lambda: clocks["perf"])
    monkeypatch.setattr(time, "process_time", lambda: clocks["own"])
    write(tmp_path, 0, 0)
    watch = disturbance.Watch()
    write(tmp_path, 8 * TICKS, 8 * TICKS)
    clocks |= {"perf": 110.0, "own": 14.0}
    assert watch.share(children=3.0) == pytest.approx(0.20)


def test_children_that_ended_are_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that computed for two tenths of a second, in a time in which nobody was busy for longer."""
    monkeypatch.setenv("MACHMETER_HOST_ROOT", str(tmp_path))
    monkeypatch.setattr(host, "affinity", lambda: {0, 1})
    write(tmp_path, 0, 0)
    watch = disturbance.Watch()
    loop = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-c", loop], check=True)
    write(tmp_path, TICKS // 10, TICKS // 10)
    assert watch.share() > 0.0
    assert watch.share_around() == 0.0


def test_where_the_kernel_does_not_tell_nothing_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MACHMETER_HOST_ROOT", str(tmp_path))
    assert disturbance.Watch().share() is None
    assert disturbance.note(None) is None
    assert not disturbance.known_quiet(None)


def test_a_note_from_a_tenth_on() -> None:
    assert disturbance.note(0.10) is None
    assert disturbance.note(0.234) == ("disturbed: other programs had 23 % of the CPUs while it was timed")


def test_a_busy_program_is_seen_and_our_own_work_is_not() -> None:
    """On the real machine: a neighbour that computes for a second, and we who compute for as long."""
    loop = "import time; end = time.perf_counter() + 1.0\nwhile time.perf_counter() < end: pass"
    watch = disturbance.Watch()
    before = time.process_time()
    subprocess.run([sys.executable, "-c", loop], check=True)
    with_neighbour, cpus = watch.share(), len(host.affinity())
    assert time.process_time() - before < 0.5
    assert with_neighbour is not None
    assert with_neighbour > 0.7 * 1.0 / cpus / 2  # at least a good part of one CPU
    as_child = watch.share(children=1.0)
    assert as_child is not None
    assert as_child < with_neighbour
