"""The first page: what is fastest and still right, what is new, what is missing."""

from __future__ import annotations

from collections import Counter
from typing import Any

from markupsafe import Markup

from machmeter.history.data import History, Machine
from machmeter.history.missing import still_run
from machmeter.site import plots
from machmeter.site.pages import changes
from machmeter.site.pages.machmeter_tables import Own
from machmeter.site.pages.shared import Site
from machmeter.store import columns
from machmeter.tables.cells_table import Row
from machmeter.tables.ladder_table import LadderTable
from machmeter.tables.show_cells import machine_lines
from machmeter.text import numbers

KEEPS_ANSWERS = 0.99  # share of images with the class of fp32 from which answers count as the same
SHOWN = 10
RECENT_DAYS = 180


def context(site: Site, own: Own) -> dict[str, Any]:
    """Return what the first page shows."""
    history = site.history
    every = site.changes
    since = max((commit.date for commit in history.commits), default=0) - RECENT_DAYS * 86_400_000
    recent = [change for change in every if site.commit(change).date >= since]
    steps = [changes.row(change, site) for change in (recent or every)[:SHOWN]]
    return {
        "home": {
            "lead": _lead(site, own),
            "banners": _banners(site),
            "machines": [_machine(machine, site, own) for machine in history.machines],
            "changes": steps,
            "changes_title": "Recent changes" if recent or not every else "Changes",
            "no_changes": "No series has a significant change."
            if any(len(item) > 3 for item in history.series)
            else "No series is long enough yet to show a change.",
            "history": _sentence(history),
            "modules": modules(history),
        },
        "changes_caption": _changes_caption(len(recent), len(every)),
    }


def _changes_caption(recent: int, every: int) -> str:
    if recent:
        said = numbers.plural(recent, "change")
        return f"The most important of {said} in the {RECENT_DAYS} days before the newest commit"
    return f"None in the {RECENT_DAYS} days before the newest commit; the most important of all {every}"


def _lead(site: Site, own: Own) -> str:
    if own.tables:
        return (
            "Which deep-learning inference configuration is fastest on each machine, and does it still give the same "
            "answers? Every speed is a multiple of plain eager fp32 PyTorch at the same batch."
        )
    return f"The performance of {site.name} over its history: every benchmark, on every machine, as asv measured it."


def _sentence(history: History) -> str:
    return (
        f"{numbers.plural(len(history.benchmarks), 'benchmark')} "
        f"over {numbers.plural(len(history.commits), 'commit')}, "
        f"{numbers.plural(len(history.series), 'series', 'series')}."
    )


def modules(history: History) -> list[dict[str, Any]]:
    """Return the modules of the benchmarks with their number of benchmarks."""
    counted = Counter(benchmark.module for benchmark in history.benchmarks)
    return [
        {"name": name or "(no module)", "anchor": f"m-{numbers.slug(name)}", "count": count}
        for name, count in sorted(counted.items())
    ]


def _banners(site: Site) -> list[dict[str, Any]]:
    history, found = site.history, []
    newest = still_run(history)
    failed = sum(int(item.state[-1]) in (columns.FAILED, columns.UNREADABLE) for item in newest)
    if newest and failed:
        share = 100 * failed / len(newest)
        text = (
            f"{numbers.plural(failed, 'series', 'series')} of {len(newest)} ({numbers.digits(share, 2)} %) "
            "have no number because they failed when they were last run."
        )
        found.append({"text": text, "bad": share >= 5, "href": "failures.html", "link": "Which, and why"})
    if history.left_out:
        files = len({item.path for item in history.left_out})
        text = f"{numbers.plural(files, 'file')} could not be used, wholly or in part."
        found.append({"text": text, "bad": False, "href": "failures.html#left-out", "link": "Which, and why"})
    if history.orphans:
        text = (
            f"{numbers.plural(history.orphans, 'commit')} with results {'is' if history.orphans == 1 else 'are'} "
            "not in the repository any more: shown by date."
        )
        found.append({"text": text, "bad": False, "href": "machines.html#commits", "link": "Which"})
    return found


def _machine(machine: Machine, site: Site, own: Own) -> dict[str, Any]:
    built = own.tables.get(machine.key)
    rows = built.rows if built else ()
    links = {link.model: link.href for link in site.models if link.machine.key == machine.key}
    counts = Counter(row.status for row in rows)
    said = [numbers.plural(counts[name], f"{name} cell") for name in ("failed", "n/a", "not run") if counts[name]]
    return {
        "title": machine.name,
        "facts": machine_lines(machine.name, built.host)[0].partition(": ")[2] if built else facts(machine),
        "models": [
            _model(
                model, [row for row in rows if row.model == model], links[model], own.ladders.get((machine.key, model))
            )
            for model in own.models(machine)
        ],
        "counts": f"Without a number: {', '.join(said)}." if said else "",
    }


def facts(machine: Machine) -> str:
    """Return what asv noted of a machine, in one line."""
    names = {"cpu": "", "num_cpu": "CPUs", "ram": "memory", "os": "", "arch": ""}
    said = []
    for name, called in names.items():
        value = machine.facts.get(name)
        if value and name == "ram" and value.isdigit():
            value = numbers.value(float(value), "bytes")
        if value:
            said.append(f"{value} {called}".strip())
    return ", ".join(said)


def _model(name: str, rows: list[Row], href: str, climbed: LadderTable | None) -> dict[str, Any]:
    measured = [row for row in rows if row.status == "ok" and row.images_per_second]
    ranked = sorted(measured, key=lambda row: -(row.times_eager or 0.0))
    best = ranked[0] if ranked else None
    exact = next((row for row in ranked if (row.top1_agreement or 0.0) >= KEEPS_ANSWERS), None)
    counts = Counter(row.status for row in rows)
    said = [f"{counts[status]} {status}" for status in ("ok", "failed", "n/a", "running", "not run") if counts[status]]
    return {
        "name": name,
        "href": href,
        "bars": _bars(name, measured, best, exact),
        "best": _best(best) if best else None,
        "exact": _best(exact) if exact and exact is not best else None,
        "best_is_exact": exact is not None and exact is best,
        "rung": _rung(climbed) if climbed and not best else None,
        "counts": ", ".join(said),
    }


def _rung(climbed: LadderTable) -> dict[str, str] | None:
    """Return the best rung of a model of which only the ladder was measured."""
    measured = [row for row in climbed.rows if row.status == "ok" and row.times_first]
    best = max(measured, key=lambda row: row.times_first or 0.0, default=None)
    if best is None:
        return None
    agreement = "" if best.top1_agreement is None else f"top-1 agreement {best.top1_agreement:.3f}"
    return {
        "times": numbers.ratio(best.times_first),
        "title": best.title,
        "speed": f"{numbers.speed(best.images_per_second)} images/s, batch {best.batch}",
        "answers": agreement,
        "counts": f"{numbers.plural(len(measured), 'rung')} of the tuning ladder",
    }


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


def _best(row: Row) -> dict[str, str]:
    answers = [
        f"top-1 agreement {row.top1_agreement:.3f}" if row.top1_agreement is not None else "",
        f"SQNR {sqnr:.1f} dB" if (sqnr := row.facts.get("sqnr_db")) is not None else "",
    ]
    return {
        "name": configuration(row),
        "times": numbers.ratio(row.times_eager),
        "speed": f"{numbers.speed(row.images_per_second)} images/s",
        "p50": numbers.NONE if row.p50_ms is None else f"{row.p50_ms:.2f} ms",
        "answers": ", ".join(part for part in answers if part) or "not compared",
    }


def configuration(row: Row, *, batch: bool = True) -> str:
    """Return a cell as words: backend, precision, options, batch."""
    options = "" if row.options in ("contiguous", "") else row.options
    return " ".join(
        part for part in (row.backend, row.precision, options, f"batch {row.batch}" if batch else "") if part
    )
