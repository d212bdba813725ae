"""What was measured so far of both sides, and the document that is made of it after every pair of calls."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from machmeter import asv_names
from machmeter.compare.documents import Measurements, Process, Row, Side, Status
from machmeter.pull_request.call_results import Outcome
from machmeter.pull_request.checkouts import Built
from machmeter.pull_request.commits import Commits
from machmeter.pull_request.plan import Item, Key

SIDES = ("base", "head")

NO_TIME = "the time budget ended before it"


@dataclass
class _Entry:
    """What is known of one metric of one cell on one side."""

    status: Status = "not run"
    reason: str = ""
    processes: list[Process] = field(default_factory=list)


class Ledger:
    """Everything that was measured, by side, cell and metric. What an `earlier` call measured is taken over."""

    def __init__(
        self,
        commits: Commits,
        built: Mapping[str, Built],
        items: Mapping[str, Mapping[Key, Item]],
        earlier: Measurements | None,
    ) -> None:
        self._commits, self._built, self.items = commits, built, items
        self._entries = {side: {key: _Entry() for key in items[side]} for side in SIDES}
        self._about: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {}
        self._order = 0
        self.started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.notes: list[str] = []
        if earlier:
            self._take_over(earlier)

    def _take_over(self, earlier: Measurements) -> None:
        self.started = earlier.started
        for name, side in (("base", earlier.base), ("head", earlier.head)):
            self._about[name] = (side.environment, dict(side.host), dict(side.versions))
            for row in side.rows:
                entry = self._entries[name].get((row.cell, row.metric))
                if entry is not None:
                    entry.status, entry.reason, entry.processes = row.status, row.reason, list(row.processes)
                self._order = max([self._order, *(process.order for process in row.processes)])

    # ------------------------------------------------------------------ asked by whoever plans

    def everything(self) -> list[Key]:
        """Return what either side has, in head's order; what only base has comes last."""
        return [*dict.fromkeys([*self.items["head"], *self.items["base"]])]

    def item(self, key: Key) -> Item:
        """Return the description of `key`, head's where it has one."""
        return self.items["head"].get(key) or self.items["base"][key]

    def done(self, key: Key) -> int:
        """Return how often `key` was measured."""
        return max((len(self._entries[side][key].processes) for side in SIDES if key in self._entries[side]), default=0)

    def settled(self, key: Key) -> bool:
        """Return whether measuring `key` again would tell nothing: a side failed, or cannot have it."""
        entries = [self._entries[side][key] for side in SIDES if key in self._entries[side]]
        return any(entry.status in ("failed", "n/a") for entry in entries)

    def last(self, side: str, key: Key) -> str | float:
        """Return the value that was last measured, or why there is none."""
        entry = self._entries[side].get(key)
        if entry is None:
            return "does not exist"
        return entry.processes[-1].value if entry.status == "ok" else f"{entry.status}: {entry.reason}"

    # ------------------------------------------------------------------ told by whoever measures

    def take_places(self, count: int) -> range:
        """Return the places of the next `count` processes in the whole sequence of both sides."""
        self._order += count
        return range(self._order - count + 1, self._order + 1)

    def note(self, side: str, outcomes: Mapping[Key, Outcome], orders: Iterable[int]) -> None:
        """Add what a call found, in the order in which it measured."""
        for (key, outcome), order in zip(outcomes.items(), orders, strict=True):
            entry, number = self._entries[side][key], self.done_of(side, key) + 1
            entry.status = outcome.status
            if outcome.status != "ok":
                earlier = f"in round {number}: " if entry.processes else ""
                entry.reason = f"{earlier}{outcome.reason}"[:1000]
                continue
            process = Process(
                round=number, order=order, value=outcome.value, samples=outcome.samples, disturbed=outcome.disturbed
            )
            entry.processes.append(process)

    def done_of(self, side: str, key: Key) -> int:
        """Return how often `key` was measured on `side`."""
        return len(self._entries[side][key].processes)

    def about(self, side: str, environment: str, facts: dict[str, str], versions: dict[str, str]) -> None:
        """Note where `side` was measured: asv's environment, the machine, what is installed."""
        self._about[side] = (environment, facts, versions)

    # ------------------------------------------------------------------ the document

    def measurements(self, seconds: float, notes: Iterable[str] = ()) -> Measurements:
        """Return everything that was measured so far."""
        rounds = [self.done(key) for key in self.everything() if self.item(key).timed]
        return Measurements(
            machine=asv_names.machine_name()[:300],
            base=self._side("base", self._commits.base, self._commits.base_label),
            head=self._side("head", self._commits.head, self._commits.head_label),
            rounds=max(rounds, default=0),
            interleaved=True,
            started=self.started,
            seconds=round(seconds, 1),
            notes=[note[:1000] for note in (*self.notes, *notes)][:100],
        )

    def _side(self, name: str, commit: str, label: str) -> Side:
        built = self._built[name]
        environment, host, versions = self._about.get(name, ("", {}, {}))
        return Side(
            label=label[:300],
            commit=commit,
            environment=environment,
            stack=built.stack[:100],
            host=host,
            versions={key[:300]: text[:1000] for key, text in [*versions.items()][:2000]},
            pins={key[:300]: text[:1000] for key, text in [*built.pins.items()][:2000]},
            error=built.error,
            rows=[self._row(name, item) for item in self.items[name].values()],
        )

    def _row(self, side: str, item: Item) -> Row:
        entry = self._entries[side][item.key]
        return Row(
            cell=item.cell,
            metric=item.metric,
            unit=item.unit,
            better=item.better,
            version=item.version,
            status=entry.status,
            reason=entry.reason or (NO_TIME if entry.status == "not run" else ""),
            processes=entry.processes,
            control=item.control,
        )
