"""An attempt: what one run of a sweep found of one cell with one version of a library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from machmeter.machine import disturbance
from machmeter.measure.evidence_shape import Record, Run
from machmeter.metrics import Metric
from machmeter.store import evidence
from machmeter.tables.cell_found import Status
from machmeter.workload.manifest import UsedArtifact

Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What one run found of one cell with one version."""

    version: str
    released: str | None
    commit: str
    run: Run
    records: tuple[Record, ...]

    @property
    def when(self) -> float:
        """Return when its last process began, seconds since 1970."""
        return max((record.started_at for record in self.records), default=0.0)

    @property
    def telling(self) -> bool:
        """Return whether it was not only interrupted: that says nothing of the version."""
        return self.outcome()[0] != "not run"

    def outcome(self) -> tuple[Status, str]:
        """Return status and reason. A version that is not the one installed has no number."""
        installed, swept = self.run.versions, self.run.swept
        if installed and swept and (problem := swept.falsehood(installed)):
            return "failed", problem
        found = evidence.outcome(self.records)
        if found.status == "interrupted" or (found.status == "ok" and self._timed() is None):
            return "not run", found.reason or "its latency was not timed"
        return found.status, found.reason

    @property
    def quiet(self) -> bool:
        """Return whether it is on record that nobody disturbed it: what nobody looked at is not."""
        timed = self._timed()
        return timed is not None and disturbance.known_quiet(timed.disturbed_share)

    def disturbed(self) -> str | None:
        """Return what to say where other programs had the CPUs meanwhile: such a number proves no change."""
        timed = self._timed()
        return disturbance.note(timed.disturbed_share) if timed else None

    def seconds(self) -> float | None:
        """Return the median seconds of a call, or None where there is no number."""
        timed = self._timed()
        return timed.median_seconds if timed and self.outcome()[0] == "ok" else None

    def first(self, look: Callable[[Record], Found | None]) -> Found | None:
        """Return the first thing that `look` finds in a record, or None."""
        return next((found for record in self.records if (found := look(record)) is not None), None)

    @property
    def artifact(self) -> UsedArtifact:
        """Return the artifact it was measured from."""
        return self.first(lambda record: record.artifact) or UsedArtifact()

    @property
    def digest(self) -> str | None:
        """Return the digest of its artifact, None where that is not on record."""
        return self.artifact.digest or None

    def samples(self) -> int | None:
        """Return how many calls were timed."""
        timed = self._timed()
        return timed.samples if timed else None

    def measured(self, metric: Metric) -> float | None:
        """Return what is on record of a metric; what only a process of its own can tell, of that process alone."""
        if self.seconds() is None and metric.evidence:
            return None
        for record in self.records:
            alone = metric.evidence and record.benchmark != metric.benchmark
            if not alone and (found := metric.recorded(record)) is not None:
                return found
        return None

    def _timed(self) -> Record | None:
        return next((record for record in self.records if record.samples), None)
