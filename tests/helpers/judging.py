"""A comparison of one row, for the tests of the judge."""

from __future__ import annotations

import msgspec

from helpers.measurements import measured, row
from machmeter.compare import judge
from machmeter.compare.documents import Comparison, Finding, Measurements


def only(measurements: Measurements) -> Finding:
    """Return the one finding of a comparison, which must be a document."""
    found = judge.compare(measurements)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Comparison) == found
    (finding,) = found.findings
    return finding


def once(base: float, head: float, metric: str, unit: str, better: str = "lower") -> Finding:
    sides = [
        row([value], metric=metric, unit=unit, better=better, side=side)
        for side, value in (("base", base), ("head", head))
    ]
    return only(measured([sides[0]], [sides[1]]))
