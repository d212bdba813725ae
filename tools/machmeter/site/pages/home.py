"""The first page: what is fastest and still right, what is new, what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from machmeter.history import naming
from machmeter.history.data import History, Machine
from machmeter.history.missing import still_run
from machmeter.site.pages import changes, model_cards
from machmeter.site.pages.machmeter_tables import Own
from machmeter.site.pages.model_cards import Card
from machmeter.site.pages.shared import Site
from machmeter.store import columns
from machmeter.tables.show_cells import machine_lines
from machmeter.text import numbers

SHOWN = 10
RECENT_DAYS = 180


@dataclass(frozen=True, kw_only=True)
class Banner:
    """A line above everything."""

    text: str
    bad: bool
    href: str
    link: str


@dataclass(frozen=True, kw_only=True)
class Module:
    """A module of benchmarks."""

    name: str
    anchor: str
    count: int


@dataclass(frozen=True, kw_only=True)
class ShownMachine:
    """A machine with the cards of its models."""

    title: str
    facts: str
    models: Sequence[Card]
    counts: str


@dataclass(frozen=True, kw_only=True)
class Home:
    """What the first page shows."""

    lead: str
    banners: Sequence[Banner]
    machines: Sequence[ShownMachine]
    changes: Sequence[changes.Row]
    changes_title: str
    no_changes: str
    history: str
    modules: Sequence[Module]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the template of the first page is given."""

    home: Home
    changes_caption: str


def context(site: Site, own: Own) -> Context:
    """Return what the first page shows."""
    history = site.history
    every = site.changes
    since = max((commit.date for commit in history.commits), default=0) - RECENT_DAYS * 86_400_000
    recent = [change for change in every if site.commit(change).date >= since]
    steps = [changes.row(change, site) for change in (recent or every)[:SHOWN]]
    return Context(
        home=Home(
            lead=_lead(site, own),
            banners=_banners(site),
            machines=[_machine(machine, site, own) for machine in history.machines],
            changes=steps,
            changes_title="Recent changes" if recent or not every else "Changes",
            no_changes="No series has a significant change."
            if any(len(item) > 3 for item in history.series)
            else "No series is long enough yet to show a change.",
            history=_sentence(history),
            modules=modules(history),
        ),
        changes_caption=_changes_caption(len(recent), len(every)),
    )


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


def modules(history: History) -> list[Module]:
    """Return the modules of the benchmarks with their number of benchmarks."""
    counted = Counter(benchmark.module for benchmark in history.benchmarks)
    return [
        Module(name=name or "(no module)", anchor=f"m-{naming.anchor(name)}", count=count)
        for name, count in sorted(counted.items())
    ]


def _banners(site: Site) -> list[Banner]:
    history, found = site.history, list[Banner]()
    newest = still_run(history)
    failed = sum(int(item.state[-1]) in (columns.FAILED, columns.UNREADABLE) for item in newest)
    if newest and failed:
        share = 100 * failed / len(newest)
        text = (
            f"{numbers.plural(failed, 'series', 'series')} of {len(newest)} ({numbers.digits(share, 2)} %) "
            "have no number because they failed when they were last run."
        )
        found.append(Banner(text=text, bad=share >= 5, href="failures.html", link="Which, and why"))
    if history.left_out:
        files = len({item.path for item in history.left_out})
        text = f"{numbers.plural(files, 'file')} could not be used, wholly or in part."
        found.append(Banner(text=text, bad=False, href="failures.html#left-out", link="Which, and why"))
    if history.orphans:
        text = (
            f"{numbers.plural(history.orphans, 'commit')} with results {'is' if history.orphans == 1 else 'are'} "
            "not in the repository any more: shown by date."
        )
        found.append(Banner(text=text, bad=False, href="machines.html#commits", link="Which"))
    return found


def _machine(machine: Machine, site: Site, own: Own) -> ShownMachine:
    built = own.tables.get(machine.key)
    rows = built.rows if built else ()
    links = {link.model: link.href for link in site.models if link.machine.key == machine.key}
    counts = Counter(row.status for row in rows)
    said = [numbers.plural(counts[name], f"{name} cell") for name in ("failed", "n/a", "not run") if counts[name]]
    return ShownMachine(
        title=machine.name,
        facts=machine_lines(machine.name, built.host)[0].partition(": ")[2] if built else facts(machine),
        models=[
            model_cards.card(
                model, [row for row in rows if row.model == model], links[model], own.ladders.get((machine.key, model))
            )
            for model in own.models(machine)
        ],
        counts=f"Without a number: {', '.join(said)}." if said else "",
    )


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
