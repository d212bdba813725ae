"""Simulated measurements of identical code: how medians of processes scatter, in several ways.

Each kind of noise yields logarithms of medians, of shape (tables, rows, 2, rounds): base and head of every round, in
the order base first, head first, base first ... in which they are measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Shape = tuple[int, int, int]  # tables, rows, rounds

# How much medians of processes of a real cell varied (docs/comparisons.md), read as a standard deviation.
SPREAD = 0.037
QUIET = 0.009  # what is left of it where the machine does nothing else


@dataclass(frozen=True, kw_only=True)
class Noise:
    """One kind of noise."""

    words: str
    make: Callable[[np.random.Generator, Shape], Array]


def own(spread: float) -> Callable[[np.random.Generator, Shape], Array]:
    """Return noise that every process has for itself, normal."""
    return lambda random, shape: _normal(random, shape, spread)


def _normal(random: np.random.Generator, shape: Shape, spread: float) -> Array:
    tables, rows, rounds = shape
    return random.normal(0.0, spread, (tables, rows, 2, rounds))


def _rounds(random: np.random.Generator, shape: Shape) -> Array:
    """Drift from round to round: nine tenths of the variance are common to both processes of a round."""
    tables, rows, rounds = shape
    common = random.normal(0.0, SPREAD * 0.9**0.5, (tables, rows, 1, rounds))
    return common + _normal(random, shape, SPREAD * 0.1**0.5)


def _walk(random: np.random.Generator, shape: Shape) -> Array:
    """Drift from process to process: a walk of each cell has four fifths of the variance."""
    tables, rows, rounds = shape
    walks = np.cumsum(random.normal(0.0, 1.0, (tables, rows, 2 * rounds)), axis=-1)
    return _in_turn(_scaled(walks, 0.8)) + _normal(random, shape, SPREAD * 0.2**0.5)


def _host(random: np.random.Generator, shape: Shape) -> Array:
    """Drift of the whole machine, which cells feel differently; each side of a round is measured as one block."""
    tables, rows, rounds = shape
    steps = _scaled(np.cumsum(random.normal(0.0, 1.0, (tables, 2 * rounds * rows)), axis=-1), 0.8)
    felt = random.normal(1.0, 0.3, (tables, rows, 1))
    walks = np.moveaxis(steps.reshape(tables, 2 * rounds, rows), 1, 2) * felt
    return _in_turn(walks) + _normal(random, shape, SPREAD * 0.2**0.5)


def _wave(random: np.random.Generator, shape: Shape) -> Array:
    """A machine that is slow every fourth process: in step with the order in which sides are measured."""
    tables, rows, rounds = shape
    wave = np.sin(2.0 * np.pi * (np.arange(2 * rounds) / 4.0 + random.random((tables, 1, 1))))
    walks = _scaled(np.broadcast_to(wave, (tables, rows, 2 * rounds)).copy(), 0.8)
    return _in_turn(walks) + _normal(random, shape, SPREAD * 0.2**0.5)


def _scaled(walks: Array, share: float) -> Array:
    walks -= walks.mean(axis=-1, keepdims=True)
    return np.asarray(walks * (SPREAD * share**0.5 / np.maximum(walks.std(axis=-1, keepdims=True), 1e-12)))


def _in_turn(walks: Array) -> Array:
    """Return what was measured in sequence as base and head of rounds: in every second round, head came first."""
    tables, rows, count = walks.shape
    found = np.moveaxis(walks.reshape(tables, rows, count // 2, 2), 2, 3).copy()
    found[..., 1::2] = found[..., ::-1, 1::2]
    return found


def _two_modes(random: np.random.Generator, shape: Shape) -> Array:
    tables, rows, rounds = shape
    modes = np.where(random.random((tables, rows, 2, rounds)) < 0.5, 1.0, -1.0)
    return np.asarray(modes * (SPREAD * 0.94**0.5)) + _normal(random, shape, SPREAD * 0.06**0.5)


def _rare_mode(random: np.random.Generator, shape: Shape) -> Array:
    tables, rows, rounds = shape
    return np.where(random.random((tables, rows, 2, rounds)) < 0.1, 0.12, 0.0) + _normal(random, shape, QUIET)


def _outliers(random: np.random.Generator, shape: Shape) -> Array:
    tables, rows, rounds = shape
    far = random.uniform(0.05, 0.5, (tables, rows, 2, rounds))
    return np.where(random.random(far.shape) < 0.05, far, 0.0) + _normal(random, shape, QUIET)


def _unequal(random: np.random.Generator, shape: Shape) -> Array:
    """Cells that are quiet and cells that are noisy: standard deviations log-normal around 1.2 %."""
    tables, rows, _ = shape
    spread = np.exp(random.normal(np.log(0.012), 0.7, (tables, rows, 1, 1)))
    return _normal(random, shape, 1.0) * spread


def _mixed(random: np.random.Generator, shape: Shape) -> Array:
    """A fifth of the cells in two modes 8 % apart, a tenth with 6 % of noise, the others quiet."""
    tables, rows, rounds = shape
    modes = 0.04 * np.sign(random.random((tables, rows, 2, rounds)) - 0.5)
    kind = random.random((tables, rows, 1, 1))
    noisy = np.where((kind >= 0.2) & (kind < 0.3), 0.06, QUIET)
    return np.where(kind < 0.2, modes, 0.0) + _normal(random, shape, 1.0) * noisy


KINDS: Mapping[str, Noise] = {
    "own": Noise(words="each process on its own, 3.7 %", make=own(SPREAD)),
    "two modes": Noise(words="two modes of equal share, 3.7 % in all", make=_two_modes),
    "walk": Noise(words="drift from process to process, 3.7 %, a fifth of it on its own", make=_walk),
    "host": Noise(words="drift of the whole machine, sides in blocks, 3.7 %, a fifth on its own", make=_host),
    "rounds": Noise(words="drift from round to round, 3.7 %, a tenth of it on its own", make=_rounds),
    "half": Noise(words="each process on its own, 2 %", make=own(0.02)),
    "quiet": Noise(words="each process on its own, 0.9 %", make=own(QUIET)),
    "rare mode": Noise(words="every tenth process 12 % slower, others 0.9 %", make=_rare_mode),
    "outliers": Noise(words="every twentieth process 5 % to 50 % slower, others 0.9 %", make=_outliers),
    "unequal": Noise(words="cells differ: around 1.2 %, two thirds of them from 0.6 % to 2.4 %", make=_unequal),
    "mixed": Noise(words="a fifth in two modes, a tenth with 6 %, others 0.9 %", make=_mixed),
    "wave": Noise(words="the machine is slow every fourth process, in step with the sides", make=_wave),
}


def samples(random: np.random.Generator, medians: Array, count: int, spread: float = 0.04) -> Array:
    """Return logarithms of `count` samples of each process, around `medians`: each remembers half of the one before."""
    noise = random.normal(0.0, spread * 0.75**0.5, (*medians.shape, count))
    noise[..., 0] /= 0.75**0.5
    for place in range(1, count):
        noise[..., place] += 0.5 * noise[..., place - 1]
    return medians[..., None] + noise
