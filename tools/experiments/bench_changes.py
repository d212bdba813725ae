"""Try detectors of steps on simulated histories: ours, asv's, and two of ruptures.

Run it with `make bench-changes`. The histories are seeded (`simulate_series`): the same numbers come out
every time, except for the times, which are CPU time.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import numpy.typing as npt

import simulate_series
from machmeter.changes import detect
from machmeter.changes.series import noise, scale, usable
from machmeter.machine import host

Array = npt.NDArray[np.float64]
Detector = Callable[[Sequence[Array]], list[list[int]]]

LENGTHS = (200, 60)
LONG = 1400
SERIES = 3000
# asv's detector may ask for all there is.
MEMORY = 4 * 2**30


def ours(histories: Sequence[Array]) -> list[list[int]]:
    """Detect with what the site uses."""
    return [[step.index for step in steps] for steps in detect.detect_many(histories)]


def asv(histories: Sequence[Array]) -> list[list[int]]:
    """Detect with asv's own detector: every boundary of its pieces. Infinite values are taken out for it."""
    from asv import step_detect

    found = []
    for values in histories:
        where = np.flatnonzero(np.isfinite(values))
        try:
            pieces = step_detect.detect_steps(values[where].tolist())
        except MemoryError:
            pieces = []
        found.append([int(where[left]) for left, *_ in pieces[1:]])
    return found


def kernel(histories: Sequence[Array]) -> list[list[int]]:
    """Detect with ruptures' kernel search and a penalty of 0.75 ln n, and doubt its cuts as we doubt ours."""
    found = []
    for values in histories:
        scaled = scale(values[usable(values)])
        starts = _ruptures("rbf", scaled, 0.75 * np.log(len(scaled)), gamma=0.5 / noise(scaled) ** 2)
        found.append([step.index for step in detect.confirmed(values, starts)])
    return found


def pelt(histories: Sequence[Array]) -> list[list[int]]:
    """Detect with ruptures' PELT under squared distances in noise units, penalty 3 ln n."""
    found = []
    for values in histories:
        where = np.flatnonzero(usable(values))
        scaled = scale(values[where])
        starts = _ruptures("linear", scaled / noise(scaled), 3 * np.log(len(scaled)))
        found.append([int(where[start]) for start in starts])
    return found


def _ruptures(name: str, signal: Array, penalty: float, **parameters: float) -> list[int]:
    import ruptures  # type: ignore[import-untyped,unused-ignore]

    search = ruptures.KernelCPD(name, min_size=2, params=parameters or None).fit(signal[:, None])
    return [int(end) for end in search.predict(pen=penalty)[:-1]]


DETECTORS: dict[str, Detector] = {
    "machmeter": ours,
    "ruptures KernelCPD rbf, our doubts": kernel,
    "ruptures PELT l2": pelt,
    "asv step_detect": asv,
}


# Title and noise kinds of each pair of F1 columns.
GROUPS: dict[str, tuple[str, ...]] = {
    "tuned": tuple(simulate_series.TUNED),
    "no bursts": tuple(kind for kind in simulate_series.TUNED if kind != "bursts"),
    "held out": tuple(simulate_series.HELD_OUT),
}
KINDS = tuple(simulate_series.TUNED | simulate_series.HELD_OUT | simulate_series.HARD)
# Of these histories the last points are 5 % higher: how many of them a detector needs.
LATE, SPREADS, COUNTS = 200, (0.005, 0.01, 0.015), (3, 4, 5, 6)


def main() -> None:
    """Print one row per detector, then for ours each noise kind, how soon it sees a step, and a whole store's time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--histories", type=int, default=100, help="how many of each noise kind and length")
    parser.add_argument("--detector", action="append", choices=list(DETECTORS), help="only this one (may be repeated)")
    parser.add_argument("--skip-store", action="store_true", help=f"leave out {SERIES} series of {LONG} points")
    options = parser.parse_args()
    processes = host.thread_budget()
    print(f"{host.cpu().model}, {processes} processes, {options.histories} histories of each noise kind and length")
    print("F1 at so many points by group of noise kinds; steps found per 1,000 points where there are none; CPU time")
    head = [f"{group} {length}" for group in GROUPS for length in LENGTHS] + ["false", "false held", f"ms/{LONG}"]
    print(f"{'':34}" + "".join(f"{text:>14}" for text in head))
    with ProcessPoolExecutor(processes, initializer=_limit) as pool:
        for name in options.detector or DETECTORS:
            scores = _scores(pool, name, options.histories)
            columns = [f"{_total(scores, length, kinds).f1:.3f}" for kinds in GROUPS.values() for length in LENGTHS]
            for kinds in (simulate_series.STATIONARY, simulate_series.STATIONARY_HELD_OUT):
                columns.append(f"{_false(pool, name, options.histories, kinds):.3f}")
            columns.append(f"{_milliseconds(pool, name):.2f}")
            print(f"{name:34}" + "".join(f"{text:>14}" for text in columns), flush=True)
        _print_kinds(pool, options.histories)
    _print_delays()
    _print_two()
    if not options.skip_store:
        _print_store(processes)


def _print_kinds(pool: ProcessPoolExecutor, histories: int) -> None:
    first = next(iter(DETECTORS))
    scores = _scores(pool, first, histories)
    print(f"\n{first} by noise kind" + "".join(f"{f'F1 {n} (wrong, missed)':>28}" for n in LENGTHS) + "  false/1,000")
    for kind in KINDS:
        texts = [f"{s.f1:.3f} ({s.wrong}, {s.missed})" for s in (scores[kind, length] for length in LENGTHS)]
        # A burst, a drift and a wave are no steps, but they are no stationary noise either.
        false = "" if kind in ("bursts", "drift", "seasonal") else f"{_false(pool, first, histories, (kind,)):.3f}"
        group = "held out" if kind in simulate_series.HELD_OUT else "hard" if kind in simulate_series.HARD else ""
        print(f"  {kind:24}" + "".join(f"{text:>28}" for text in texts) + f"{false:>13}  {group}".rstrip())


def _print_delays() -> None:
    print("\nshare of steps of 5 % that are found so many points after they came, by spread of the noise")
    for spread in SPREADS:
        shares = []
        for count in COUNTS:
            made = []
            for number in range(LATE):
                values = 1.0 + spread * np.random.default_rng([number, count]).standard_normal(LENGTHS[0])
                values[-count:] *= 1.05
                made.append(values)
            found = [steps for steps in ours(made) if any(abs(at - LENGTHS[0] + count) <= 1 for at in steps)]
            shares.append(f"{count}: {len(found) / LATE:.2f}")
        print(f"  {100 * spread:g} %  " + "   ".join(shares))


def _print_two() -> None:
    """Print why an alert waits for four points: how often two that are worse than the 30 before are nothing."""
    print("\nfalse alarms per 1,000 points if two points, 5 % above the median and above all of 30 before, were enough")
    for kind in KINDS:
        made = [simulate_series.history(kind, LENGTHS[0], number, stationary=True).values for number in range(60)]
        points = sum(len(values) - 40 for values in made)
        rate = 1000 * sum(_twos(values[usable(values)]) for values in made) / points
        if rate:
            print(f"  {kind:24}{rate:>8.2f}")


def _twos(values: Array) -> int:
    """Count such pairs after the first 40 points; the ten points after one are not looked at again."""
    found, end = 0, 40
    while end <= len(values):
        old, new = values[end - 32 : end - 2], values[end - 2 : end]
        middle = float(np.median(old))
        if new.min() > max(1.05 * middle, old.max()):
            found, end = found + 1, end + 10
        end += 1
    return found


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))


def _scores(pool: ProcessPoolExecutor, name: str, histories: int) -> dict[tuple[str, int], simulate_series.Score]:
    jobs = [(kind, length) for length in LENGTHS for kind in KINDS]
    return dict(zip(jobs, pool.map(partial(_score, name, histories), *zip(*jobs, strict=True)), strict=True))


def _score(name: str, histories: int, kind: str, length: int) -> simulate_series.Score:
    made = [simulate_series.history(kind, length, number) for number in range(histories)]
    found = DETECTORS[name]([one.values for one in made])
    matched = (simulate_series.match(steps, one.steps) for steps, one in zip(found, made, strict=True))
    return sum(matched, simulate_series.Score())


def _total(
    scores: dict[tuple[str, int], simulate_series.Score], length: int, kinds: Sequence[str]
) -> simulate_series.Score:
    return sum((scores[kind, length] for kind in kinds), simulate_series.Score())


def _false(pool: ProcessPoolExecutor, name: str, histories: int, kinds: Sequence[str]) -> float:
    """Return the steps found per 1,000 points of noise without any."""
    found = list(pool.map(partial(_alarms, name, histories), kinds))
    return 1000 * sum(found) / (len(found) * histories * LENGTHS[0])


def _alarms(name: str, histories: int, kind: str) -> int:
    made = [simulate_series.history(kind, LENGTHS[0], number, stationary=True).values for number in range(histories)]
    return sum(len(steps) for steps in DETECTORS[name](made))


def _milliseconds(pool: ProcessPoolExecutor, name: str) -> float:
    """Return the CPU time per series of 1,400 points, over all noise kinds, once the detector is loaded."""
    return float(np.median(list(pool.map(partial(_cpu, name), range(3)))))


def _cpu(name: str, number: int) -> float:
    made = [simulate_series.history(kind, LONG, number).values for kind in simulate_series.TUNED]
    DETECTORS[name](made[:1])
    start = time.process_time()
    DETECTORS[name](made)
    return 1000 * (time.process_time() - start) / len(made)


def _print_store(processes: int) -> None:
    kinds = list(simulate_series.TUNED)
    made = [simulate_series.history(kinds[number % len(kinds)], LONG, number).values for number in range(SERIES)]
    start = time.perf_counter()
    found = detect.detect_many(made, processes=processes)
    wall = time.perf_counter() - start
    start = time.process_time()
    detect.detect_many(made)
    used = time.process_time() - start
    print(f"\n{SERIES} series of {LONG} points: {wall:.1f} s on {processes} processes, {used:.1f} s of CPU", end="")
    print(f" in one, {sum(map(len, found))} steps")


if __name__ == "__main__":
    main()
