"""asv benchmark classes, generated for a backend: one class per model, one parameter axis per option.

Facts of asv that shape this module: classes are found if they are attributes of a benchmark module (so the
bases here must never be imported into one), all generated classes would share one version hash unless each
says its own, and `setup` runs before every sample, so the session lives in the process and not in the class.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from machmeter import backends, metrics
from machmeter.backends.base import Backend
from machmeter.backends.grid import parameters
from machmeter.machine import gpu
from machmeter.measure import cell_process
from machmeter.workload import models
from machmeter.workload.models import Model

TIMEOUT_SECONDS = 1200.0


def _survey(*_: object) -> None:
    cell_process.current().survey()


def _prepare_forward(*_: object) -> None:
    cell_process.current().prepare_forward()


def _prepare_timing(*_: object) -> None:
    cell_process.current().prepare_timing()


def _prepare_offline(*_: object) -> None:
    cell_process.current().prepare_offline()


def _measures(setup: Callable[..., None]) -> Callable[[Any], Any]:
    """Give a benchmark method its unit from `metrics`, and the set-up it needs after the class's own."""

    def decorate(method: Any) -> Any:
        method.unit = metrics.metric(method.__name__).unit
        method.setup = setup
        return method

    return decorate


class Timing:
    """The latency of one backend and one model."""

    backend: Backend
    model: Model
    version: str
    param_names: list[str]
    params: list[list[object]]

    timeout = TIMEOUT_SECONDS
    timer = staticmethod(time.perf_counter)  # elapsed time, of a clock that nobody can set
    number = 1  # a sample is one forward call
    warmup_time = 0.0  # the measurement warms up itself, by time and by calls
    repeat = (5, 1000, 10.0)  # at least 5 samples, at most 1000 or 10 s of them
    rounds = 1  # more processes where somebody judges: asv run -a rounds=4
    min_run_count = 1

    def setup(self, *values: object) -> None:
        """Say which cell this process measures; the set-up of the benchmark method does the rest."""
        cell_process.enter(self.backend, self.model, values, float(self.timeout))

    def teardown(self, *_: object) -> None:
        """Refuse the last call if it was not what it seems."""
        cell_process.current().check()

    @_measures(_prepare_timing)
    def time_forward(self, *_: object) -> None:
        """Time one forward call of one batch."""
        cell_process.current().forward()


class Surveyed(Timing):
    """Everything that is measured of one backend and one model on any device, written once."""

    @_measures(_prepare_forward)
    def peakmem_forward(self, *_: object) -> None:
        """Measure the peak resident memory of a process that loads the cell and runs it."""
        cell_process.current().forward()

    @_measures(_survey)
    def track_prepare_time(self, *_: object) -> float:
        """Return the seconds that exporting, quantizing and compiling took, from nothing, on this machine."""
        return float(self._fact("track_prepare_time"))

    @_measures(_survey)
    def track_load_time(self, *_: object) -> float:
        """Return the seconds from a prepared artifact to a session."""
        return float(self._fact("track_load_time"))

    @_measures(_survey)
    def track_first_inference_time(self, *_: object) -> float:
        """Return the seconds of the first call, with all that a runtime puts off until then."""
        return float(self._fact("track_first_inference_time"))

    @_measures(_survey)
    def track_artifact_size(self, *_: object) -> int:
        """Return the bytes of the artifact on disk."""
        return int(self._fact("track_artifact_size"))

    @_measures(_survey)
    def track_top1_agreement(self, *_: object) -> float:
        """Return the share of images whose first class is that of the fp32 eager model."""
        return float(self._fact("track_top1_agreement"))

    @_measures(_survey)
    def track_sqnr(self, *_: object) -> float:
        """Return the signal to quantization noise ratio against the fp32 eager model, in dB."""
        return float(self._fact("track_sqnr"))

    def _fact(self, name: str) -> Any:
        facts = cell_process.current().facts
        if name not in facts:
            from asv_runner.benchmarks.mark import SkipNotImplemented

            raise SkipNotImplemented(f"{self.backend.name} has no {name} here")
        return facts[name]


class Inference(Surveyed):
    """What is measured on the CPU."""

    @_measures(_prepare_offline)
    def track_throughput_offline(self, *_: object) -> metrics.Samples:
        """Return the most images per second that the machine gives, requests running side by side."""
        return {"samples": self._fact(metrics.OFFLINE), "number": 1}


class DeviceInference(Surveyed):
    """What is measured on a GPU. The time of a call is without transfers: `cuda.transfer` has those."""

    @_measures(_survey)
    def track_device_memory(self, *_: object) -> int:
        """Return the highest memory of this process on the device, in bytes."""
        return int(self._fact("track_device_memory"))


def benchmark_classes(
    module: str, backend: str | Backend, chosen: Iterable[Model | str] | None = None
) -> dict[str, type[Timing]]:
    """Return the benchmark classes of `backend`, by name, for the namespace of the asv module `module`.

    One class for each of `chosen` (models or their names), by default for each model that is benchmarked. Raises
    UnknownName.
    """
    runtime = backends.get(backend) if isinstance(backend, str) else backend
    wanted = [model for model in models.MODELS if model.benchmarked]
    if chosen is not None:
        wanted = [models.get(model) if isinstance(model, str) else model for model in chosen]
    if not runtime.answers and runtime.device == "cuda":
        base: type[Timing] = Timing
    else:
        base = DeviceInference if runtime.device == "cuda" else Inference
    return {model.name: _benchmark_class(base, module, runtime, model) for model in wanted}


def null_class(module: str) -> type[Timing]:
    """Return the benchmark class of the null backend: its latency is the harness's overhead per call."""
    return _benchmark_class(Timing, module, backends.get("null"), models.get("ResNet50"), name="Null")


# What other benchmark modules alone need is imported only for them: every measuring process imports this one.


def peak_class(module: str) -> type[Any]:
    """Return the benchmark class of the highest rates of this machine, for the namespace of the asv module `module`."""
    from machmeter.measure import peak

    return peak.peak_class(module)


def ladder_classes(module: str) -> dict[str, type[Any]]:
    """Return the benchmark classes of the tuning ladder, by model, for the namespace of the asv module `module`."""
    from machmeter.measure import ladder_classes as ladders

    return dict(ladders.ladder_classes(module))


def thread_budget() -> int:
    """Return how many threads whatever is measured on this machine may use."""
    from machmeter.machine import host

    return host.thread_budget()


def _benchmark_class(
    base: type[Timing], module: str, backend: Backend, model: Model, name: str | None = None
) -> type[Timing]:
    names, values = parameters(backend, model)
    if backend.device == "cuda" and gpu.no_driver():
        # asv starts a process for every combination, even to be told n/a: here one says it for all.
        values = [choices[:1] for choices in values]
    return type(
        name or model.name,
        (base,),
        {
            "__module__": module,
            "__doc__": f"{model.name} on {backend.name}.",
            "backend": backend,
            "model": model,
            "version": f"{backend.version}.{model.version}",
            "param_names": names,
            "params": values,
        },
    )
