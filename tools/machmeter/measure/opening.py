"""From a cell to a session that is ready to be timed: prepared, loaded, warmed up, proved and judged."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter import backends
from machmeter.backends.base import Backend, DeviceSession, Session
from machmeter.errors import CellFailed, Unsupported
from machmeter.isolation import in_child
from machmeter.machine import host, process
from machmeter.measure.evidence_shape import Facts, Inputs, WarmUp
from machmeter.measure.record_parts import Chosen, Fed, Judged, Located, Part, ReadBack, WarmedUp
from machmeter.workload import fidelity, inputs, shared_artifacts
from machmeter.workload import precision as precision_labels
from machmeter.workload.artifacts import Artifact, Store
from machmeter.workload.cells import Cell
from machmeter.workload.models import Model

WARM_UP_CALLS = 3
WARM_UP_SECONDS = 1.0
ROTATING_BUFFERS = 8

Record = Callable[[Part], None]  # takes a part of the evidence
Load = Callable[..., Session]  # called as `Backend.load` is


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A cell of which nothing but calls is left to do."""

    session: Session
    call: Callable[[Any], Any]  # what is timed: the session, or its run on a batch that lies on the device
    buffers: list[Any]  # batches, each where `call` wants it
    artifact: Artifact
    least_seconds: float  # no call can take less: see `host.least_seconds` and `DeviceSession.least_seconds`
    compilations: int
    device: DeviceSession | None = None  # the session again, where it runs on a device

    def problem(self, nanoseconds: float) -> str | None:
        """Return why a call that took `nanoseconds` must not count, or None: recompiled, or impossibly short."""
        if self.session.compilations() != self.compilations:
            return "recompiled while it was timed: its shape or settings changed"
        if nanoseconds < 1e9 * self.least_seconds:
            what = "CPU" if self.device is None else "GPU"
            return (
                f"impossible: a call took {nanoseconds / 1e6:.3f} ms and this {what} needs at least "
                f"{1e3 * self.least_seconds:.3f} ms; it returns before its work is done"
            )
        if self.device and self.device.pending():
            return "not synchronised: a call returned while the GPU was still at work"
        return None


def open_cell(
    backend: Backend,
    model: Model,
    cell: Cell,
    *,
    record: Record,
    facts: Facts,
    all_images: bool = True,
    load: Load | None = None,
) -> Opened:
    """Prepare, load and warm up; prove the label and the answers; fill the rotating buffers.

    What is found goes into `facts` (numbers, by benchmark name) and to `record` (the rest) as soon as it is
    known, so that a failure leaves it behind. The answers decide only where `all_images` were seen: on the
    few of a short warm-up, a configuration that agrees on five images of six would fail by chance. `load`
    stands in for `backend.load`. Raises Unsupported or CellFailed.
    """
    reason = backends.unsupported(backend, model, cell.precision, **cell.options)
    if reason:
        raise Unsupported(reason)
    artifact, reference = in_child(lambda: _prepare(backend, model, cell), fork=backends.may_fork(backend))
    images = inputs.Evaluation(path=reference.evaluation if reference else None, model=model, batch=cell.batch)
    session = _load(load or backend.load, model, artifact, cell, images, facts)
    outputs, calls, seconds = _warm_up(session, images, all_images)
    warm_up = WarmUp(calls=calls, seconds=seconds)
    record(WarmedUp(artifact=artifact.evidence(), weights=model.weights(), warm_up=warm_up))
    precision = _prove(session, cell.precision, record)
    device = session if isinstance(session, DeviceSession) else None
    least_seconds = 0.0
    if reference:
        _judge(outputs, reference, precision, decide=all_images, record=record, facts=facts)
        operations = reference.operations_per_image * cell.batch
        least_seconds = _least_seconds(device, operations, precision, model)
    buffers = _fill_buffers(session, device, images, record)
    if device:
        device.run(buffers[0])  # what is timed has not run yet: the warm-up came with transfers
        _note_device(device, record, facts)
    return Opened(
        session=session,
        call=device.run if device else session,
        buffers=buffers,
        artifact=artifact,
        least_seconds=least_seconds,
        compilations=session.compilations(),
        device=device,
    )


def _least_seconds(device: DeviceSession | None, operations: float, precision: str, model: Model) -> float:
    """Return a time below which nobody can do `operations`, on the device or on this CPU."""
    if device:
        return device.least_seconds(operations, precision, model.family)
    return host.least_seconds(operations, precision)


def _fill_buffers(
    session: Session, device: DeviceSession | None, images: inputs.Evaluation, record: Record
) -> list[Any]:
    """Return the batches that are timed, each where a call wants it, and put on record what they are."""
    place = device.place if device else lambda batch: batch
    buffers = [place(images.chunk(i)) for i in range(min(ROTATING_BUFFERS, max(2, images.chunks)))]
    described = Inputs(
        source=images.source,
        buffers=len(buffers),
        rotating=True,
        includes_transfer=False,
        resident="device" if device else "host",
        layout="channels_last" if session.channels_last else "contiguous",
    )
    record(Fed(inputs=described))
    return buffers


def _note_device(device: DeviceSession, record: Record, facts: Facts) -> None:
    """Put on record which device it is, and its memory that this process has had so far."""
    device_facts = device.evidence()
    record(Located(device=device_facts))
    if device_facts.peak_bytes is not None:
        facts["track_device_memory"] = device_facts.peak_bytes


def _prepare(backend: Backend, model: Model, cell: Cell) -> tuple[Artifact, shared_artifacts.Reference | None]:
    store = Store()
    artifact = backend.prepare(model, cell.precision, store, batch=cell.batch, **cell.options)
    reference = shared_artifacts.reference(model, store) if backend.answers else None
    return artifact, reference


def _load(load: Load, model: Model, artifact: Artifact, cell: Cell, images: inputs.Evaluation, facts: Facts) -> Session:
    """Load the session and make its first call, each timed for itself."""
    start = time.perf_counter()
    session = load(model, artifact, cell.precision, batch=cell.batch, threads=host.thread_budget(), **cell.options)
    loaded = time.perf_counter()
    images.channels_last = session.channels_last
    example = images.chunk(0)
    before_first = time.perf_counter()
    session(example)
    facts["track_load_time"] = loaded - start
    facts["track_first_inference_time"] = time.perf_counter() - before_first
    return session


def _prove(session: Session, precision: str, record: Record) -> str:
    """Put on record what really runs, and refuse a label or a number of threads that is not true.

    Return the precision: the one that was asked for, or, where the runtime was left to choose, its choice.
    """
    effective, threads = session.effective(), host.thread_budget()
    record(ReadBack(effective=effective, threads=threads, allocator=process.allocator()))
    if precision == precision_labels.DEFAULT:
        precision = precision_labels.dominant(effective.compute)
        record(Chosen(precision=precision))
    elif problem := precision_labels.falsehood(precision, effective.compute):
        raise CellFailed(problem)
    if effective.threads > threads:
        raise CellFailed(f"runs {effective.threads} threads where {threads} are allowed")
    return precision


def _judge(
    outputs: NDArray[np.float32],
    reference: shared_artifacts.Reference,
    precision: str,
    *,
    decide: bool,
    record: Record,
    facts: Facts,
) -> None:
    """Put on record how far the answers are from the reference, and refuse wrong ones where they `decide`."""
    found = fidelity.compare(outputs, reference.logits[: len(outputs)])
    facts |= {"track_top1_agreement": found.top1_agreement, "track_sqnr": found.sqnr_db}
    record(Judged(fidelity=found, operations_per_image=reference.operations_per_image))
    if decide and (problem := fidelity.shortfall(found, precision)):
        raise CellFailed(problem)


def _warm_up(session: Session, images: inputs.Evaluation, all_images: bool) -> tuple[NDArray[np.float32], int, float]:
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
