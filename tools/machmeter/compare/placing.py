"""What two sides have in common, and what cannot be put side by side: failed, new, removed, another version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from machmeter.compare import pairing
from machmeter.compare.documents import Lone, Row, Side
from machmeter.compare.pairing import Pair

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
