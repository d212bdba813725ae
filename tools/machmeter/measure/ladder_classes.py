"""asv benchmark classes of the tuning ladder: one per model, one parameter, the rung.

Each rung runs in worker processes of its own. The first process that asv starts for a rung measures it; the
others of the same run read what it found from the evidence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from machmeter import metrics
from machmeter.measure import instances, rung_configuration
from machmeter.measure.cell_record import Journal
from machmeter.measure.evidence_shape import Facts, MeasuredRung
from machmeter.measure.record_parts import Climbed, Speed, Surveyed
from machmeter.workload import models, rungs
from machmeter.workload.models import Model
from machmeter.workload.names import rung_key

TIMEOUT_SECONDS = 1800.0
VERSION = 1  # bump when a rung of the project comes to mean another workload


class _Climb:
    """The one rung that this process measures."""

    def __init__(self, model: Model, name: str, timeout: float) -> None:
        known = rungs.load()
        self.name = name
        self._rung = rungs.get(name, known)
        self._known, self._model = known, model
        settings = rungs.settings(self._rung, known)
        self._journal = Journal(rung_key(model.name, name), settings.batch, timeout, lambda: self._speed)
        self._speed: list[Speed] = []
        self._ready = False

    @property
    def facts(self) -> Facts:
        return self._journal.facts

    def measure(self) -> None:
        """Measure the rung, or read what another process of this run measured."""
        if self._ready:
            return
        self._ready = True
        found = self._journal.known()
        if found is not None:
            self._journal.facts = found
            return
        self._journal.guard("track_throughput", self._run)

    def _run(self) -> None:
        configuration = rung_configuration.configuration(self._rung, self._known, self._model.name)
        measured = MeasuredRung(name=self.name, on=self._rung.on, title=self._rung.title)
        self._journal.record(Climbed(rung=measured, settings=rungs.settings(self._rung, self._known)))
        done = instances.run(configuration)
        self._journal.facts |= {**done.facts(), "track_throughput": list(done.rates)}
        self._speed = [Speed(images_per_second=done.images_per_second)]
        self._journal.record(done.evidence(), Surveyed(facts=self._journal.facts))


_climb: _Climb | None = None


def _current(model: Model, name: str, timeout: float) -> _Climb:
    """Return this process's rung: asv calls `setup` before every sample."""
    global _climb
    if _climb is None or _climb.name != name:
        _climb = _Climb(model, name, timeout)
    return _climb


def _tracks(method: Any) -> Any:
    method.unit = metrics.metric(method.__name__).unit
    return method


class Ladder:
    """The rungs of one model."""

    model: Model
    version: str
    params: list[list[str]]
    param_names = ["rung"]  # noqa: RUF012 - asv's name and type
    timeout = TIMEOUT_SECONDS

    def setup(self, rung: str) -> None:
        """Measure the rung, once for all benchmarks of it."""
        _current(self.model, rung, float(self.timeout)).measure()

    @_tracks
    def track_throughput(self, rung: str) -> metrics.Samples:
        """Return the images per second of all instances together."""
        return {"samples": self._fact(rung, "track_throughput"), "number": 1}

    @_tracks
    def track_top1_agreement(self, rung: str) -> float:
        """Return the share of images whose first class is that of the fp32 eager model."""
        return float(self._fact(rung, "track_top1_agreement"))

    @_tracks
    def track_sqnr(self, rung: str) -> float:
        """Return the signal to quantization noise ratio against the fp32 eager model, in dB."""
        return float(self._fact(rung, "track_sqnr"))

    def _fact(self, rung: str, name: str) -> Any:
        facts = _current(self.model, rung, float(self.timeout)).facts
        if name not in facts:
            from asv_runner.benchmarks.mark import SkipNotImplemented

            raise SkipNotImplemented(f"rung {rung} has no {name}: its backend does not compute the model")
        return facts[name]


def ladder_classes(module: str, chosen: Iterable[Model] | None = None) -> dict[str, type[Ladder]]:
    """Return the benchmark classes of the ladder, by model, for the namespace of the asv module `module`."""
    wanted = [model for model in models.MODELS if model.benchmarked] if chosen is None else chosen
    names = list(rungs.load())
    return {
        model.name: type(
            model.name,
            (Ladder,),
            {
                "__module__": module,
                "__doc__": f"The tuning ladder of {model.name}.",
                "model": model,
                "version": f"{VERSION}.{model.version}",
                "params": [names],
            },
        )
        for model in wanted
    }
