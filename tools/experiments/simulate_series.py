"""Seeded histories with known steps, to try detectors on, and the rule that says which found steps count.

A history is `level x noise`: the level changes at the true steps, the noise is one of the kinds below. A benchmark's
point is the median of one process or a few, so what moves it from commit to commit is how processes differ (memory
layout, page placement, clock), not the spread of single calls. `TUNED` kinds were looked at while the detector's
constants were chosen; `HELD_OUT` kinds were not, and are there to be honest; `HARD` kinds show where it ends.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from machmeter.changes.series import Array

Noise = Callable[[np.random.Generator, int], Array]

# A found step counts where it is at most this many points from a true one.
TOLERANCE = 3

SMALLEST_STEP, LARGEST_STEP = 0.03, 1.0
HUGE_STEP = 10.0
SHARE_OF_HUGE_STEPS = 0.05
# Points between two true steps, and between a step and either end.
APART = 8
POINTS_PER_STEP = 40


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """A history and the indices at which its true new levels begin."""

    values: Array
    steps: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Score:
    """How many found steps are true ones, how many are not, and how many true ones were missed."""

    right: int = 0
    wrong: int = 0
    missed: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(right=self.right + other.right, wrong=self.wrong + other.wrong, missed=self.missed + other.missed)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 1 where there was nothing to find and nothing was found."""
        total = 2 * self.right + self.wrong + self.missed
        return 2 * self.right / total if total else 1.0


def match(found: Sequence[int], true: Sequence[int], tolerance: int = TOLERANCE) -> Score:
    """Pair found and true steps, nearest pairs first, each used once and at most `tolerance` points apart."""
    pairs = sorted((abs(a - b), a, b) for a in set(found) for b in true if abs(a - b) <= tolerance)
    used_found: set[int] = set()
    used_true: set[int] = set()
    for _, a, b in pairs:
        if a not in used_found and b not in used_true:
            used_found.add(a)
            used_true.add(b)
    right = len(used_true)
    return Score(right=right, wrong=len(set(found)) - right, missed=len(true) - right)


def history(kind: str, points: int, number: int, *, stationary: bool = False) -> Labelled:
    """Return history `number` of a noise kind; the same arguments always give the same history."""
    rng = np.random.default_rng([zlib.crc32(kind.encode()), points, number, int(stationary)])
    steps = () if stationary else _positions(rng, points)
    level = np.full(points, 10.0 ** rng.uniform(-4, 2))
    for index in steps:
        size = np.exp(rng.uniform(np.log(SMALLEST_STEP), np.log(LARGEST_STEP)))
        ratio = HUGE_STEP if rng.random() < SHARE_OF_HUGE_STEPS else 1.0 + size
        level[index:] *= ratio if rng.random() < 0.5 else 1.0 / ratio
    noise = (TUNED | HELD_OUT | HARD)[kind](rng, points)
    return Labelled(values=level * noise, steps=steps)


def _positions(rng: np.random.Generator, points: int) -> tuple[int, ...]:
    wanted = int(rng.integers(0, points // POINTS_PER_STEP + 2))
    chosen: list[int] = []
    for _ in range(20 * wanted):
        index = int(rng.integers(APART, points - APART + 1))
        if len(chosen) < wanted and all(abs(index - other) >= APART for other in chosen):
            chosen.append(index)
    return tuple(sorted(chosen))


def _spread(rng: np.random.Generator) -> float:
    """Return one history's relative spread from process to process: 0.3 % to 2.5 %, small ones more often."""
    return float(np.exp(rng.uniform(np.log(0.003), np.log(0.025))))


def _gaussian(rng: np.random.Generator, points: int) -> Array:
    return 1.0 + _spread(rng) * rng.standard_normal(points)


def _process(rng: np.random.Generator, points: int) -> Array:
    """Two processes a point, each a little slower than the best by a skewed amount."""
    spread = _spread(rng)
    return np.asarray(1.0 + 1.4 * spread * rng.gamma(2.0, 0.7, size=(2, points)).mean(axis=0))


def _student(rng: np.random.Generator, points: int) -> Array:
    return np.exp(0.7 * _spread(rng) * rng.standard_t(2.0, points))


def _skewed(rng: np.random.Generator, points: int) -> Array:
    return 1.0 + _spread(rng) * rng.lognormal(0.0, 0.8, points)


def _bimodal(rng: np.random.Generator, points: int) -> Array:
    """A process falls into one of two modes, 2 % to 8 % apart (huge pages or not, one core's cache or both)."""
    other = rng.random(points) < rng.uniform(0.1, 0.5)
    within = 1.0 + 0.6 * _spread(rng) * rng.standard_normal(points)
    return np.asarray(within * np.where(other, 1.0 + rng.uniform(0.02, 0.08), 1.0))


def _rare_mode(rng: np.random.Generator, points: int) -> Array:
    """One process in seven is 20 % to 40 % slower, and no other is."""
    slower = np.where(rng.random(points) < 0.15, 1.0 + rng.uniform(0.2, 0.4), 1.0)
    return np.asarray((1.0 + 0.6 * _spread(rng) * rng.standard_normal(points)) * slower)


def _outliers(rng: np.random.Generator, points: int) -> Array:
    """One point in twenty is 10 % to 200 % slower."""
    size = 1.0 + np.exp(rng.uniform(np.log(0.1), np.log(2.0), points))
    return _gaussian(rng, points) * np.where(rng.random(points) < 1 / 20, size, 1.0)


def _bursts(rng: np.random.Generator, points: int) -> Array:
    """Once in 60 points, two to five neighbours are 10 % to 60 % slower (a neighbour on the host)."""
    noise = _gaussian(rng, points)
    for start in np.flatnonzero(rng.random(points) < 1 / 60):
        noise[start : start + rng.integers(2, 6)] *= 1.0 + rng.uniform(0.1, 0.6)
    return noise


def _drift(rng: np.random.Generator, points: int) -> Array:
    """Slow wear: up to 8 % in 200 points, either way."""
    return _gaussian(rng, points) * np.exp(rng.uniform(-0.08, 0.08) * np.arange(points) / 200)


def _quantised(rng: np.random.Generator, points: int) -> Array:
    """Memory: mostly the very same number, sometimes a few pages more."""
    pages = np.where(rng.random(points) < 0.8, 0, rng.integers(-4, 5, points))
    return 1.0 + 0.001 * pages


def _laplace(rng: np.random.Generator, points: int) -> Array:
    return np.exp(0.7 * _spread(rng) * rng.laplace(size=points))


def _uniform(rng: np.random.Generator, points: int) -> Array:
    return 1.0 + 1.7 * _spread(rng) * rng.uniform(-1, 1, points)


def _correlated(rng: np.random.Generator, points: int, remembered: float = 0.4) -> Array:
    """Each point remembers 0.4 of the one before (a warm host stays warm)."""
    noise = rng.standard_normal(points)
    for index in range(1, points):
        noise[index] = remembered * noise[index - 1] + np.sqrt(1 - remembered**2) * noise[index]
    return 1.0 + 0.8 * _spread(rng) * noise


def _seasonal(rng: np.random.Generator, points: int) -> Array:
    """Day and night, summer and winter: a wave of up to 1.5 %, 40 to 150 points long."""
    wave = np.sin(2 * np.pi * (np.arange(points) / rng.uniform(40, 150) + rng.random()))
    return _gaussian(rng, points) * (1.0 + rng.uniform(0, 0.015) * wave)


def _three_hosts(rng: np.random.Generator, points: int) -> Array:
    """Every run lands on one of three hosts of the same kind, up to 2 % apart."""
    return np.asarray(rng.uniform(0.99, 1.01, 3)[rng.integers(0, 3, points)] * _gaussian(rng, points))


def _restless(rng: np.random.Generator, points: int) -> Array:
    """Quiet and loud spells: the spread is three times as large in some of them."""
    loud = np.repeat(rng.random(points // 25 + 1) < 0.3, 25)[:points]
    return 1.0 + 0.6 * _spread(rng) * np.where(loud, 3.0, 1.0) * rng.standard_normal(points)


def _coarse_clock(rng: np.random.Generator, points: int) -> Array:
    """A clock that ticks in 1 % of the time."""
    return np.round(_gaussian(rng, points) * 100) / 100


def _gaps(rng: np.random.Generator, points: int) -> Array:
    """One point in five is missing, and one in fifty is infinite."""
    noise, lottery = _gaussian(rng, points), rng.random(points)
    noise[lottery < 0.2] = np.nan
    noise[lottery > 0.98] = np.inf
    return noise


def _fast_outliers(rng: np.random.Generator, points: int) -> Array:
    """One point in twenty is far off either way: a cell that ran half of its work, or beside something else."""
    off = np.exp(rng.choice([-1.0, 1.0], points) * rng.uniform(0.2, 1.0, points))
    return np.asarray(_process(rng, points) * np.where(rng.random(points) < 1 / 20, off, 1.0))


def _remembering(rng: np.random.Generator, points: int) -> Array:
    """Each point remembers 0.8 of the one before: its wanderings last a dozen points, as steps do."""
    return _correlated(rng, points, 0.8)


def _switching(rng: np.random.Generator, points: int) -> Array:
    """The host changes between two states 4 % apart, and stays in each for three points on average."""
    state = np.cumsum(rng.random(points) < 1 / 3) % 2
    return np.asarray((1.0 + 0.04 * state) * (1.0 + 0.005 * rng.standard_normal(points)))


def _even_modes(rng: np.random.Generator, points: int) -> Array:
    """Every other process is 15 % slower, so that a step of 5 % is one inside a cloud of 15 %."""
    slower = np.where(rng.random(points) < 0.5, 1.15, 1.0)
    return np.asarray((1.0 + 0.005 * rng.standard_normal(points)) * slower)


def _loud(rng: np.random.Generator, points: int) -> Array:
    """A spread of 5 %: as large as the smallest steps."""
    return np.asarray(1.0 + 0.05 * rng.standard_normal(points))


TUNED: dict[str, Noise] = {
    "gaussian": _gaussian,
    "process": _process,
    "student": _student,
    "skewed": _skewed,
    "bimodal": _bimodal,
    "rare mode": _rare_mode,
    "outliers": _outliers,
    "bursts": _bursts,
    "drift": _drift,
    "quantised": _quantised,
}
HELD_OUT: dict[str, Noise] = {
    "laplace": _laplace,
    "uniform": _uniform,
    "correlated": _correlated,
    "seasonal": _seasonal,
    "three hosts": _three_hosts,
    "restless": _restless,
    "coarse clock": _coarse_clock,
    "gaps": _gaps,
    "fast outliers": _fast_outliers,
}
HARD: dict[str, Noise] = {
    "remembering": _remembering,
    "switching": _switching,
    "even modes": _even_modes,
    "loud": _loud,
}
# Noise without a level of its own: what a detector reports there is a false alarm by definition.
STATIONARY: tuple[str, ...] = (
    "gaussian",
    "process",
    "student",
    "skewed",
    "bimodal",
    "rare mode",
    "outliers",
    "quantised",
)
STATIONARY_HELD_OUT: tuple[str, ...] = ("laplace", "uniform", "three hosts", "coarse clock", "gaps", "fast outliers")
