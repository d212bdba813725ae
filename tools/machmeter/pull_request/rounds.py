"""Measure both sides in turn, where it is still undecided, until the time is used up.

Each metric of a cell is measured base against head within seconds, in fresh processes, base first in one round and
head first in the next. First comes everything that is known once, and as many rounds of timings as a judgement needs,
of as many cells as there is time for; then more rounds of what is undecided, two at a time so that each side stays
first as often.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import IO

from machmeter.compare import judge, limits
from machmeter.compare.documents import Measurements
from machmeter.errors import NothingSelected
from machmeter.machine import disturbance
from machmeter.pull_request import call_results, checkouts, plan
from machmeter.pull_request.checkouts import Built
from machmeter.pull_request.ledger import SIDES, Ledger
from machmeter.pull_request.plan import Key, Task
from machmeter.running import why_it_failed
from machmeter.running.waiting import Say, new_run
from machmeter.text import durations, numbers

_LISTED = 8  # names in a message

Keep = Callable[[Measurements], None]


class _NoTimeLeft(Exception):
    """The next call would end after the budget."""


class Measuring:
    """One call of the command: what it has measured is kept after every pair of calls of asv."""

    def __init__(
        self, built: dict[str, Built], ledger: Ledger, rounds: int, clock: Clock, output: IO[str], say: Say, keep: Keep
    ) -> None:
        self._built, self._ledger, self._rounds, self._clock = built, ledger, rounds, clock
        self._output, self._say, self._keep = output, say, keep
        self._least = min(limits.LEAST_PAIRS, rounds)
        self._run = new_run()
        self._described = False
        self._seconds: dict[Key, float] = {}  # that one process of each took here
        self._silent: set[str] = set()  # cells whose timing processes do not tell how long loading took
        self._order = [
            *plan.spread(key for key in ledger.everything() if not ledger.item(key).control),
            *self._controls(),
        ]
        for key in self._order:
            if ledger.done(key) and ledger.item(key).bounded:  # of an earlier call: what was costly is not repeated
                took = call_results.seconds(built["head"].place, ledger.item(key))
                self._seconds |= {key: took} if took > plan.COSTLY_SECONDS else {}

    def run(self) -> Measurements:
        """Measure, and return everything that was measured."""
        try:
            while wave := self._next_wave():
                self._once(wave)
                for _ in range(self._least):
                    self._round([key for key in wave if self._lacks(key, self._least)])
            while undecided := self._undecided():
                for _ in range(2):
                    self._round([key for key in undecided if self._lacks(key, self._rounds)])
        except _NoTimeLeft:
            self._ledger.notes.append(self._why_it_ended())
            self._say(self._ledger.notes[-1])
        return self._save()

    # ------------------------------------------------------------------ what comes next

    def _controls(self) -> list[Key]:
        return [key for key in self._ledger.everything() if self._ledger.item(key).control]

    def _wanted(self, key: Key) -> int:
        items = self._ledger.items
        took = self._seconds.get(key, 0.0)
        return plan.wanted_rounds(items["base"].get(key), items["head"].get(key), self._rounds, took)

    def _rides(self, key: Key) -> bool:
        """Return whether the processes that time the cell of `key` tell it as well, at no cost."""
        timing = (key[0], plan.TIMING_METRIC)
        told = all(timing in items for items in self._ledger.items.values() if key in items)
        return (
            self._ledger.item(key).opening and told and key[0] not in self._silent and not self._ledger.settled(timing)
        )

    def _lacks(self, key: Key, rounds: int) -> bool:
        """Return whether `key` is to be measured once more on the way to so many `rounds`."""
        item, done = self._ledger.item(key), self._ledger.done(key)
        if not item.timed or self._ledger.settled(key) or self._rides(key):
            return False
        return done < min(rounds, self._wanted(key))

    def _next_wave(self) -> list[Key]:
        """Return what is measured next: as many cells as there is time for, with the controls; nothing after the last.

        A cell that is begun gets the rounds without which nothing is judged: one of every cell would tell nothing.
        """
        waiting = [
            key
            for key in self._order
            if (self._first_time(key) and not self._rides(key)) or self._lacks(key, self._least)
        ]
        controls = [key for key in waiting if self._ledger.item(key).control]
        cells: dict[str, list[Key]] = {}
        for key in waiting:
            if not self._ledger.item(key).control:
                cells.setdefault(key[0], []).append(key)
        wave: list[Key] = []
        needed = sum(self._expected(key) * self._least for key in controls)
        for keys in cells.values():
            needed += sum(self._expected(key) * (self._least if self._ledger.item(key).timed else 1) for key in keys)
            if wave and needed > self._clock.left():
                break
            wave += keys
        return [*wave, *controls]

    def _first_time(self, key: Key) -> bool:
        return not self._ledger.settled(key) and self._ledger.done(key) == 0

    def _expected(self, key: Key) -> float:
        """Return the seconds that measuring `key` once on both sides takes: as it did, or as others did."""
        if key in self._seconds:
            return 2 * self._seconds[key]
        guessed = sum(self._ledger.item(other).seconds for other in self._seconds)
        scale = sum(self._seconds.values()) / guessed if guessed else 1.0
        return 2 * scale * self._ledger.item(key).seconds

    def _undecided(self) -> list[Key]:
        """Return what deserves more rounds, with the controls, whose shift bounds what can be told."""
        open_ = judge.undecided(self._ledger.measurements(self._clock.spent()))
        keys = [key for key in self._order if key in open_ and self._lacks(key, self._rounds)]
        if not keys:
            return []
        self._say(f"{numbers.plural(len(keys), 'measurement')} undecided, {durations.shown(self._clock.left())} left")
        return [*keys, *(key for key in self._controls() if self._lacks(key, self._rounds))]

    def _affordable(self, keys: list[Key]) -> list[Key]:
        """Return `keys` of one round, without the controls where time may not suffice for what was asked for."""
        asked = [key for key in keys if not self._ledger.item(key).control]
        controls = [key for key in keys if self._ledger.item(key).control]
        rounds = {key: max(1, self._least - self._ledger.done(key)) for key in asked}
        needed = sum(self._expected(key) * rounds[key] for key in asked)
        if asked and needed + sum(map(self._expected, controls)) > self._clock.left():
            return asked
        return keys

    def _why_it_ended(self) -> str:
        keys = [key for key in self._order if not self._ledger.item(key).control]
        never = {key[0] for key in keys if self._first_time(key)}
        rounds = [self._ledger.done(key) for key in keys if self._ledger.item(key).timed and self._ledger.done(key)]
        text = "the time budget ended"
        if never:
            cells = {key[0] for key in keys}
            text += f" before {len(never)} of {len(cells)} cells (choose fewer with -b, or give more time)"
        elif rounds:
            text += f" after {min(rounds)} to {max(rounds)} of {self._rounds} rounds"
        return text

    # ------------------------------------------------------------------ measuring

    def _once(self, keys: Iterable[Key]) -> None:
        """Measure what is not measured in rounds."""
        chosen = [key for key in keys if not self._ledger.item(key).timed and self._first_time(key)]
        tasks = plan.blocks(self._all_items(), chosen, self._seconds, {})
        if tasks:
            self._say(f"{numbers.plural(len(tasks), 'cell')}: answers, memory and size")
        for number, task in enumerate(tasks, 1):
            self._pair(task, self._run, f"[{number:>3}/{len(tasks)}]")

    def _round(self, keys: list[Key]) -> None:
        """Measure each of `keys` once more."""
        keys = self._affordable(keys)
        if not keys:
            return
        done = {key: self._ledger.done(key) for key in keys}
        judged = [done[key] for key in keys if not self._ledger.item(key).control]
        number = min(judged or done.values()) + 1
        left = durations.shown(self._clock.left())
        self._say(f"round {number} of {self._rounds}: {numbers.plural(len(keys), 'timing')}, {left} left")
        tasks = plan.blocks(self._all_items(), keys, self._seconds, done)
        for count, task in enumerate(tasks, 1):
            # Within a run processes share what one of them found of loading: here each is to find it itself.
            run_name = new_run() if self._ledger.item(task.keys[0]).opening else self._run
            self._pair(task, run_name, f"[{count:>3}/{len(tasks)}]")

    def _all_items(self) -> dict[Key, plan.Item]:
        return {key: self._ledger.item(key) for key in self._order}

    def _pair(self, task: Task, run_name: str, counted: str) -> None:
        """Measure `task` on both sides, one right after the other, and keep what both found, or neither.

        Raises _NoTimeLeft before anything starts.
        """
        left = self._clock.left()
        if left <= 0 or sum(self._seconds[key] * 2 for key in task.keys if key in self._seconds) > left:
            raise _NoTimeLeft
        order = SIDES if plan.base_first(self._ledger.done(task.keys[0])) else SIDES[::-1]
        results = []
        began = self._clock.spent()
        for side in order:
            chosen = [self._ledger.items[side][key] for key in task.keys if key in self._ledger.items[side]]
            if chosen:
                outcomes = self._call(side, chosen, task.repeat, run_name)
                results.append((side, outcomes, self._ledger.take_places(len(outcomes))))
        self._note(task, results)
        took = (self._clock.spent() - began) / max(1, len(results)) / len(task.keys)
        self._seconds |= dict.fromkeys(task.keys, took)
        if not self._described:
            self._describe(run_name)
        self._save()
        self._tell(task, counted)

    def _note(self, task: Task, results: list[tuple[str, dict[Key, call_results.Outcome], range]]) -> None:
        """Note what each side found of `task`, and of loading what both found."""
        common = set.intersection(*(set(outcomes) for _, outcomes, _ in results))
        for side, outcomes, places in results:
            kept = {
                key: place for key, place in zip(outcomes, places, strict=True) if key in common or key in task.keys
            }
            self._ledger.note(side, {key: outcomes[key] for key in kept}, kept.values())
        timed = {cell for cell, metric in task.keys if metric == plan.TIMING_METRIC}
        self._silent |= {key[0] for key in self._order if key[0] in timed and self._rides(key) and key not in common}

    def _call(self, side: str, chosen: list[plan.Item], repeat: str, run_name: str) -> dict[Key, call_results.Outcome]:
        place = self._built[side].place
        before = call_results.counts(place, chosen)
        start = why_it_failed.position(self._output)
        attributes = ["rounds=1", *([repeat] if repeat else [])]  # a round is a process, and we count them
        watch = disturbance.Watch()
        checkouts.measure(self._built[side], [item.pattern for item in chosen], attributes, run_name, self._output)
        around = watch.share_around()
        outcomes = call_results.outcomes(
            place, chosen, before, run_name, why_it_failed.raised(self._output, start), around
        )
        opened = call_results.openings(place, chosen, run_name, around)
        return outcomes | {key: outcome for key, outcome in opened.items() if key in self._ledger.items[side]}

    def _describe(self, run_name: str) -> None:
        """Note what is known of the machine and the libraries, from the evidence as soon as both sides have some."""
        self._described = all(call_results.run(self._built[side].place, run_name).cells for side in SIDES)
        for side in SIDES:
            host, versions = call_results.facts(self._built[side], run_name)
            self._ledger.about(side, call_results.environment(self._built[side].place), host, versions)

    def _tell(self, task: Task, counted: str) -> None:
        key = next((key for key in task.keys if self._ledger.item(key).timed), task.keys[0])
        key = next((other for other in task.keys if self._ledger.settled(other)), key)
        unit = self._ledger.item(key).unit
        shown = [
            value if isinstance(value := self._ledger.last(side, key), str) else numbers.value(value, unit)
            for side in SIDES
        ]
        more = f" and {len(task.keys) - 1} more" if len(task.keys) > 1 else ""
        both = shown[0] if shown[0] == shown[1] else f"base {shown[0]}, head {shown[1]}"
        self._say(f"{counted} {key[0]} {key[1]}{more}: {both}")

    def _save(self) -> Measurements:
        made = self._ledger.measurements(self._clock.spent())
        self._keep(made)
        return made


def check_selected(ledger: Ledger, patterns: Iterable[str], built: Iterable[Built]) -> None:
    """Raise NothingSelected where neither side has what `patterns` name."""
    wanted = plan.compiled(patterns)
    names = [ledger.item(key).name for key in ledger.everything()]
    if wanted and not any(pattern.search(name) for pattern in wanted for name in names):
        listed = ", ".join(pattern.pattern for pattern in wanted)
        there = sorted({name.rpartition(".")[0] or name for side in built for name in side.benchmarks})
        more = f" and {len(there) - _LISTED} more" if len(there) > _LISTED else ""
        raise NothingSelected(
            f"no benchmark of either side matches {listed}: there are {', '.join(there[:_LISTED])}{more}"
        )


class Clock:
    """Counts the seconds of measuring, those of earlier calls included."""

    def __init__(self, budget: float, spent: float = 0.0) -> None:
        self._budget, self._spent, self._began = budget, spent, time.monotonic()

    def spent(self) -> float:
        """Return the seconds that were spent so far."""
        return self._spent + time.monotonic() - self._began

    def left(self) -> float:
        """Return the seconds that are left; none or less where the budget is used up."""
        return self._budget - self.spent()
