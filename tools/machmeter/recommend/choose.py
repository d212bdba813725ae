"""Choose among candidates: the fastest that keeps to every limit, and what each limit cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from machmeter.errors import NothingMeets
from machmeter.recommend.candidates import Candidate
from machmeter.recommend.demands import Limit


@dataclass(frozen=True, kw_only=True)
class Excluded:
    """What one limit left out, whether or not another limit left it out as well."""

    limit: Limit
    count: int
    fastest: Candidate | None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The fastest configuration that keeps to every limit, the next one, and what the limits left out."""

    recommended: Candidate
    runner_up: Candidate | None
    excluded: tuple[Excluded, ...]
    considered: int


def judge(candidates: Iterable[Candidate], limits: Sequence[Limit]) -> Verdict:
    """Return the verdict on `candidates` (at least one). Raises NothingMeets where none keeps to all `limits`."""
    known = sorted(candidates, key=lambda candidate: (-candidate.images_per_second, candidate.name))
    fit = [candidate for candidate in known if all(limit.met(candidate) for limit in limits)]
    if not fit:
        raise NothingMeets(_nothing(known, limits))
    return Verdict(
        recommended=fit[0],
        runner_up=fit[1] if len(fit) > 1 else None,
        excluded=tuple(_excluded(known, limit) for limit in limits),
        considered=len(known),
    )


def _excluded(known: Sequence[Candidate], limit: Limit) -> Excluded:
    out = [candidate for candidate in known if not limit.met(candidate)]
    return Excluded(limit=limit, count=len(out), fastest=out[0] if out else None)


def _nothing(known: Sequence[Candidate], limits: Sequence[Limit]) -> str:
    """Say in one line that nothing meets the limits, and what comes closest to each."""
    closest = []
    for limit in limits:
        measured = [(value, candidate) for candidate in known if (value := limit.value(candidate)) is not None]
        if not measured:
            closest.append(f"closest by {limit.kind}: none, as it was not measured")
            continue
        pick = min if limit.at_most else max
        _, candidate = pick(measured, key=lambda pair: pair[0])
        closest.append(f"closest by {limit.kind}: {candidate.name} ({limit.described(candidate)})")
    asked = " and ".join(limit.option for limit in limits)
    return f"none of {len(known)} measured configurations of {known[0].model} meets {asked}; {'; '.join(closest)}"
