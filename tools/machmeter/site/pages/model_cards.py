"""The cards of models on the first page: what is fastest, and what is fastest with the same answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from machmeter.site import plots
from machmeter.tables.cells_table import Row
from machmeter.tables.ladder_table import LadderTable
from machmeter.text import numbers

KEEPS_ANSWERS = 0.99  # share of images with the class of fp32 from which answers count as the same


@dataclass(frozen=True, kw_only=True)
class Best:
    """A configuration and what is said of it."""

    name: str
    times: str
    speed: str
    p50: str
    answers: str


@dataclass(frozen=True, kw_only=True)
class BestRung:
    """The best rung of a model of which only the ladder was measured."""

    times: str
    title: str
    speed: str
    answers: str
    counts: str


@dataclass(frozen=True, kw_only=True)
class Card:
    """The card of a model."""

    name: str
    href: str
    bars: Markup | None
    best: Best | None
    exact: Best | None
    best_is_exact: bool
    rung: BestRung | None
    counts: str


def card(name: str, rows: Sequence[Row], href: str, climbed: LadderTable | None) -> Card:
    """Return the card of the model `name`, whose page is `href`, from the rows of its cells and its ladder."""
    measured = [row for row in rows if row.status == "ok" and row.images_per_second]
    ranked = sorted(measured, key=lambda row: -(row.times_eager or 0.0))
    best = ranked[0] if ranked else None
    exact = next((row for row in ranked if (row.top1_agreement or 0.0) >= KEEPS_ANSWERS), None)
    counts = Counter(row.status for row in rows)
    said = [f"{counts[status]} {status}" for status in ("ok", "failed", "n/a", "running", "not run") if counts[status]]
    return Card(
        name=name,
        href=href,
        bars=_bars(name, measured, best, exact),
        best=_best(best) if best else None,
        exact=_best(exact) if exact and exact is not best else None,
        best_is_exact=exact is not None and exact is best,
        rung=_rung(climbed) if climbed and not best else None,
        counts=", ".join(said),
    )


def _rung(climbed: LadderTable) -> BestRung | None:
    """Return the best rung of a model of which only the ladder was measured."""
    measured = [row for row in climbed.rows if row.status == "ok" and row.times_first]
    best = max(measured, key=lambda row: row.times_first or 0.0, default=None)
    if best is None:
        return None
    agreement = "" if best.top1_agreement is None else f"top-1 agreement {best.top1_agreement:.3f}"
    return BestRung(
        times=numbers.ratio(best.times_first),
        title=best.title,
        speed=f"{numbers.speed(best.images_per_second)} images/s, batch {best.batch}",
        answers=agreement,
        counts=f"{numbers.plural(len(measured), 'rung')} of the tuning ladder",
    )


def _bars(model: str, measured: list[Row], best: Row | None, exact: Row | None) -> Markup | None:
    """Draw what a reader compares: eager fp32 at the batch of the fastest, what keeps the answers, the fastest."""
    if best is None or not best.times_eager:
        return None
    bars = [plots.Bar(name="eager fp32", value=1.0, shown="×1", kind="first")]
    if exact is not None and exact is not best and exact.times_eager:
        bars.append(
            plots.Bar(
                name="same answers",
                value=exact.times_eager,
                shown=numbers.ratio(exact.times_eager),
                title=configuration(exact),
            )
        )
    bars.append(
        plots.Bar(
            name="fastest",
            value=best.times_eager,
            shown=numbers.ratio(best.times_eager),
            kind="best",
            title=configuration(best),
        )
    )
    return plots.bars(bars, label=f"{model}: multiples of eager fp32")


def _best(row: Row) -> Best:
    answers = [
        f"top-1 agreement {row.top1_agreement:.3f}" if row.top1_agreement is not None else "",
        f"SQNR {sqnr:.1f} dB" if (sqnr := row.facts.get("sqnr_db")) is not None else "",
    ]
    return Best(
        name=configuration(row),
        times=numbers.ratio(row.times_eager),
        speed=f"{numbers.speed(row.images_per_second)} images/s",
        p50=numbers.NONE if row.p50_ms is None else f"{row.p50_ms:.2f} ms",
        answers=", ".join(part for part in answers if part) or "not compared",
    )


def configuration(row: Row, *, batch: bool = True) -> str:
    """Return a cell as words: backend, precision, options, batch."""
    options = "" if row.options in ("contiguous", "") else row.options
    return " ".join(
        part for part in (row.backend, row.precision, options, f"batch {row.batch}" if batch else "") if part
    )
