"""What this machine can do at best: the rate of a large matrix product per precision, and memory bandwidth.

They are asv benchmarks like the others, so each machine has a history of them, and the table can say which
share of the machine a cell uses. The peak is that of the best kernel at the best size, because a share of a
poor kernel says nothing: on a Zen 5, torch.mm in fp32 (MKL) reaches 43 % of what oneDNN does.

A sample is the best rate within a short window, and asv's result is the median over the windows: a product
can only be disturbed downwards, so the best of a few is what the hardware did, and the median over two dozen
windows leaves out a burst of clock that does not last. Windows in which other programs had our CPUs do not
count; where almost all are like that there is no peak, rather than one that cells would exceed many times.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from machmeter import metrics
from machmeter.errors import CellFailed, Unsupported
from machmeter.machine import host
from machmeter.measure.current_run import current as current_asv_run
from machmeter.measure.peak_kernels import Call, kernels, unsupported
from machmeter.measure.record_parts import Outcome, Part, PeakFound
from machmeter.measure.recorder import Recorder
from machmeter.workload import precision as precision_labels
from machmeter.workload.names import PEAK, peak_key
from machmeter.workload.read_back import Executed

PRECISIONS = ("fp32", "bf16", "int8")
VERSION = "1"
TIMEOUT_SECONDS = 300.0

SIZES = (512, 1024, 2048, 4096, 8192)  # rows and columns
LONG_ENOUGH_SECONDS = 0.008  # a product this long has no overhead left to hide: larger ones are not faster
TRIAL_SECONDS = 0.1
WINDOW_SECONDS = 0.04
WINDOW_CALLS = 3  # at least
WINDOWS = 25
LEAST_WINDOWS = 5
LONGEST_TRIAL_SECONDS = 2.0  # to wait for one undisturbed window
LONGEST_SECONDS = 6.0  # to wait for enough of them
UNDISTURBED = 0.9  # share of its CPUs' time that this process must have had
AS_GOOD = 0.985  # of the best rate

SMALLEST_ARRAY_BYTES = 64 << 20
CACHES_PER_ARRAY = 4  # STREAM's rule: each array at least four times the last-level cache


# ---------------------------------------------------------------------- matrix products, size x size


@dataclass(frozen=True, kw_only=True)
class _Trial:
    """One kernel at one size, and its best rate in a short trial."""

    rate: float  # operations per second
    kernel: str
    size: int
    call: Call


def _shortest_of_the_best(found: list[_Trial]) -> _Trial:
    """Return the smallest product that is as good as the best: of short ones, more pass a busy machine undisturbed."""
    highest = max(trial.rate for trial in found)
    return min((trial for trial in found if trial.rate >= AS_GOOD * highest), key=lambda trial: trial.size)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Rates, one for each window that nobody disturbed, and what gave them."""

    samples: list[float]
    found: PeakFound


def matrix_product(precision: str) -> Measured:
    """Measure the peak of `precision`, in operations per second.

    `tried` is the best rate of every kernel and size in a short trial. Raises Unsupported where there is no peak,
    CellFailed where no kernel works, where oneDNN did not execute the precision, or where the rate is beyond what
    this CPU can do.
    """
    if reason := unsupported(precision):
        raise Unsupported(reason)
    import torch

    torch.set_num_threads(host.thread_budget())
    torch.manual_seed(0)
    with torch.inference_mode():
        trials, problems = _try_kernels(precision)
        if not trials:
            raise CellFailed(f"no kernel multiplies {precision} matrices here: {'; '.join(problems)}")
        best = _shortest_of_the_best(trials)
        ran = _prove(precision, best.call)
        operations = 2.0 * best.size**3
        samples = [operations / seconds for seconds in _undisturbed(best.call)]
    if operations / max(samples) < host.least_seconds(operations, precision):
        raise CellFailed(f"impossible: {max(samples) / 1e9:.0f} Gop/s is beyond what this CPU can do in {precision}")
    found = PeakFound(
        kernel=best.kernel,
        size=best.size,
        tried={f"{trial.kernel}, {trial.size}": trial.rate for trial in trials},
        threads=torch.get_num_threads(),
        left_out=problems,
        executed=ran,
    )
    return Measured(samples=samples, found=found)


def _try_kernels(precision: str) -> tuple[list[_Trial], list[str]]:
    """Return a trial of every kernel and size, and why a kernel was left out."""
    trials: list[_Trial] = []
    problems: list[str] = []
    for name, make in kernels(precision).items():
        for size in SIZES:
            try:
                call = make(size, precision)
                call()
            except Exception as error:  # these are private to torch: a version or a CPU may not have one
                problems.append(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:100]}")
                break
            seconds = _trial(call)
            trials.append(_Trial(rate=2.0 * size**3 / seconds, kernel=name, size=size, call=call))
            if seconds > LONG_ENOUGH_SECONDS:
                break
    return trials, problems


def _prove(precision: str, call: Call) -> Executed:
    """Return what oneDNN executed, or raise CellFailed where it was not `precision`."""
    from machmeter.backends import _torch

    ran = _torch.executed(call)
    if problem := precision_labels.falsehood(precision, ran.compute):
        raise CellFailed(problem)
    return ran


def _window(call: Call, seconds: float) -> tuple[float, bool]:
    """Return the shortest time of `call()` over `seconds`, and whether this process had its CPUs meanwhile."""
    best, done, start, cpu = float("inf"), 0, time.perf_counter(), time.process_time()
    before = start
    while done < WINDOW_CALLS or before - start < seconds:
        call()
        now = time.perf_counter()
        best, before, done = min(best, now - before), now, done + 1
    share = (time.process_time() - cpu) / (before - start) / host.thread_budget()
    return best, share >= UNDISTURBED


def _trial(call: Call) -> float:
    """Return the shortest time of `call()` in an undisturbed window.

    A kernel whose trial was disturbed must not lose to a poorer one: where no window is free, there is no peak.
    """
    windows, end = 0, time.perf_counter() + LONGEST_TRIAL_SECONDS
    while True:
        fastest, undisturbed = _window(call, TRIAL_SECONDS)
        windows += 1
        if undisturbed:
            return fastest
        if time.perf_counter() > end:
            raise _busy(windows, windows)


def _undisturbed(call: Call) -> list[float]:
    """Return the shortest time of `call()` in each of the windows that nobody disturbed."""
    found: list[float] = []
    windows, end = 0, time.perf_counter() + LONGEST_SECONDS
    while len(found) < WINDOWS and time.perf_counter() < end:
        fastest, undisturbed = _window(call, WINDOW_SECONDS)
        windows += 1
        if undisturbed:
            found.append(fastest)
    if len(found) < LEAST_WINDOWS:
        raise _busy(windows - len(found), windows)
    return found


def _busy(disturbed: int, windows: int) -> CellFailed:
    return CellFailed(
        f"other programs used the CPUs in {disturbed} of {windows} windows: measure again when the machine is idle"
    )


# ---------------------------------------------------------------------- memory


def memory_bandwidth() -> Measured:
    """Measure bytes per second, read and written; arrays that fit no cache, one part per thread.

    As STREAM counts them: what a program asks for, not what a cache fetches besides. The best of copy, scale
    and add is sampled; `tried` has the best rate of each.
    """
    threads = host.thread_budget()
    elements = array_bytes() // 4
    target, first, second = (np.ones(elements, np.float32) for _ in range(3))
    parts = [slice(i * elements // threads, (i + 1) * elements // threads) for i in range(threads)]
    factor = np.float32(3.0)
    kernels: dict[str, tuple[int, Callable[[slice], Any]]] = {
        "copy": (2, lambda part: np.copyto(target[part], first[part])),
        "scale": (2, lambda part: np.multiply(first[part], factor, out=target[part])),
        "add": (3, lambda part: np.add(first[part], second[part], out=target[part])),
    }
    # NumPy lets go of the interpreter's lock while it works on arrays.
    with ThreadPoolExecutor(threads) as pool:

        def call(name: str) -> Call:
            return lambda: list(pool.map(kernels[name][1], parts))

        moved = {name: 4.0 * arrays * elements for name, (arrays, _) in kernels.items()}
        tried = {name: moved[name] / _trial(call(name)) for name in kernels}
        best = max(tried, key=lambda name: tried[name])
        samples = [moved[best] / seconds for seconds in _undisturbed(call(best))]
    found = PeakFound(kernel=best, size=4 * elements, tried=tried, threads=threads)
    return Measured(samples=samples, found=found)


def array_bytes() -> int:
    """Return the bytes of an array that no cache holds, and that leaves the machine most of its memory."""
    wanted = max(SMALLEST_ARRAY_BYTES, CACHES_PER_ARRAY * host.last_level_cache_bytes())
    memory = host.memory_bytes()
    return min(wanted, memory // 16) if memory else wanted


# ---------------------------------------------------------------------- asv


def _skip(precision: str) -> None:
    """Let asv say n/a where there is no peak, with the reason on record: to asv only a set-up can say so."""
    if unsupported(precision):
        _on_record(precision, "track_matrix_product_peak", lambda: matrix_product(precision))


def _described(**attributes: Any) -> Callable[[Any], Any]:
    """Give a benchmark method its unit from `metrics`, and what else asv reads from it."""

    def decorate(method: Any) -> Any:
        for name, value in (attributes | {"unit": metrics.metric(method.__name__).unit}).items():
            setattr(method, name, value)
        return method

    return decorate


class Peak:
    """asv benchmarks of the machine itself. Use `peak_class`: asv would list an imported base twice."""

    version = VERSION
    timeout = TIMEOUT_SECONDS

    @_described(params=[[*PRECISIONS]], param_names=["precision"], setup=_skip)
    def track_matrix_product_peak(self, precision: str) -> metrics.Samples:
        """Return the rates of the best matrix product in `precision`, in operations per second."""
        return _on_record(precision, "track_matrix_product_peak", lambda: matrix_product(precision))

    @_described()
    def track_memory_bandwidth(self) -> metrics.Samples:
        """Return the rates at which memory is read and written, in bytes per second."""
        return _on_record("memory", "track_memory_bandwidth", memory_bandwidth)


def _on_record(what: str, benchmark: str, measure: Callable[[], Measured]) -> metrics.Samples:
    """Measure, put what was found on record, and return the samples."""
    run = current_asv_run()
    recorder = Recorder(run) if run else None
    if recorder:
        recorder.watch()
        recorder.begin(peak_key(what), benchmark, TIMEOUT_SECONDS)
    parts: list[Part] = []
    try:
        measured = measure()
        parts = [Outcome(status="ok"), measured.found]
    except BaseException as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        parts = [Outcome(status="n/a" if isinstance(error, Unsupported) else "failed", reason=reason)]
        raise
    finally:
        if recorder:
            recorder.record(peak_key(what), *parts)
            recorder.trace.unlink(missing_ok=True)
    return metrics.Samples(samples=measured.samples, number=1)


def peak_class(module: str) -> type[Peak]:
    """Return the benchmark class for the namespace of the asv module `module`."""
    name = PEAK.rpartition(".")[2]
    return type(name, (Peak,), {"__module__": module, "__doc__": "What this machine can do at best."})
