"""The history page of one benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from machmeter.history.data import Benchmark, Event, Series
from machmeter.site import history_plot, svg
from machmeter.site.links import commit_name, parameters, reproduce
from machmeter.site.pages import points
from machmeter.site.pages.points import Points
from machmeter.site.pages.shared import Change, Mark, Site
from machmeter.store import columns
from machmeter.store.columns import shown
from machmeter.text import numbers

DRAWN = 5  # lines of the static plot, and columns of the static table


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """What a reader can choose among: `key` is `machine`, `environment`, or the number of a parameter."""

    key: str
    title: str
    values: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class SeriesRow:
    """A series with its newest number."""

    key: str
    chosen: bool
    machine: str
    environment: str
    params: str
    at: str
    stack: str
    value: float | None
    error: str
    sorted_by: str
    day: str
    count: int
    state: str
    reason: str
    change: Change | None


@dataclass(frozen=True, kw_only=True)
class Step:
    """A change in a series that is shown first."""

    verdict: str
    size: float
    words: str
    params: str
    before: float
    after: float
    span: str
    date: int


@dataclass(frozen=True, kw_only=True)
class Around:
    """What changed around the measurements."""

    date: int
    text: str
    commit: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What the page shows."""

    name: str
    unit: str
    direction: str
    direction_words: str
    versions: int
    dimensions: Sequence[Dimension]
    rows: Sequence[SeriesRow]
    never: int
    several_machines: bool
    several_environments: bool
    plot: Markup | None
    legend: Sequence[Mark]
    points: Points
    changes: Sequence[Step]
    events: Sequence[Around]
    reproduce: str


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the template of a history page is given."""

    bench: Bench


def context(benchmark: Benchmark, series: Sequence[Series], site: Site) -> Context:
    """Return what the page of `benchmark` shows; `series` are all of its series."""
    ordered = sorted(series, key=lambda item: (item.machine.name, item.environment.label))
    chosen = default(ordered, site.swept_environments)
    known = [item for item in ordered if has_data(item)]
    dimensions = _dimensions(benchmark, known)
    places = {each.key: {value: at for at, value in enumerate(each.values)} for each in dimensions}
    changes = site.changes_of.get(benchmark.key, ())
    newest = {change.series.key: change for change in sorted(changes, key=lambda change: change.point)}
    events = _events(chosen, site)
    return Context(
        bench=Bench(
            name=benchmark.name,
            unit=benchmark.unit,
            direction=benchmark.direction or "",
            direction_words=direction(benchmark),
            versions=len(benchmark.versions),
            dimensions=dimensions,
            rows=[_row(item, item in chosen, places, newest.get(item.key), site) for item in known],
            never=len(ordered) - len(known),
            several_machines=len({item.machine.key for item in known}) > 1,
            several_environments=len({item.environment.key for item in known}) > 1,
            plot=_plot(benchmark, chosen, changes, events, site),
            legend=[
                Mark(name=points.label(item, ordered), swatch=svg.swatch(number)) for number, item in enumerate(chosen)
            ],
            points=points.newest(chosen, ordered, site),
            changes=[_change(change, site) for change in changes if change.series in chosen],
            events=[
                Around(
                    date=site.history.commits[event.commit].date,
                    text=event.text,
                    commit=commit_name(site.history.commits[event.commit]),
                    kind=event.kind,
                )
                for event in events
            ],
            reproduce=reproduce(chosen[0], site.history.commits[int(chosen[0].commits[-1])].hash[:12])
            if chosen and len(chosen[0])
            else "",
        )
    )


def direction(benchmark: Benchmark) -> str:
    """Return which way is better, in words."""
    if benchmark.direction is None:
        return "nobody said which way is better"
    return f"{benchmark.direction} is better"


def default(series: Sequence[Series], swept: Set[str] = frozenset()) -> list[Series]:
    """Return the series that a reader sees first: those of the machine and environment with the newest number.

    `swept` are the keys of environments that measure one version of a library: they come last.
    """
    if not series:
        return []

    def claim(item: Series) -> tuple[bool, int, int]:
        measured = item.commits[item.measured]
        return item.environment.key not in swept, int(measured[-1]) if len(measured) else -1, len(measured)

    newest = max(series, key=claim)
    same = [
        item
        for item in series
        if item.machine.key == newest.machine.key and item.environment.key == newest.environment.key
    ]
    measured = [item for item in same if item.measured.any()]
    return (measured or same)[:DRAWN]


def _dimensions(benchmark: Benchmark, series: Sequence[Series]) -> list[Dimension]:
    """Return what a reader can choose among: machine, environment, and every parameter with more than one value."""
    found: list[Dimension] = []
    for key, title, values in (
        ("machine", "Machine", [item.machine.name for item in series]),
        ("environment", "Environment", [item.environment.label for item in series]),
    ):
        if len(set(values)) > 1:
            found.append(Dimension(key=key, title=title, values=list(dict.fromkeys(values))))
    for number, name in enumerate(benchmark.param_names):
        options = [shown(item.params[number]) for item in series if number < len(item.params)]
        if len(set(options)) > 1:
            found.append(Dimension(key=f"p{number}", title=name, values=list(dict.fromkeys(options))))
    return found


def _value(item: Series, dimension: str) -> str:
    """Return what `item` has in one of the dimensions of `_dimensions`."""
    if dimension == "machine":
        return item.machine.name
    if dimension == "environment":
        return item.environment.label
    number = int(dimension.removeprefix("p"))
    return shown(item.params[number]) if number < len(item.params) else ""


def _row(
    item: Series, chosen: bool, dimensions: Mapping[str, Mapping[str, int]], step: Change | None, site: Site
) -> SeriesRow:
    measured = np.flatnonzero(item.measured)
    last = int(measured[-1]) if len(measured) else None
    point = len(item) - 1
    return SeriesRow(
        key=item.key,
        chosen=chosen,
        machine=item.machine.name,
        environment=item.environment.label,
        params=parameters(item),
        at=" ".join(str(places.get(_value(item, key), -1)) for key, places in dimensions.items()),
        stack=item.environment.stack or "",
        value=float(item.value[last]) if last is not None else None,
        error=points.interval(item, last),
        sorted_by=f"{item.value[last]:.6g}" if last is not None else "",
        day=site.days[int(item.commits[last])] if last is not None else numbers.NONE,
        count=len(measured),
        state=columns.STATES[int(item.state[point])] if point >= 0 else "not run",
        reason=item.reasons.get(point, ""),
        change=step,
    )


def has_data(item: Series) -> bool:
    """Return whether a series has a number or a reason why it has none: only those have a data file."""
    return bool(item.measured.any() or item.reasons)


def _events(chosen: Sequence[Series], site: Site) -> list[Event]:
    places = {(item.machine.key, item.environment.key) for item in chosen}
    reached = set(points.reached_by(chosen).tolist())
    return [
        event
        for event in site.history.events
        if (event.machine.key, event.environment.key) in places and event.commit in reached
    ]


def _plot(
    benchmark: Benchmark, chosen: list[Series], changes: Sequence[Change], events: Sequence[Event], site: Site
) -> Markup | None:
    lines, greyed, bands = [], [], []
    for number, item in enumerate(chosen):
        places = item.commits.astype(np.float64)
        lines.append(history_plot.Curve(x=places, y=np.where(item.older, np.nan, item.value), index=number))
        if item.older.any():
            greyed.append(history_plot.Curve(x=places, y=np.where(item.older, item.value, np.nan), index=number))
        if len(chosen) <= 3 and len(item) <= 400:
            low, high = (np.where(item.older, np.nan, bound) for bound in (item.low, item.high))
            bands.append(history_plot.Band(x=places, upper=high, lower=low, index=number))
    reached = points.reached_by(chosen)
    dates: dict[str, float] = {}
    for at in reached.tolist():
        dates.setdefault(site.days[at], float(at))
    return history_plot.history(
        lines,
        unit=benchmark.unit,
        label=f"{benchmark.name} over {numbers.plural(len(reached), 'commit')}, {numbers.plural(len(lines), 'line')}; "
        "the numbers are in the table below",
        dates=[(at, day) for day, at in dates.items()],
        greyed=greyed,
        bands=bands,
        steps=[
            (
                float(change.series.commits[change.point]),
                change.verdict,
                f"{change.verdict}: {change.words}",
            )
            for change in changes
            if change.series in chosen
        ],
        events=[(float(event.commit), event.text) for event in events],
    )


def _change(change: Change, site: Site) -> Step:
    commits, series = site.history.commits, change.series
    first, last = commits[int(series.commits[change.previous])], commits[int(series.commits[change.point])]
    return Step(
        verdict=change.verdict,
        size=change.size,
        words=change.words,
        params=parameters(series),
        before=change.before,
        after=change.after,
        span=f"{commit_name(first)} … {commit_name(last)}",
        date=last.date,
    )
