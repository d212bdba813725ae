"""Series for the tests of steps."""

from __future__ import annotations

# A spread of 1 %, the same for everyone: what a benchmark does from process to process.
WOBBLE = (1.000, 1.011, 0.994, 0.985, 1.006, 0.999, 1.013, 0.990, 1.003, 0.997, 0.988, 1.008, 1.001)


NAN, INF = float("nan"), float("inf")


def wobbling(*levels: tuple[float, int]) -> list[float]:
    """Return stretches of (level, points) with `WOBBLE` on them."""
    flat = [level for level, points in levels for _ in range(points)]
    return [level * WOBBLE[number % len(WOBBLE)] for number, level in enumerate(flat)]
