"""How one process measures one cell: prepare, load, first call, warm-up and proof, then timed calls.

asv starts a process for each benchmark and parameter combination. For a cell the first of them is the
*survey*: it measures everything that is measured once (load, first call, fidelity, memory) and leaves it in
the evidence, where the `track_*` processes of the same run read it. Another process times forward calls, a
third has worker processes find the machine's highest throughput. Each loads the cell and proves its labels.
The survey judges its answers on all images before any number is accepted; where there was no survey in the
run, the timing process does.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from machmeter import metrics
from machmeter.backends.base import Backend, DeviceSession
from machmeter.backends.grid import from_parameters
from machmeter.errors import CellFailed
from machmeter.machine import disturbance, host, nvml
from machmeter.measure import instances
from machmeter.measure.cell_record import Journal
from machmeter.measure.evidence_shape import Facts
from machmeter.measure.opening import Opened, open_cell
from machmeter.measure.record_parts import Part, Surveyed, Timed, TimedOnDevice
from machmeter.workload.cells import Cell
from machmeter.workload.models import Model
from machmeter.workload.names import offline_key
from machmeter.workload.read_back import DeviceFacts

SECONDS_BETWEEN_STATES = 1.0  # reading the state of a device takes milliseconds, in which it idles
MOST_STATES = 60


class Measurement:
    """The one cell that this process measures."""

    def __init__(self, backend: Backend, model: Model, cell: Cell, timeout: float) -> None:
        self.backend, self.model, self.cell = backend, model, cell
        self._journal = Journal(cell.key(), cell.batch, timeout, self._timed)
        self._opened: Opened | None = None
        self._nanoseconds: list[int] = []
        self._throttled_before: int | None = None
        self._watch: disturbance.Watch | None = None
        self._ready_for = ""
        self._device_seconds: list[float | None] = []
        self._states: list[nvml.GpuState] = []
        self._device_facts: DeviceFacts | None = None

    @property
    def facts(self) -> Facts:
        """Return what the survey found, by benchmark name."""
        return self._journal.facts

    def fact(self, name: str) -> float:
        """Return the one number that the survey found for the benchmark `name`."""
        value = self.facts[name]
        assert not isinstance(value, list), f"{name} has samples, not one number"
        return value

    # ------------------------------------------------------------------ what asv's setups call

    def survey(self) -> None:
        """Measure everything but speed once; in later processes of the same run, read it instead."""
        if self._ready_for:
            return
        known = self._journal.known()
        if known is not None:
            self._journal.facts = known
            self._ready_for = "reading"
            return
        self._guarded("survey", self._measure_once)

    def prepare_timing(self) -> None:
        """Load, warm up and prove the cell, so that nothing but forward calls is left to time."""
        if self._ready_for:
            return
        surveyed = self._journal.known() is not None
        self._guarded("time_forward", lambda: self._open(all_images=not surveyed))

    def prepare_forward(self) -> None:
        """Make sure that this process can call `forward`: a survey that was read cannot."""
        if self._opened is None:
            self._ready_for = ""
            self._guarded("peakmem_forward", self._measure_once)

    def prepare_offline(self) -> None:
        """Have worker processes run the cell as fast as the machine can."""
        if self._ready_for:
            return
        self._journal.known()  # what failed in the survey is not tried again
        # A record of its own: that a cell cannot be run many times at once says nothing of its latency.
        cell, self._ready_for = self.cell, metrics.OFFLINE
        journal = Journal(offline_key(cell.key()), cell.batch, self._journal.timeout, tuple)

        def work() -> None:
            done = instances.run(instances.offline(self.backend, cell))
            self.facts[metrics.OFFLINE] = list(done.rates)
            journal.record(done.evidence())

        journal.guard(metrics.OFFLINE, work)

    # ------------------------------------------------------------------ what is timed

    def forward(self) -> None:
        """Run the next rotating batch. This is all that is timed."""
        assert self._opened is not None
        call, buffers = self._opened.call, self._opened.buffers
        batch = buffers[len(self._nanoseconds) % len(buffers)]
        start = time.perf_counter_ns()
        try:
            call(batch)
        except BaseException as error:
            self._journal.failed(error)
            raise
        self._nanoseconds.append(time.perf_counter_ns() - start)

    def check(self) -> None:
        """Refuse a call that was recompiled or that ended sooner than the work can be done."""
        if self._opened is None or not self._nanoseconds:
            return
        if problem := self._opened.problem(self._nanoseconds[-1]):
            self._journal.failed(error := CellFailed(problem))
            raise error
        if self._opened.device:
            self._look_at(self._opened.device)

    # ------------------------------------------------------------------ inside

    def _look_at(self, device: DeviceSession) -> None:
        """Keep the device's own time of the last call and, once in a while, what the device is doing."""
        self._device_seconds.append(device.device_seconds())
        if not self._states or time.time() - self._states[-1].at >= SECONDS_BETWEEN_STATES:
            self._states = [*self._states, device.state()][-MOST_STATES:]
            self._device_facts = device.evidence()

    def _guarded(self, benchmark: str, work: Callable[[], object]) -> None:
        self._ready_for = benchmark
        self._journal.guard(benchmark, work)

    def _timed(self) -> list[Part]:
        """Return what only the end of a timing process knows."""
        if self._ready_for != "time_forward" or not self._nanoseconds:
            return []
        seconds = [count / 1e9 for count in self._nanoseconds]
        timed = Timed(
            samples=len(seconds),
            median_seconds=float(np.median(seconds)),
            sample_seconds=seconds,
            throttled_periods=self._throttled(),
            disturbed_share=self._watch.share() if self._watch else None,
            # Not among the facts of a survey: later processes would take the cell for surveyed.
            opening_seconds={name: self.fact(name) for name in metrics.OPENINGS if name in self.facts},
        )
        return [timed, *self._on_device()]

    def _on_device(self) -> list[Part]:
        """Return what a device's own clock and its management library said while calls were timed."""
        if self._opened is None or self._opened.device is None:
            return []
        seconds = [second for second in self._device_seconds if second is not None]
        timed = TimedOnDevice(
            device_sample_seconds=seconds,
            device_median_seconds=float(np.median(seconds)) if seconds else None,
            device_states=self._states,
            device=self._device_facts or self._opened.device.evidence(),
        )
        return [timed]

    def _throttled(self) -> int | None:
        """Return in how many periods the CPU quota stopped this process's group since it was ready to time."""
        before, now = self._throttled_before, host.limits().throttled_periods
        return None if before is None or now is None else now - before

    def _measure_once(self) -> None:
        artifact = self._open().artifact
        self.facts["track_artifact_size"] = artifact.size
        # A time from another machine is not this machine's, and one with a cache that was filled before is not cold.
        if artifact.built_on == host.cpu().model and not artifact.details.get("warm_cache"):
            self.facts["track_prepare_time"] = artifact.prepare_seconds
        self._journal.record(Surveyed(facts=self.facts))

    def _open(self, *, all_images: bool = True) -> Opened:
        self._opened = open_cell(
            self.backend,
            self.model,
            self.cell,
            record=self._journal.record,
            facts=self.facts,
            all_images=all_images,
        )
        self._throttled_before, self._watch = host.limits().throttled_periods, disturbance.Watch()
        return self._opened


_measurement: Measurement | None = None


def enter(backend: Backend, model: Model, values: tuple[object, ...], timeout: float) -> Measurement:
    """Return this process's measurement of the cell that asv's parameter `values` stand for.

    asv calls `setup` before every sample, so the measurement is kept for the life of the process.
    """
    global _measurement
    cell = from_parameters(backend, model, values)
    if _measurement is None or _measurement.cell != cell:
        _measurement = Measurement(backend, model, cell, timeout)
    return _measurement


def current() -> Measurement:
    """Return the measurement that `enter` began in this process."""
    assert _measurement is not None, "enter() was not called"
    return _measurement
