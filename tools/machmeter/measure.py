"""How one process measures one cell: prepare, load, first call, warm-up and proof, then timed calls.

asv starts a process for each benchmark and parameter combination. For a cell the first of them is the
*survey*: it measures everything that is measured once (load, first call, fidelity, memory) and leaves it in
the evidence, where the `track_*` processes of the same run read it. Another process times forward calls.
Both load the cell themselves and prove its labels. The survey judges its answers on all images before any
number is accepted; where there was no survey in the run, the timing process does.
"""

from __future__ import annotations

import atexit
import time
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter import backends, fidelity, host, inputs, labels, preparation, progress
from machmeter.artifacts import Artifact, Store
from machmeter.asvrun import current as current_asv_run
from machmeter.backends.base import Backend, Session
from machmeter.cells import Cell, from_parameters
from machmeter.errors import CellFailed, Unsupported
from machmeter.evidence import Recorder
from machmeter.isolation import in_child
from machmeter.models import Model

WARM_UP_CALLS = 3
WARM_UP_SECONDS = 1.0
ROTATING_BUFFERS = 8


class Measurement:
    """The one cell that this process measures."""

    def __init__(self, backend: Backend, model: Model, cell: Cell, timeout: float) -> None:
        self.backend, self.model, self.cell = backend, model, cell
        self.facts: dict[str, Any] = {}  # what the survey found, by benchmark name
        self._timeout = timeout
        run = current_asv_run()
        self._recorder = Recorder(run) if run else None
        self._session: Session | None = None
        self._buffers: list[NDArray[np.float32]] = []
        self._nanoseconds: list[int] = []
        self._compilations = 0
        self._least_seconds = 0.0
        self._throttled_before: int | None = None
        self._ready_for = ""
        self._outcome: dict[str, Any] = {}

    # ------------------------------------------------------------------ what asv's setups call

    def survey(self) -> None:
        """Measure everything but latency once; in later processes of the same run, read it instead."""
        if self._ready_for:
            return
        known = self._known_in_this_run()
        if known is not None:
            self.facts = known
            self._ready_for = "reading"
            return
        self._guarded("survey", self._measure_once)

    def prepare_timing(self) -> None:
        """Load, warm up and prove the cell, so that nothing but forward calls is left to time."""
        if self._ready_for:
            return
        surveyed = self._known_in_this_run() is not None
        self._guarded("time_forward", lambda: self._open(all_images=not surveyed))

    def prepare_forward(self) -> None:
        """Make sure that this process can call `forward`: a survey that was read cannot."""
        if self._session is None:
            self._ready_for = ""
            self._guarded("peakmem_forward", self._measure_once)

    # ------------------------------------------------------------------ what is timed

    def forward(self) -> None:
        """Run the next rotating batch. This is all that is timed."""
        assert self._session is not None
        batch = self._buffers[len(self._nanoseconds) % len(self._buffers)]
        start = time.perf_counter_ns()
        try:
            self._session(batch)
        except BaseException as error:
            self._outcome = _failure(error)
            raise
        self._nanoseconds.append(time.perf_counter_ns() - start)

    def check(self) -> None:
        """Refuse a call that was recompiled or that ended sooner than the work can be done."""
        if self._session is None or not self._nanoseconds:
            return
        problem = None
        if self._session.compilations() != self._compilations:
            problem = "recompiled while it was timed: its shape or settings changed"
        elif self._nanoseconds[-1] < 1e9 * self._least_seconds:
            problem = (
                f"impossible: a call took {self._nanoseconds[-1] / 1e6:.3f} ms and this CPU needs at least "
                f"{1e3 * self._least_seconds:.3f} ms; it returns before its work is done"
            )
        if problem:
            self._outcome = {"status": "failed", "reason": problem}
            raise CellFailed(problem)

    # ------------------------------------------------------------------ inside

    def _known_in_this_run(self) -> dict[str, Any] | None:
        """Return what an earlier process of this run found of the cell, or raise what it met."""
        if self._recorder is None:
            return None
        facts = None
        for record in self._recorder.records(self.cell.key()):
            if record["status"] == "n/a":
                raise Unsupported(record["reason"])
            if record["status"] == "failed":
                raise CellFailed(f"failed earlier in this run: {record['reason']}")
            facts = record.get("facts") or facts
        return facts

    def _guarded(self, benchmark: str, work: Any) -> None:
        """Do `work` with its beginning, its end and any failure on record."""
        self._ready_for = benchmark
        key = self.cell.key()
        if self._recorder:
            self._recorder.watch()
            self._recorder.begin(key, benchmark, self._timeout)
        self._outcome = {"status": "ok"}
        atexit.register(self._finish)
        try:
            work()
        except Unsupported as error:
            self._outcome = _failure(error)
            raise
        except NotImplementedError as error:
            # asv takes any of these in a set-up for "n/a"; from a runtime it is a failure.
            self._outcome = _failure(error)
            raise CellFailed(self._outcome["reason"]) from error
        except BaseException as error:
            self._outcome = _failure(error)
            raise
        self._record(peak_resident_bytes=host.peak_resident_bytes())

    def _finish(self) -> None:
        """Put the end of this process on record (at exit: asv does not say which call is the last)."""
        timed = {}
        if self._ready_for == "time_forward" and self._nanoseconds:
            seconds = [count / 1e9 for count in self._nanoseconds]
            timed = {
                "samples": len(seconds),
                "median_seconds": float(np.median(seconds)),
                "sample_seconds": seconds,
                "throttled_periods": self._throttled(),
            }
        outcome = {**self._outcome, "peak_resident_bytes": host.peak_resident_bytes(), **timed}
        self._record(**outcome)
        if self._recorder:
            self._recorder.trace.unlink(missing_ok=True)
        progress.tell(self.cell.key(), self._ready_for, self.cell.batch, {**self.facts, **outcome})

    def _throttled(self) -> int | None:
        """Return in how many periods the CPU quota stopped this process's group since it was ready to time."""
        before, now = self._throttled_before, host.limits().throttled_periods
        return None if before is None or now is None else now - before

    def _record(self, **facts: Any) -> None:
        if self._recorder:
            self._recorder.record(self.cell.key(), **facts)

    def _measure_once(self) -> None:
        artifact = self._open()
        self.facts["track_artifact_size"] = artifact.size
        if artifact.built_on == host.cpu().model:  # a time from another machine is not this machine's
            self.facts["track_prepare_time"] = artifact.prepare_seconds
        self._record(facts=self.facts)

    def _open(self, *, all_images: bool = True) -> Artifact:
        """Prepare, load and warm up; prove the label and the answers; fill the rotating buffers.

        The answers decide only where `all_images` were seen: on the few of a short warm-up, a configuration
        that agrees on five images of six would fail by chance.
        """
        cell = self.cell
        reason = backends.unsupported(self.backend, self.model, cell.precision, **cell.options)
        if reason:
            raise Unsupported(reason)
        artifact, reference = in_child(self._prepare)
        images = inputs.Evaluation(path=reference.evaluation if reference else None, model=self.model, batch=cell.batch)
        session = self._load(artifact, images)
        outputs, calls, seconds = self._warm_up(session, images, all_images)
        warm_up = {"calls": calls, "seconds": seconds}
        self._record(artifact=artifact.evidence(), weights=self.model.weights(), warm_up=warm_up)
        self._prove(session)
        if reference:
            self._judge(outputs, reference, decide=all_images)
        self._buffers = [images.chunk(i) for i in range(min(ROTATING_BUFFERS, max(2, images.chunks)))]
        self._record(
            inputs={
                "source": images.source,
                "buffers": len(self._buffers),
                "rotating": True,
                "includes_transfer": False,
                "layout": "channels_last" if session.channels_last else "contiguous",
            }
        )
        self._session = session
        self._throttled_before = host.limits().throttled_periods
        self._compilations = session.compilations()
        return artifact

    def _load(self, artifact: Artifact, images: inputs.Evaluation) -> Session:
        """Load the session and make its first call, each timed for itself."""
        cell = self.cell
        start = time.perf_counter()
        session = self.backend.load(
            self.model, artifact, cell.precision, batch=cell.batch, threads=host.thread_budget(), **cell.options
        )
        loaded = time.perf_counter()
        images.channels_last = session.channels_last
        example = images.chunk(0)
        before_first = time.perf_counter()
        session(example)
        self.facts = {
            "track_load_time": loaded - start,
            "track_first_inference_time": time.perf_counter() - before_first,
        }
        return session

    def _prove(self, session: Session) -> None:
        """Put on record what really runs, and refuse a label or a number of threads that is not true."""
        effective, threads = session.effective(), host.thread_budget()
        self._record(effective=effective, threads=threads, allocator=host.allocator())
        if problem := labels.falsehood(self.cell.precision, effective["compute"]):
            raise CellFailed(problem)
        if effective["threads"] > threads:
            raise CellFailed(f"runs {effective['threads']} threads where {threads} are allowed")

    def _judge(self, outputs: NDArray[np.float32], reference: preparation.Reference, *, decide: bool) -> None:
        """Put on record how far the answers are from the reference, and refuse wrong ones where they `decide`."""
        found = fidelity.compare(outputs, reference.logits[: len(outputs)])
        self.facts |= {"track_top1_agreement": found.top1_agreement, "track_sqnr": found.sqnr_db}
        self._record(fidelity=asdict(found), operations_per_image=reference.operations_per_image)
        operations = reference.operations_per_image * self.cell.batch
        self._least_seconds = host.least_seconds(operations, self.cell.precision)
        if decide and (problem := fidelity.shortfall(found, self.cell.precision)):
            raise CellFailed(problem)

    def _prepare(self) -> tuple[Artifact, preparation.Reference | None]:
        store, cell = Store(), self.cell
        artifact = self.backend.prepare(self.model, cell.precision, store, batch=cell.batch, **cell.options)
        reference = preparation.reference(self.model, store) if self.backend.answers else None
        return artifact, reference

    def _warm_up(
        self, session: Session, images: inputs.Evaluation, all_images: bool
    ) -> tuple[NDArray[np.float32], int, float]:
        """Call with the timed shape: at least 3 calls and 1 s, and as many as the check of answers needs."""
        wanted = images.chunks if all_images else min(images.chunks, ROTATING_BUFFERS)
        outputs: list[NDArray[np.float32]] = []
        calls, start = 0, time.perf_counter()
        while calls < max(WARM_UP_CALLS, wanted) or time.perf_counter() - start < WARM_UP_SECONDS:
            output = session(images.chunk(calls % wanted))
            if calls < wanted:
                outputs.append(np.array(output, dtype=np.float32))
            calls += 1
        return np.concatenate(outputs)[: images.count], calls, time.perf_counter() - start


def _failure(error: BaseException) -> dict[str, Any]:
    """Return the outcome that `error` means: n/a where the cell cannot exist here, failed otherwise."""
    if isinstance(error, Unsupported):
        return {"status": "n/a", "reason": str(error)}
    if isinstance(error, CellFailed):
        return {"status": "failed", "reason": str(error)}
    peak = getattr(error, "peak_bytes", None) or host.peak_resident_bytes()
    text = " ".join(str(error).split()) or "no message"
    if isinstance(error, MemoryError) or "allocate memory" in text or "bad_alloc" in text or "bad alloc" in text:
        reached = f"; the peak was {peak / 1e6:.0f} MB" if peak else ""
        return {"status": "failed", "reason": f"out of memory ({text[:160]}){reached}"}
    return {"status": "failed", "reason": f"{type(error).__name__}: {text[:400]}"}


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
