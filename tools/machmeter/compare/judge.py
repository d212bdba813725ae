"""The judgement of a comparison: what got faster, slower, heavier or less accurate, and how sure we are.

Pure. The unit is the process. Pairs of one round are judged by their log ratios (`statistics`), the whole table at a
false-discovery rate, and nothing below the smallest change that counts for its metric (`limits`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from machmeter.compare import comparable, limits, pairing, statistics, verdicts
from machmeter.compare.documents import Comparison, Described, Finding, Lone, Mean, Measurements, Shift, Side, Verdict
from machmeter.compare.pairing import Pair
from machmeter.compare.statistics import Judged
from machmeter.text.numbers import plural

_RANK: dict[Verdict, int] = {
    "regression": 0,
    "improvement": 1,
    "changed": 2,
    "undecided": 3,
    "not judged": 4,
    "no change": 5,
}
_MOST = 1e300


def compare(measurements: Measurements) -> Comparison:
    """Judge what was measured."""
    base, head = measurements.base, measurements.head
    incomparable = comparable.reasons(base, head)
    pairs, lone = pairing.sort(base, head, interleaved=measurements.interleaved)
    findings: list[Finding] = []
    shift: Shift | None = None
    if not incomparable:
        shift = _shift([pair for pair in pairs if pair.control])
        findings = _findings([pair for pair in pairs if not pair.control], shift, measurements.interleaved)
    return Comparison(
        machine=measurements.machine,
        base=_described(base),
        head=_described(head),
        result=_result(measurements, bool(incomparable), findings, lone),
        incomparable=incomparable[:50],
        shift=shift,
        findings=findings,
        lone=lone,
        packages=comparable.differences(base, head),
        means=_means(findings),
        host=dict(head.host or base.host),
        rounds=measurements.rounds,
        interleaved=measurements.interleaved,
        seconds=measurements.seconds,
        notes=[*_notes(pairs, lone), *measurements.notes][:100],
    )


def undecided(measurements: Measurements) -> set[pairing.Key]:
    """Return the cells and metrics of which more rounds would say more.

    Those are the undecided ones, those with too few undisturbed rounds so far, and findings that only just are some:
    what is looked at after every round would otherwise be found by chance in the end. Never what is measured once.
    """
    findings = compare(measurements).findings
    few = {
        (pair.cell, pair.metric)
        for pair in pairing.sort(measurements.base, measurements.head, interleaved=measurements.interleaved)[0]
        if pair.why_not and not pair.control
    }
    return {
        (item.cell, item.metric)
        for item in findings
        if item.verdict == "undecided"
        or (item.verdict == "not judged" and (item.cell, item.metric) in few)
        or (
            item.q is not None and limits.CONFIRMED < item.q <= limits.FALSE_DISCOVERIES and item.verdict != "no change"
        )
    }


# ------------------------------------------------------------------ what the numbers say


def _findings(pairs: Sequence[Pair], shift: Shift | None, interleaved: bool) -> list[Finding]:
    judged = statistics.judge_all(pairs)
    known = [item.p for item in judged if item.p is not None]
    corrected = iter(statistics.discoveries(np.array(known, float)).tolist())
    found = [
        _finding(item, next(corrected) if item.p is not None else None, shift, interleaved=interleaved)
        for item in judged
    ]
    return sorted(found, key=lambda item: (_RANK[item.verdict], -_effect(item), item.cell, item.metric))


def _shift(controls: Sequence[Pair]) -> Shift | None:
    """Return the control that moved farthest, if one certainly moved by more than what counts."""
    moved = []
    judged = [item for item in statistics.judge_all(controls) if item.p is not None]
    corrected = statistics.discoveries(np.array([item.p for item in judged], float))
    for item, q in zip(judged, corrected, strict=True):
        if item.middle is None or item.low is None or item.high is None or not item.within:
            continue
        if q <= limits.FALSE_DISCOVERIES and abs(item.middle) >= math.log1p(item.pair.limit.smallest(1.0)):
            moved.append(item)
    if not moved:
        return None
    farthest = max(moved, key=lambda item: abs(item.middle or 0.0))
    assert farthest.middle is not None
    assert farthest.low is not None
    assert farthest.high is not None
    return Shift(
        ratio=math.exp(farthest.middle),
        low=math.exp(farthest.low),
        high=math.exp(farthest.high),
        control=farthest.pair.cell,
    )


def _finding(item: Judged, q: float | None, shift: Shift | None, *, interleaved: bool) -> Finding:
    pair = item.pair
    base, head = pair.middle
    smallest = pair.limit.smallest(base, once=pair.once)
    if not pair.once and not interleaved:
        smallest = max(smallest, limits.BETWEEN_BLOCKS)
    ratio, low, high = _ratios(item, base, head)
    verdict, words = verdicts.verdict(item, q, smallest)
    if shift and limits.follows_the_machine(pair.metric, pair.unit):
        verdict, words = verdicts.under(shift, item, verdict, words)
    return Finding(
        cell=pair.cell,
        metric=pair.metric,
        unit=pair.unit,
        better=pair.better,
        verdict=verdict,
        base=_bounded(base),
        head=_bounded(head),
        ratio=ratio,
        low=low,
        high=high,
        p=item.p,
        q=q,
        minimum=min(smallest, _MOST),
        pairs=min(len(pair.base), len(pair.head)),
        words=words[:1000],
    )


def _bounded(value: float) -> float:
    """Return `value` as a document can hold it: a unit's factor may have made it larger."""
    return max(-_MOST, min(_MOST, value))


def _ratios(item: Judged, base: float, head: float) -> tuple[float | None, float | None, float | None]:
    """Return the ratio and its interval; the ratio alone where nothing is known of its certainty."""
    if item.middle is not None and item.within:
        assert item.low is not None
        assert item.high is not None
        return math.exp(item.middle), math.exp(item.low), math.exp(item.high)
    if pairing.is_usable(base) and pairing.is_usable(head):
        logarithm = math.log(head) - math.log(base)
        return (math.exp(logarithm) if abs(logarithm) < statistics.LARGEST_LOGARITHM else None), None, None
    return None, None, None


def _effect(item: Finding) -> float:
    if item.ratio is None:
        return 0.0 if item.base == item.head else math.inf
    return abs(math.log(item.ratio))


# ------------------------------------------------------------------ the whole


def _result(
    measurements: Measurements, incomparable: bool, findings: Sequence[Finding], lone: Sequence[Lone]
) -> Literal["no regression", "regression", "could not judge"]:
    """Return what a script should be told."""
    if measurements.head.error and not measurements.base.error:
        return "regression"  # base can be measured and head cannot
    if any(item.kind == "failed" for item in lone) or any(item.verdict == "regression" for item in findings):
        if not incomparable and not measurements.base.error:
            return "regression"
        return "could not judge"
    timed = [item for item in findings if not _known_once(item)]
    decided = [item for item in timed or findings if item.verdict not in ("undecided", "not judged")]
    if incomparable or measurements.base.error or not decided:
        return "could not judge"
    return "no regression"


def _known_once(item: Finding) -> bool:
    limit = limits.limit(item.metric, item.unit)
    return limit.exact or (limit.once > 0.0 and item.pairs < limits.LEAST_PAIRS)


def _described(side: Side) -> Described:
    return Described(
        label=side.label, commit=side.commit, environment=side.environment, stack=side.stack, error=side.error
    )


def _means(findings: Iterable[Finding]) -> list[Mean]:
    """Return the geometric mean of each metric over its judged cells; none of shares and decibels, nor of few cells."""
    logarithms: dict[str, list[float]] = {}
    for item in findings:
        judged = item.verdict not in ("undecided", "not judged")
        if judged and item.ratio is not None and not limits.limit(item.metric, item.unit).absolute:
            logarithms.setdefault(item.metric, []).append(math.log(item.ratio))
    return [
        Mean(metric=metric, ratio=math.exp(math.fsum(some) / len(some)), cells=len(some))
        for metric, some in list(logarithms.items())[:100]
        if len(some) >= limits.LEAST_CELLS
    ]


def _notes(pairs: Sequence[Pair], lone: Sequence[Lone]) -> list[str]:
    found = []
    if not pairs:
        why = "no number can be put side by side" if lone else "no number is on both sides"
        found.append(f"there is nothing to compare: {why}")
    elif all(pair.control for pair in pairs):
        controls = plural(len(pairs), "control")
        found.append(f"there is nothing to compare but {controls}: what measures the machine says nothing of a change")
    if left_out := sum(pair.left_out for pair in pairs):
        were = "measurements were" if left_out > 1 else "measurement was"
        found.append(f"{left_out} {were} left out: other programs had the CPUs meanwhile")
    return found
