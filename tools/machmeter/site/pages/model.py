"""The page of one model on one machine: table, fidelity, batch scaling, ladder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from machmeter.history.data import History, Machine
from machmeter.machine import disturbance
from machmeter.site import plots, svg
from machmeter.site.pages.home import configuration
from machmeter.site.pages.machmeter_tables import Own
from machmeter.site.pages.shared import ModelLink, Site, history_href
from machmeter.tables import claims
from machmeter.tables.cells_table import Row, Table
from machmeter.tables.ladder_table import LadderRow, LadderTable
from machmeter.tables.show_cells import machine_lines
from machmeter.text import numbers


def context(link: ModelLink, site: Site, own: Own) -> dict[str, Any]:
    """Return what the page of `link` shows."""
    machine, name = link.machine, link.model
    built = own.tables.get(machine.key)
    rows = [row for row in built.rows if row.model == name] if built else []
    measured = [row for row in rows if row.status == "ok" and row.images_per_second]
    backends = list(dict.fromkeys(row.backend for row in measured))
    climbed = own.ladders.get((machine.key, name))
    lines = machine_lines(machine.name, built.host) if built else []
    return {
        "model": {
            "machine": machine.name,
            "host": "; ".join(line.partition(": ")[2] if not number else line for number, line in enumerate(lines)),
            "lead": _lead(measured),
            "siblings": [
                {"title": other.model, "href": other.href, "here": other.model == name}
                for other in site.models
                if other.machine.key == machine.key
            ],
            "others": _others(link, site),
            "caption": f"Every measured configuration of {name} on {machine.name}, fastest first",
            "notes": _notes(built, rows),
            "rows": [_row(row, machine, site.history) for row in measured],
            "offline": any(row.facts.get("offline_images_per_second") is not None for row in measured),
            **_fidelity(measured, backends),
            "scaling": _scaling(measured, backends, name),
            "claims": _claims(name, rows, climbed),
            "ladder": _ladder(climbed) if climbed else None,
            "without": [_without(row) for row in rows if row.status != "ok"],
        }
    }


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


def _others(link: ModelLink, site: Site) -> list[dict[str, str]]:
    return [
        {"title": other.machine.name, "href": other.href}
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


def _row(row: Row, machine: Machine, history: History) -> dict[str, Any]:
    device = "" if "." in row.backend else "cpu."  # "cuda.eager" says its own
    name = f"{device}{row.backend}.{row.model}.time_forward"
    benchmark = next((item for item in history.benchmarks if item.name == name), None)
    found = row.as_json()
    found["disturbed"] = row.reason if row.status == "ok" and disturbance.MARK in (row.reason or "") else ""
    found["href"] = history_href(benchmark) if benchmark else "benchmarks.html"
    return found


def _without(row: Row) -> dict[str, Any]:
    return {
        "status": row.status,
        "name": configuration(row, batch=False),
        "batch": row.batch,
        "reason": row.reason or "no reason on record",
    }


# From 60 dB on the error is below a thousandth: what is beyond is the rounding of fp32, and no better answer.
CLEAN_DB = 60.0


def _fidelity(measured: Sequence[Row], backends: list[str]) -> dict[str, Any]:
    """Return the plots of speed against fidelity: SQNR, which tells more apart, and agreement, which users feel."""
    found: list[dict[str, Any]] = []
    fronts: list[set[str]] = []
    for what, title in (
        ("sqnr_db", f"SQNR dB, {CLEAN_DB:.0f} stands for any above"),
        ("top1_agreement", "top-1 agreement"),
    ):
        rows = [row for row in measured if row.facts.get(what) is not None]
        if len(rows) < 2:
            continue
        at = [(min(row.facts[what] or 0.0, CLEAN_DB), row.images_per_second or 0.0) for row in rows]
        best = plots.pareto(at)
        points = [
            plots.Point(name=configuration(row), x=x, y=y, index=backends.index(row.backend), front=number in best)
            for number, (row, (x, y)) in enumerate(zip(rows, at, strict=True))
        ]
        label = f"Images per second over {title} of {len(rows)} configurations; {len(best)} are on the front"
        found.append(
            {
                "svg": plots.fidelity(points, x_title=title, label=label),
                "caption": f"Images per second over {title.split(' dB')[0]}.",
            }
        )
        fronts.append({configuration(row) for number, row in enumerate(rows) if number in best})
    front = [row for row in measured if any(configuration(row) in names for names in fronts)]
    return {
        "fidelity": found,
        "fidelity_legend": [
            {"name": name, "swatch": svg.swatch(number, dot=True)} for number, name in enumerate(backends)
        ],
        "front": [
            {
                "name": configuration(row),
                "y": row.images_per_second,
                "sqnr": row.facts.get("sqnr_db"),
                "top1": row.top1_agreement,
            }
            for row in sorted(front, key=lambda row: -(row.images_per_second or 0.0))
        ],
        "front_axis": "SQNR or top-1 agreement",
    }


_DASHES = {"fp32": "", "bf16": " d2", "tf32": " d4", "fp16": " d2", "int8": " d3", "int8-dynamic": " d4"}


def _scaling(measured: Sequence[Row], backends: list[str], name: str) -> dict[str, Any] | None:
    """Return throughput and latency over the batch; nothing where only one batch was measured."""
    batches = sorted({row.batch for row in measured})
    if len(batches) < 2:
        return None
    groups: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for row in measured:
        groups.setdefault((row.backend, row.precision), {}).setdefault(row.options, []).append(row)
    speed, latency, legend = [], [], []
    for (backend, precision), by_options in sorted(groups.items()):
        # The options that are fastest at the largest batch speak for the backend and precision.
        options = max(
            by_options, key=lambda key: max((row.batch, row.images_per_second or 0.0) for row in by_options[key])
        )
        chosen = sorted(by_options[options], key=lambda row: row.batch)
        shown = configuration(chosen[0], batch=False)
        common: dict[str, Any] = {
            "name": shown,
            "x": [float(row.batch) for row in chosen],
            "index": backends.index(backend),
            "dashed": _DASHES.get(precision, " d4"),
        }
        speed.append(plots.Line(y=[row.images_per_second or 0.0 for row in chosen], **common))
        latency.append(plots.Line(y=[(row.p50_ms or 0.0) / 1e3 for row in chosen], **common))
        legend.append({"name": shown, "swatch": svg.swatch(common["index"], dashed=common["dashed"])})
    return {
        "speed": plots.scaling(
            speed, unit="images/s", label=f"Images per second of {name} over the batch, {len(speed)} lines"
        ),
        "latency": plots.scaling(
            latency, unit="seconds", label=f"Latency of {name} over the batch, {len(latency)} lines"
        ),
        "legend": legend,
    }


SHOWN_MISSING = 3  # of the cells that a claim lacks


def _claims(name: str, rows: Sequence[Row], climbed: LadderTable | None) -> list[dict[str, str]]:
    """Return what this machine says of published claims; nothing where it can judge none of them."""
    answers = claims.judge(claims.load(), name, rows, climbed.rows if climbed else ())
    if all(answer.holds == "cannot say" for answer in answers):
        return []
    found = []
    for answer in answers:
        more = len(answer.missing) - SHOWN_MISSING
        missing = "; ".join(answer.missing[:SHOWN_MISSING]) + (f"; and {more} more" if more > 0 else "")
        here = answer.here + (". " if answer.here and missing else "") + (f"Missing: {missing}" if missing else "")
        claim = answer.claim
        found.append({"text": claim.text, "source": claim.source, "here": here, "holds": answer.holds})
    return found


def _ladder(built: LadderTable) -> dict[str, Any]:
    measured = [row for row in built.rows if row.status == "ok"]
    titles = {row.rung: row.title for row in built.rows}
    fastest = max(measured, key=lambda row: row.images_per_second or 0.0, default=None)
    bars = [
        plots.Bar(
            name=row.title if len(row.title) <= 36 else row.rung,
            value=row.images_per_second or 0.0,
            shown=numbers.speed(row.images_per_second),
            gain=_gain(row, titles),
            kind="slower" if row.slower else "first" if row.on is None else "best" if row is fastest else "",
            title=f"{row.title}: {numbers.speed(row.images_per_second)} images/s {_gain(row, titles)}".strip(),
        )
        for row in measured
    ]
    return {
        "svg": plots.ladder(bars, label=f"The tuning ladder of {built.model}: images per second of {len(bars)} rungs"),
        "rows": [{**row.as_json(), "on": titles.get(row.on or "")} for row in measured],
        "others": [
            {"status": row.status, "title": row.title, "reason": row.reason} for row in built.rows if row.status != "ok"
        ],
        "notes": list(built.notes),
    }


def _gain(row: LadderRow, titles: dict[str, str]) -> str:
    if row.times_below is None:
        return ""
    below = row.on if row.on and len(titles.get(row.on, "")) > 20 else titles.get(row.on or "", row.on or "")
    return f"×{row.times_below:.2f} on {below}"
