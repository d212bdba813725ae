"""What of a metric's processes can be judged: the pairs of a round, or why there are none."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median

from machmeter import metrics, units
from machmeter.compare import limits, pairing
from machmeter.compare.documents import Better, Lone, Process, Row, Side
from machmeter.machine import disturbance
from machmeter.metrics import Limit


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One metric of one cell that both sides have, in one unit."""

    cell: str
    metric: str
    unit: str
    better: Better
    limit: Limit
    control: bool
    base: tuple[float, ...]  # values of processes; those of equal place are a pair where `matched`
    head: tuple[float, ...]
    matched: bool  # the values of equal place are of one round
    why_not: str = ""  # why nothing can be said of it
    left_out: int = 0  # pairs with a disturbed process

    @property
    def middle(self) -> tuple[float, float]:
        """Return the median of each side."""
        return median(self.base), median(self.head)

    @property
    def once(self) -> bool:
        """Return whether its size alone decides: it is the same every time, or nearly, and was measured rarely."""
        rarely = min(len(self.base), len(self.head)) < limits.LEAST_PAIRS
        return self.limit.exact or (self.limit.once > 0.0 and rarely)


def difference(base: Row, head: Row) -> str:
    """Return why two rows of one name measure different things, or "" where they do not."""
    if base.version != head.version:
        return "another version of the benchmark: it measures something else"
    if units.base(base.unit)[1] != units.base(head.unit)[1]:
        return f"the unit was {base.unit or 'none'} and is {head.unit or 'none'}"
    return ""


def pair(base: Row, head: Row, *, interleaved: bool) -> Pair:
    """Put two rows of one thing side by side, in one unit: see `difference`."""
    unit, factors = head.unit, (1.0, 1.0)
    if base.unit != head.unit:
        (first, unit), (second, _) = units.base(base.unit), units.base(head.unit)
        factors = (first, second)
    found = Pair(
        cell=head.cell,
        metric=head.metric,
        unit=unit,
        better=_better(base, head),
        limit=limits.limit(head.metric, units.base(head.unit)[1]),
        control=base.control and head.control,
        base=_values(base.processes, factors[0]),
        head=_values(head.processes, factors[1]),
        matched=False,
    )
    if limits.cannot_be_negative(unit) and min(*found.base, *found.head) < 0.0:
        return replace(found, why_not="a value is negative, which nothing in this unit can be")
    if found.limit.exact or found.once:
        return found
    return _matched(found, base, head, factors) if interleaved else _blocks(found, base, head, factors)


def _values(processes: Iterable[Process], factor: float = 1.0) -> tuple[float, ...]:
    return tuple(process.value * factor for process in processes)


def _better(base: Row, head: Row) -> Better:
    """Return which way is better: our own table before what the measurements say, which may be anybody's."""
    try:
        ours = metrics.metric(head.metric)
    except KeyError:
        return head.better if base.better == head.better else "unknown"
    return ours.better if units.base(head.unit)[1] == units.base(ours.unit)[1] else head.better


def _matched(found: Pair, base: Row, head: Row, factors: tuple[float, float]) -> Pair:
    """Return `found` with the rounds of which both processes were undisturbed."""
    rounds = [_by_round(side.processes) for side in (base, head)]
    common = sorted(rounds[0].keys() & rounds[1].keys())
    quiet = [number for number in common if _quiet(rounds[0][number]) and _quiet(rounds[1][number])]
    first = sum(_first(rounds[0][number]) < _first(rounds[1][number]) for number in quiet)
    left_out = len(common) - len(quiet)
    if not quiet:
        return replace(found, left_out=left_out, why_not=_too_few(found, 0, left_out))
    used = replace(
        found,
        base=tuple(median(_values(rounds[0][number], factors[0])) for number in quiet),
        head=tuple(median(_values(rounds[1][number], factors[1])) for number in quiet),
        matched=True,
        left_out=left_out,
    )
    if len(quiet) < limits.LEAST_PAIRS:
        return replace(used, why_not=_too_few(used, len(quiet), left_out))
    if not 0.25 <= first / len(quiet) <= 0.75:
        return replace(
            used,
            why_not=f"base was measured first in {first} of {len(quiet)} rounds: its place and the change are one",
        )
    return used


def _blocks(found: Pair, base: Row, head: Row, factors: tuple[float, float]) -> Pair:
    """Return `found` with the undisturbed processes of sides that were measured one after the other."""
    quiet = [[process for process in side.processes if _quiet([process])] for side in (base, head)]
    left_out = len(base.processes) + len(head.processes) - len(quiet[0]) - len(quiet[1])
    least = min(map(len, quiet))
    used = replace(
        found,
        base=_values(quiet[0], factors[0]) or found.base,
        head=_values(quiet[1], factors[1]) or found.head,
        left_out=left_out,
    )
    if least >= limits.LEAST_PAIRS:
        return used
    if left_out == 0 and least == 1 and limits.is_repeated(found.metric, found.unit):
        return replace(used, why_not=f"samples of one process: at least {limits.LEAST_PAIRS} rounds are needed")
    return replace(used, why_not=_too_few(used, least, left_out))


def _by_round(processes: Iterable[Process]) -> dict[int, list[Process]]:
    found: dict[int, list[Process]] = {}
    for process in processes:
        found.setdefault(process.round, []).append(process)
    return found


def _first(processes: Iterable[Process]) -> int:
    return min(process.order for process in processes)


def _quiet(processes: Iterable[Process]) -> bool:
    """Return whether nobody is known to have disturbed any of `processes`: of many machines nobody can know."""
    return all((process.disturbed or 0.0) <= disturbance.TOO_MUCH for process in processes)


def _too_few(pair: Pair, count: int, left_out: int) -> str:
    if not left_out and count and not limits.is_repeated(pair.metric, pair.unit):
        times = {1: "once", 2: "twice"}.get(count, f"{count} times")
        return f"measured {times} a side: at least {limits.LEAST_PAIRS} times are needed to tell a change from scatter"
    disturbed = f", and {left_out} in which other programs had the CPUs" if left_out else ""
    return (
        f"{count} undisturbed round{'' if count == 1 else 's'}{disturbed}: "
        f"at least {limits.LEAST_PAIRS} are needed, {limits.ENOUGH_PAIRS} to see 5 %"
    )


def is_usable(value: float) -> bool:
    """Return whether `value` has a logarithm."""
    return 0.0 < value < math.inf


Key = tuple[str, str]  # cell and metric

_KINDS = ("failed", "refused", "failing", "removed", "fixed", "new", "n/a")

_WITHOUT = ("n/a", "not run")


def sort(base: Side, head: Side, *, interleaved: bool) -> tuple[list[Pair], list[Lone]]:
    """Return what both sides have, and what cannot be put side by side, in the order in which it should be read."""
    pairs: list[Pair] = []
    lone: list[Lone] = []
    rows = [_by_key(side.rows) for side in (base, head)]
    twice = {
        key for side in (base, head) for key, count in Counter(_key(row) for row in side.rows).items() if count > 1
    }
    for key in {**rows[0], **rows[1]}:
        before, after = rows[0].get(key), rows[1].get(key)
        if key in twice:
            lone.append(Lone(cell=key[0], metric=key[1], kind="refused", reason="it is there twice on one side"))
        elif _has_number(before) and _has_number(after):
            assert before is not None
            assert after is not None
            if reason := pairing.difference(before, after):
                lone.append(Lone(cell=key[0], metric=key[1], kind="refused", reason=reason))
            else:
                pairs.append(pairing.pair(before, after, interleaved=interleaved))
        elif found := _lone(key, before, after, head.error):
            lone.append(found)
    return pairs, sorted(lone, key=lambda item: _KINDS.index(item.kind))


def _key(row: Row) -> Key:
    return row.cell, row.metric


def _by_key(rows: Iterable[Row]) -> dict[Key, Row]:
    return {_key(row): row for row in rows}


def _has_number(row: Row | None) -> bool:
    return row is not None and row.status == "ok" and bool(row.processes)


def _lone(key: Key, before: Row | None, after: Row | None, error: str) -> Lone | None:
    """Return why `key` has no number on one side or on either; None where nobody tried on either."""

    def made(kind: str, reason: str) -> Lone:
        return Lone(cell=key[0], metric=key[1], kind=kind, reason=reason[:1000])  # type: ignore[arg-type]

    there = _has_number(before)
    if after is None or after.status in _WITHOUT or (after.status == "ok" and not after.processes):
        if there:
            if after is None and error:
                return made("failed", error)
            missing = "not in head" if after is None else after.reason or f"{after.status} in head"
            return made("removed", missing)
        if before is not None and before.status == "failed":
            return made("failing" if after is None and error else "removed", before.reason or "failed in base")
        return made("n/a", after.reason or "n/a on both sides") if before and after and after.status == "n/a" else None
    if after.status == "failed":
        reason = after.reason or "failed"
        # What is new and fails did work nowhere before: it is no regression, and it is told.
        return made("failed" if there else "failing", reason)
    if before is None:
        return made("new", "not in base")
    if before.status == "failed":
        return made("fixed", before.reason or "failed in base")
    return made("new", before.reason or f"{before.status} in base")
