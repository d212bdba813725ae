"""What a backend is, and the reasons for n/a that all backends share."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from machmeter.machine import gpu, host, nvml
from machmeter.workload.artifacts import Artifact, Store
from machmeter.workload.models import Model
from machmeter.workload.read_back import DeviceFacts, Effective

Options = Mapping[str, str]
Interval = tuple[int, int]  # nanoseconds of one monotonic clock: begin and end of a call


class Session(Protocol):
    """A model that is loaded and ready to run at one batch size."""

    channels_last: bool  # whether it likes its input buffers in N, H, W, C order

    def __call__(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Run `batch` (N x C x H x W) and return N x classes, complete in host memory.

        The result may be overwritten by the next call.
        """
        ...

    def effective(self) -> Effective:
        """Return what really runs, read back from the runtime. Called outside the timed region; may run the model."""
        ...

    def compilations(self) -> int:
        """Return how often the runtime has compiled so far. It must not grow while calls are timed."""
        ...


@runtime_checkable
class DeviceSession(Session, Protocol):
    """A session whose batches lie in the memory of a device. What is timed is `run`, without any transfer.

    Called with an array, like every session, it places the batch, runs it and fetches the answers.
    """

    def place(self, batch: NDArray[np.float32]) -> Any:
        """Return `batch` in device memory, complete."""
        ...

    def run(self, placed: Any) -> None:
        """Run a placed batch; return when the device has finished. The answers stay on the device."""
        ...

    def pending(self) -> bool:
        """Return whether the device still has work of ours, which it must not have after `run`."""
        ...

    def device_seconds(self) -> float | None:
        """Return how long the last `run` took by the device's own clock, None where it has none."""
        ...

    def least_seconds(self, operations: float, precision: str, family: str) -> float:
        """Return a time below which the device cannot do `operations` of a model of `family`, from its own peak.

        Returns 0 where no peak is known.
        """
        ...

    def state(self) -> nvml.GpuState:
        """Return what the device is doing: clocks, power, temperature, throttling, other programs."""
        ...

    def evidence(self) -> DeviceFacts:
        """Return which device it is, how busy it was before, and the highest memory of this process on it."""
        ...


class ParallelSession(Session, Protocol):
    """A session that can keep several requests in flight. A plain call runs one and waits for it."""

    def stream(self, batches: Sequence[NDArray[np.float32]], end: int, least: int) -> list[Interval]:
        """Run `batches` in turn until `end`, a time of `time.perf_counter_ns`, and at least `least` of them.

        Return begin and end of each, when all are complete.
        """
        ...


class Backend(Protocol):
    """A runtime with a way to prepare and run a model on one device.

    A backend whose runtime has a throughput mode of its own also has `load_parallel`, which takes what
    `load` takes and returns a ParallelSession; of the others, instances are run. One whose runtime can choose
    the precision says so by `chooses_precision = True` and then loads the precision "default" as well. One that
    is measured at other batches than the model's says them in `batches`.
    """

    name: str
    device: str
    version: int  # bump when the recipe changes the workload's meaning
    stack: str  # the stack whose environments it lives in
    packages: tuple[str, ...]  # import names without which it cannot run a prepared artifact
    distributions: tuple[str, ...]  # what it runs on, as the package index calls it: a new version explains a change
    may_fork: bool  # False: its runtime has threads that do not survive a fork
    precisions: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    on_request: tuple[str, ...]  # option values that `machmeter bench` measures only when asked, as they take long
    answers: bool  # False: it does not compute the model, so its outputs are not compared with the reference

    def unsupported(self, model: Model, precision: str, **options: str) -> str | None:
        """Return why this backend cannot have this cell, or None."""
        ...

    def prepare(self, model: Model, precision: str, store: Store, *, batch: int, **options: str) -> Artifact:
        """Do what is slow (export, calibrate, compile) once, and return what it left in the store.

        `batch` matters only to backends that compile for one shape.
        """
        ...

    def load(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> Session:
        """Make a prepared artifact ready to run."""
        ...

    def snippet(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> str:
        """Return a program that loads `artifact` as `load` does, without machmeter: see `_snippet.program`."""
        ...


def unsupported(backend: Backend, model: Model, precision: str, **options: str) -> str | None:
    """Return why the cell is n/a on this machine and in this environment, or None where it can be tried."""
    if backend.device == "cuda" and (reason := gpu.unsupported(precision)):
        return reason
    missing = [name for name in backend.packages if importlib.util.find_spec(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if precision == "bf16" and backend.device == "cpu" and not host.cpu().has_bf16:
        return "this CPU has no bf16 instructions (avx512_bf16 or amx_bf16): it would be emulated, far slower"
    return backend.unsupported(model, precision, **options)
