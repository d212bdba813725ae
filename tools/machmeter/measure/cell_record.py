"""What becomes of one cell in one process, on record whatever happens: begun, added to, ended."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable

from machmeter.errors import CellFailed, Unsupported
from machmeter.machine import process
from machmeter.measure import tell
from machmeter.measure.current_run import current as current_asv_run
from machmeter.measure.evidence_shape import Facts
from machmeter.measure.record_parts import Outcome, Part, Resident, merged
from machmeter.measure.recorder import Recorder


class Journal:
    """The evidence of the cell called `key` in this process; outside asv it keeps nothing.

    `closing` returns what is known only when the process ends: asv does not say which call is the last.
    """

    def __init__(self, key: str, batch: int, timeout: float, closing: Callable[[], Iterable[Part]]) -> None:
        self.key, self.batch, self.timeout = key, batch, timeout
        self.facts: Facts = {}  # what is measured once, by benchmark name
        self._closing = closing
        run = current_asv_run()
        self._recorder = Recorder(run) if run else None
        self._benchmark = ""
        self._outcome: Outcome | None = None

    def known(self) -> Facts | None:
        """Return the facts that an earlier process of this run found of the cell, or raise what it met.

        Raises CellFailed or Unsupported.
        """
        if self._recorder is None:
            return None
        facts = None
        for record in self._recorder.records(self.key):
            if record.status == "n/a":
                raise Unsupported(record.reason or "")
            if record.status == "failed":
                raise CellFailed(f"failed earlier in this run: {record.reason}")
            facts = record.facts or facts
        return facts

    def guard(self, benchmark: str, work: Callable[[], object]) -> None:
        """Do `work` for `benchmark` with its beginning, its end and any failure on record. Raises CellFailed."""
        self._benchmark = benchmark
        if self._recorder:
            self._recorder.watch()
            self._recorder.begin(self.key, benchmark, self.timeout)
        self._outcome = Outcome(status="ok")
        atexit.register(self._finish)
        try:
            work()
        except Unsupported as error:
            self._outcome = failure(error)
            raise
        except NotImplementedError as error:
            # asv takes any of these in a set-up for "n/a"; from a runtime it is a failure.
            self._outcome = failure(error)
            raise CellFailed(self._outcome.reason or "") from error
        except BaseException as error:
            self._outcome = failure(error)
            raise
        self.record(Resident(peak_resident_bytes=process.peak_resident_bytes()))

    def record(self, *parts: Part) -> None:
        """Add `parts` to the record."""
        if self._recorder:
            self._recorder.record(self.key, *parts)

    def failed(self, error: BaseException) -> None:
        """Note that the cell failed after `guard` had done its work."""
        self._outcome = failure(error)

    def _finish(self) -> None:
        outcome = self._outcome or Outcome(status="ok")
        parts = [outcome, Resident(peak_resident_bytes=process.peak_resident_bytes()), *self._closing()]
        self.record(*parts)
        if self._recorder:
            self._recorder.trace.unlink(missing_ok=True)
        tell.tell(self.key, self._benchmark, self.batch, {**self.facts, **merged(*parts)})


# As NumPy, the C++ library, CUDA, cuDNN and TensorRT say it.
_OUT_OF_MEMORY = ("allocate memory", "bad_alloc", "bad alloc", "out of memory", "outofmemory", "alloc_failed")


def failure(error: BaseException) -> Outcome:
    """Return the outcome that `error` means: n/a where the cell cannot exist here, failed otherwise."""
    if isinstance(error, Unsupported):
        return Outcome(status="n/a", reason=str(error))
    if isinstance(error, CellFailed):
        return Outcome(status="failed", reason=str(error))
    peak = getattr(error, "peak_bytes", None) or process.peak_resident_bytes()
    text = " ".join(str(error).split()) or "no message"
    if isinstance(error, MemoryError) or any(word in text.lower() for word in _OUT_OF_MEMORY):
        reached = f"; the peak was {peak / 1e6:.0f} MB" if peak else ""
        return Outcome(status="failed", reason=f"out of memory ({text[:160]}){reached}")
    return Outcome(status="failed", reason=f"{type(error).__name__}: {text[:400]}")
