"""The page of one model on one machine: every configuration, claims of others, and what has no number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from machmeter.history.data import History, Machine
from machmeter.machine import disturbance
from machmeter.site.links import ModelLink, history_href
from machmeter.site.pages import grid, ladder, model_plots
from machmeter.site.pages.grid import Badge, Column, Entry, Grid
from machmeter.site.pages.machmeter_tables import Own
from machmeter.site.pages.model_cards import configuration
from machmeter.site.pages.model_plots import Fidelity, Scaling
from machmeter.site.pages.shared import Site
from machmeter.tables import claims
from machmeter.tables.cells_table import Row, Table
from machmeter.tables.ladder_table import LadderTable
from machmeter.tables.show_cells import machine_lines
from machmeter.text import numbers


@dataclass(frozen=True, kw_only=True)
class Sibling:
    """The page of another model or machine."""

    title: str
    href: str
    here: bool = False


@dataclass(frozen=True, kw_only=True)
class Without:
    """A cell without a number."""

    status: str
    name: str
    batch: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What this machine says of a published claim."""

    text: str
    source: str
    here: str
    holds: str


@dataclass(frozen=True, kw_only=True)
class Model:
    """What the page shows."""

    machine: str
    host: str
    lead: str
    siblings: Sequence[Sibling]
    others: Sequence[Sibling]
    caption: str
    notes: Sequence[str]
    rows: Grid[Row]
    fidelity: Fidelity
    scaling: Scaling | None
    claims: Sequence[Claim]
    ladder: ladder.Ladder | None
    without: Sequence[Without]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the template of a model page is given."""

    model: Model


def context(link: ModelLink, site: Site, own: Own) -> Context:
    """Return what the page of `link` shows."""
    machine, name = link.machine, link.model
    built = own.tables.get(machine.key)
    rows = [row for row in built.rows if row.model == name] if built else []
    measured = [row for row in rows if row.status == "ok" and row.images_per_second]
    backends = list(dict.fromkeys(row.backend for row in measured))
    climbed = own.ladders.get((machine.key, name))
    lines = machine_lines(machine.name, built.host) if built else []
    return Context(
        model=Model(
            machine=machine.name,
            host="; ".join(line.partition(": ")[2] if not number else line for number, line in enumerate(lines)),
            lead=_lead(measured),
            siblings=[
                Sibling(title=other.model, href=other.href, here=other.model == name)
                for other in site.models
                if other.machine.key == machine.key
            ],
            others=_others(link, site),
            caption=f"Every measured configuration of {name} on {machine.name}, fastest first",
            notes=_notes(built, rows),
            rows=grid.build(_columns(machine, site.history), "cells", measured),
            fidelity=model_plots.fidelity(measured, backends),
            scaling=model_plots.scaling(measured, backends, name),
            claims=_claims(name, built.rows if built else (), climbed),
            ladder=ladder.section(climbed) if climbed else None,
            without=[_without(row) for row in rows if row.status != "ok"],
        )
    )


def _lead(measured: Sequence[Row]) -> str:
    if not measured:
        return "No configuration has a number yet."
    best = max(measured, key=lambda row: row.images_per_second or 0.0)
    times = f", {numbers.ratio(best.times_eager)} eager fp32 at the same batch" if best.times_eager else ""
    agreement = (
        ""
        if best.top1_agreement is None
        else f" Its first class agrees with fp32 on {100 * best.top1_agreement:.1f} % of the images."
    )
    return (
        f"Fastest of {numbers.plural(len(measured), 'configuration')}: {configuration(best)} with "
        f"{numbers.speed(best.images_per_second)} images/s{times}.{agreement}"
    )


def _others(link: ModelLink, site: Site) -> list[Sibling]:
    return [
        Sibling(title=other.machine.name, href=other.href)
        for other in site.models
        if other.model == link.model and other.machine.key != link.machine.key
    ]


def _notes(built: Table | None, rows: Sequence[Row]) -> list[str]:
    notes = [note for note in built.notes if not note.startswith("left out")] if built else []
    told = [row for row in rows if row.status == "ok" and row.reason]
    disturbed = [row for row in told if disturbance.MARK in row.reason]
    if len(disturbed) > 2:  # said once; the table marks them
        timed = sum(row.status == "ok" for row in rows)
        notes.append(
            f"{len(disturbed)} of {timed} timings were disturbed: other programs had more than a tenth of the CPUs "
            "meanwhile. They are marked in the table, and no gain is claimed from or over them."
        )
        told = [row for row in told if row not in disturbed]
    return notes + [f"{configuration(row)}: {row.reason}" for row in told]


def _columns(machine: Machine, history: History) -> list[Column[Row]]:
    """Return the columns of the table of configurations that are not of a metric alone."""
    known = {benchmark.name: benchmark for benchmark in history.benchmarks}

    def backend(row: Row) -> Entry:
        device = "" if "." in row.backend else "cpu."  # "cuda.eager" says its own
        benchmark = known.get(f"{device}{row.backend}.{row.model}.time_forward")
        return Entry(shown=row.backend, href=history_href(benchmark) if benchmark else "benchmarks.html")

    return [
        Column(heading="Backend", fill=backend, order=1, number=False, filter=True),
        Column(heading="Precision", fill=lambda row: grid.words(row.precision), order=2, number=False, filter=True),
        Column(heading="Options", fill=_options, order=3, number=False, filter=True),
        Column(heading="Batch", fill=lambda row: grid.figure(row.batch, 0), order=4, filter=True),
        Column(heading="Stack", fill=lambda row: grid.words(row.stack), order=5, number=False, extra=True, filter=True),
        Column(heading="images/s", fill=_speed, order=30, sorted="descending"),
        Column(heading="× eager", fill=lambda row: grid.figure(row.times_eager, 2), order=50),
        Column(
            heading="× own fp32",
            fill=lambda row: grid.figure(
                row.times_own_fp32, 2, before=Badge(text="no gain", kind="failed") if row.no_gain else None
            ),
            order=60,
        ),
        Column(heading="p50 ms", fill=lambda row: grid.figure(row.p50_ms, 2), order=62),
        Column(heading="p95 ms", fill=lambda row: grid.figure(row.p95_ms, 2), order=64, extra=True),
        Column(heading="% of peak", fill=lambda row: grid.figure(row.percent_of_peak, 1), order=900, extra=True),
    ]


def _options(row: Row) -> Entry:
    disturbed = row.status == "ok" and disturbance.MARK in (row.reason or "")
    return grid.words(row.options, after=Badge(text="disturbed", title=row.reason) if disturbed else None)


def _speed(row: Row) -> Entry:
    return Entry(shown=numbers.speed(row.images_per_second), value=row.images_per_second)


def _without(row: Row) -> Without:
    return Without(
        status=row.status,
        name=configuration(row, batch=False),
        batch=row.batch,
        reason=row.reason or "no reason on record",
    )


SHOWN_MISSING = 3  # of the cells that a claim lacks


def _claims(name: str, rows: Sequence[Row], climbed: LadderTable | None) -> list[Claim]:
    """Return what a machine with these `rows` says of published claims; nothing where it can judge none of them."""
    known = claims.about_here(claims.load(), rows)
    answers = claims.judge(known, name, rows, climbed.rows if climbed else ())
    if all(answer.holds == "cannot say" for answer in answers):
        return []
    found = []
    for answer in answers:
        more = len(answer.missing) - SHOWN_MISSING
        missing = "; ".join(answer.missing[:SHOWN_MISSING]) + (f"; and {more} more" if more > 0 else "")
        here = answer.here + (". " if answer.here and missing else "") + (f"Missing: {missing}" if missing else "")
        found.append(Claim(text=answer.claim.text, source=answer.claim.source, here=here, holds=answer.holds))
    return found
