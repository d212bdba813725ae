"""Claims that others have published, judged by what was measured on one machine. Pure functions of rows and rungs.

Kinds of claims, over the throughput (images/s) of `of` and `over` at each of `batches`:

    faster        of is ahead of over at every batch       slower        of is behind at every batch
    alike         they are within ALIKE of each other      lead-grows    of / over grows from batch to batch
    scales        of itself grows from batch to batch
    ladder        the fastest rung is at least `times` the first      ladder-steps  no rung is slower than its base

Differences below ALIKE count for nothing. A claim of which a number is missing is not judged: the answer says which.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from machmeter.errors import BadSetting
from machmeter.tables.cells_table import Row
from machmeter.tables.ladder_table import LadderRow
from machmeter.workload import cells

FILE = Path(__file__).with_name("claims.toml")
ALIKE = 0.10  # of a throughput: what two runs of one configuration may differ by on a machine that others use too

KINDS = ("faster", "slower", "alike", "lead-grows", "scales", "ladder", "ladder-steps")
_NEED_OVER = ("faster", "slower", "alike", "lead-grows")

Verdict = Literal["yes", "no", "cannot say"]


@dataclass(frozen=True, kw_only=True)
class Side:
    """The cells that one side of a claim names: None stands for any."""

    backend: str
    precision: str
    options: str | None = None

    def words(self) -> str:
        """Return the side as a reader calls it."""
        return " ".join(part for part in (self.backend, self.precision, self.options) if part)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One published claim."""

    name: str
    text: str
    source: str
    kind: str
    of: Side | None = None
    over: Side | None = None
    batches: tuple[int, ...] = ()
    models: tuple[str, ...] = ()  # of which it was claimed; none named: of any
    times: float | None = None

    def sides(self) -> tuple[Side, ...]:
        """Return the sides that it names."""
        return tuple(side for side in (self.of, self.over) if side)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What this machine says of a claim."""

    claim: Claim
    here: str  # the measured numbers in words
    holds: Verdict
    missing: tuple[str, ...] = field(default=())  # cells without which it cannot be judged


def load(path: Path = FILE) -> tuple[Claim, ...]:
    """Return the claims in `path`. Raises BadSetting where it cannot be used."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        return tuple(_claim(name, item) for name, item in content.items())
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise BadSetting(f"{path} is not a file of claims: {error}") from error


def _claim(name: str, item: Mapping[str, object]) -> Claim:
    fields = dict(item)
    for side in ("of", "over"):
        if isinstance(described := fields.get(side), dict):
            fields[side] = Side(**described)
    for several in ("batches", "models"):
        if isinstance(listed := fields.get(several), list):
            fields[several] = tuple(listed)
    claim = Claim(name=name, **fields)  # type: ignore[arg-type]  # a field that does not exist is a TypeError
    if claim.kind not in KINDS:
        raise ValueError(f"{name}: the kind is {claim.kind!r}, known kinds are {', '.join(KINDS)}")
    ladder = claim.kind.startswith("ladder")
    if (not ladder and not (claim.of and claim.batches)) or (claim.kind in _NEED_OVER and not claim.over):
        raise ValueError(f"{name}: a claim of this kind needs of and batches, and over where it compares")
    if claim.kind == "ladder" and not claim.times:
        raise ValueError(f"{name}: a claim of this kind needs times")
    return claim


def about_here(claims: Sequence[Claim], rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Return the claims about devices that the machine with these `rows` has: none about a GPU where it has none.

    A machine has a GPU where a cell of it was measured, or failed; what is only n/a says that there is none.
    """
    tried = {cells.device(row.backend) for row in rows if row.status in ("ok", "failed", "running")}
    return tuple(claim for claim in claims if {cells.device(side.backend) for side in claim.sides()} <= tried | {"cpu"})


def judge(
    claims: Sequence[Claim], model: str, rows: Sequence[Row], ladder: Sequence[LadderRow] = ()
) -> tuple[Answer, ...]:
    """Return what the `rows` and rungs of one machine say of the claims about `model`."""
    own = [row for row in rows if row.model == model]
    chosen = [claim for claim in claims if not claim.models or model in claim.models]
    return tuple(
        _on_ladder(claim, ladder) if claim.kind.startswith("ladder") else _on_rows(claim, own) for claim in chosen
    )


# ---------------------------------------------------------------------- cells


def _on_rows(claim: Claim, rows: Sequence[Row]) -> Answer:
    assert claim.of is not None
    speeds = {(side, batch): _speed(rows, side, batch) for side in claim.sides() for batch in claim.batches}
    if missing := [
        f"{side.words()} batch {batch}{_why(rows, side, batch)}" for (side, batch), speed in speeds.items() if not speed
    ]:
        return Answer(claim=claim, here=_numbers(claim, speeds), holds="cannot say", missing=tuple(missing))
    numbers = [speeds[claim.of, batch] or 0.0 for batch in claim.batches]
    ratios = [
        number / (speeds[claim.over, batch] or 1.0) if claim.over else number
        for number, batch in zip(numbers, claim.batches, strict=True)
    ]
    return Answer(claim=claim, here=_numbers(claim, speeds), holds="yes" if _true(claim.kind, ratios) else "no")


def _true(kind: str, ratios: Sequence[float]) -> bool:
    if kind == "faster":
        return all(ratio > 1.0 + ALIKE for ratio in ratios)
    if kind == "slower":
        return all(ratio < 1.0 - ALIKE for ratio in ratios)
    if kind == "alike":
        return all(1.0 - ALIKE <= ratio <= 1.0 + ALIKE for ratio in ratios)
    # It grows: from the first to the last by more than noise, and nowhere falls back by more than noise.
    steps = itertools.pairwise(ratios)
    return ratios[-1] > ratios[0] * (1.0 + ALIKE) and all(after > before * (1.0 - ALIKE) for before, after in steps)


def _matching(rows: Sequence[Row], side: Side, batch: int) -> list[Row]:
    return [
        row
        for row in rows
        if (row.backend, row.precision, row.batch) == (side.backend, side.precision, batch)
        and side.options in (None, row.options)
    ]


def _speed(rows: Sequence[Row], side: Side, batch: int) -> float | None:
    """Return the throughput of the fastest cell that `side` names at `batch`, None where none has a number."""
    found = [row.images_per_second for row in _matching(rows, side, batch) if row.status == "ok"]
    return max((speed for speed in found if speed), default=None)


def _why(rows: Sequence[Row], side: Side, batch: int) -> str:
    """Return in words why there is no number, nothing where it was not measured."""
    tried = _matching(rows, side, batch)
    return f" ({tried[0].status}: {tried[0].reason})" if tried and tried[0].reason else ""


def _numbers(claim: Claim, speeds: Mapping[tuple[Side, int], float | None]) -> str:
    of_batches = []
    for batch in claim.batches:
        of = speeds[claim.of, batch] if claim.of else None
        over = speeds[claim.over, batch] if claim.over else None
        if of and over:
            of_batches.append(f"batch {batch}: {of / over:.2f} × ({of:.0f} to {over:.0f} images/s)")
        elif of and not claim.over:
            of_batches.append(f"batch {batch}: {of:.0f} images/s")
    return "; ".join(of_batches)


# ---------------------------------------------------------------------- the ladder


def _on_ladder(claim: Claim, ladder: Sequence[LadderRow]) -> Answer:
    measured = [row for row in ladder if row.status == "ok" and row.images_per_second]
    first = next((row for row in measured if row.on is None), None)
    if first is None or len(measured) < 2:
        return Answer(claim=claim, here="", holds="cannot say", missing=("the ladder (machmeter ladder)",))
    if claim.kind == "ladder":
        best = max(measured, key=lambda row: row.images_per_second or 0.0)
        slow, fast = first.images_per_second or 0.0, best.images_per_second or 0.0
        here = f"{slow:.1f} to {fast:.1f} images/s ({best.rung}), {fast / slow:.1f} times, over {len(measured)} rungs"
        holds: Verdict = "yes" if fast / slow >= (claim.times or 0.0) * (1.0 - ALIKE) else "no"
        return Answer(claim=claim, here=here, holds=holds)
    steps = [row for row in measured if row.times_below is not None]
    slower = [f"{row.rung} {row.times_below:.2f} ×" for row in steps if (row.times_below or 0.0) < 1.0]
    here = f"{len(steps) - len(slower)} of {len(steps)} steps gain"
    if slower:
        here += f"; slower: {', '.join(slower)}"
    return Answer(claim=claim, here=here, holds="no" if slower else "yes")
