"""Compare two commits on this machine: find, build, measure, and keep everything in one folder.

OUTPUT/run.json            what is compared: an unfinished run of the same goes on
OUTPUT/measurements.json   the document that is judged, complete after every pair of calls of asv
OUTPUT/asv.log             what asv and pip said
OUTPUT/<base|head>/        asv's results and the evidence of one side
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from machmeter import asv_names, atomic
from machmeter.compare import documents
from machmeter.compare.documents import Measurements
from machmeter.errors import (
    Busy,
    Interrupted,
    MeasurementsUnreadable,
    NothingSelected,
    OutputTaken,
    UnknownName,
    from_os_error,
)
from machmeter.measure import dead_processes
from machmeter.pull_request import checkouts, commits, pin_environments, plan
from machmeter.pull_request import rounds as rounds_module
from machmeter.pull_request.checkouts import Built, Place
from machmeter.pull_request.commits import Commits
from machmeter.pull_request.ledger import SIDES, Ledger
from machmeter.pull_request.rounds import Clock
from machmeter.running import asv, configurations
from machmeter.running.waiting import Say
from machmeter.text import durations

RUN = "run.json"
MEASUREMENTS = "measurements.json"
LOG = "asv.log"


def run(
    project: Path,
    base: str,
    head: str,
    *,
    patterns: list[str],
    rounds: int,
    seconds: float,
    output: Path,
    stack: str,
    say: Say,
) -> Measurements:
    """Measure `head` against the commit where it parted from `base`, for at most `seconds`; return what was measured.

    An interruption keeps every finished pair, and the same call goes on. Raises Interrupted, Busy, OutputTaken,
    or what `commits.find`, `plan` and the rounds raise.
    """
    plan.compiled(patterns)
    chosen = commits.find(project, base, head)
    configurations.check_project(project)
    told = {
        "schema": 1,
        "base": chosen.base,
        "head": chosen.head,
        "machine": asv_names.machine_name(),
        "patterns": patterns,
        "stack": stack,
    }
    with _alone(project):
        made = not output.exists()
        earlier = _open(output, told)
        for line in chosen.lines():
            say(line)
        asv.know_machine(project)
        try:
            with (output / LOG).open("a", encoding="utf-8") as log:
                return _run(project, chosen, earlier, patterns, rounds, seconds, output, stack, log, say)
        except (NothingSelected, UnknownName):  # a mistyped option may not keep the folder from the right one
            if earlier is None:
                _empty(output, remove=made)
            raise
        except KeyboardInterrupt:
            raise Interrupted(_kept(output)) from None
        except OSError as error:
            raise from_os_error(error, output, "measurements", None) from error


def _run(
    project: Path,
    chosen: Commits,
    earlier: Measurements | None,
    patterns: list[str],
    rounds: int,
    seconds: float,
    output: Path,
    stack: str,
    log: IO[str],
    say: Say,
) -> Measurements:
    built = _build(project, chosen, output, stack, log, say)
    items = {side: plan.items(built[side].benchmarks, patterns) for side in SIDES}
    ledger = Ledger(chosen, built, items, earlier)
    path = output / MEASUREMENTS

    def keep(made: Measurements) -> None:
        _write(path, made)

    if any(side.error for side in built.values()):
        for side in built.values():
            if side.error:
                say(f"{side.place.name} {side.error}")
        made = ledger.measurements(0.0)
        keep(made)
        return made
    rounds_module.check_selected(ledger, patterns, built.values())
    clock = Clock(seconds, earlier.seconds if earlier else 0.0)
    if earlier:
        say(f"going on after {durations.shown(earlier.seconds)}: what {output} has is not measured again")
    return rounds_module.Measuring(built, ledger, rounds, clock, log, say, keep).run()


def _build(project: Path, chosen: Commits, output: Path, stack: str, log: IO[str], say: Say) -> dict[str, Built]:
    work = (project / checkouts.FOLDER).resolve()
    built = {}
    for side, commit in zip(SIDES, (chosen.base, chosen.head), strict=True):
        place = Place(name=side, commit=commit, work=work / side, kept=output / side)
        place.results.mkdir(parents=True, exist_ok=True)
        built[side] = checkouts.build(place, chosen, stack, log, say)
    pin_environments.remove_old(work / "pins")
    problems = [side.problem for side in built.values()]
    if all(isinstance(problem, UnknownName) for problem in problems):  # an option, and no matter of the commits
        raise UnknownName(str(problems[1]))
    return built


@contextlib.contextmanager
def _alone(project: Path) -> Iterator[None]:
    """Be the only comparison that is measured in this project. Raises Busy."""
    path = project / checkouts.FOLDER / "lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("w")
    except OSError as error:
        raise from_os_error(error, path.parent, "environments", None) from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Busy(f"another 'machmeter pr' is measuring in {project}: wait until it has ended") from None
        yield


def _open(output: Path, told: dict[str, object]) -> Measurements | None:
    """Make the folder `output` ours; return what an earlier call for the same measured. Raises OutputTaken."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        there = sorted(path.name for path in output.iterdir())
        if not there:
            dead_processes.write_json(output / RUN, told)
            return None
        kept = json.loads((output / RUN).read_text(encoding="utf-8")) if RUN in there else None
    except ValueError:
        kept = None
    except OSError as error:
        raise from_os_error(error, output, "measurements", None) from error
    other = "move it away, or name another folder with --output"
    if not isinstance(kept, dict):
        raise OutputTaken(f"{output} holds something that is no comparison: {other}")
    if kept != told:
        what = f"{str(kept.get('base'))[:8]} and {str(kept.get('head'))[:8]}"
        more = "" if (kept.get("base"), kept.get("head")) != (told["base"], told["head"]) else ", measured otherwise"
        raise OutputTaken(f"{output} holds the comparison of {what}{more}: {other}")
    path = output / MEASUREMENTS
    if not path.exists():
        return None
    try:
        return documents.read(path)
    except MeasurementsUnreadable as error:
        raise OutputTaken(f"{error}, or {other}") from error


def _empty(output: Path, *, remove: bool) -> None:
    """Take back what was begun in `output`, which held nothing."""
    for name in (RUN, LOG, MEASUREMENTS):
        (output / name).unlink(missing_ok=True)
    for side in SIDES:
        shutil.rmtree(output / side, ignore_errors=True)
    if remove:
        output.rmdir()


def _write(path: Path, made: Measurements) -> None:
    """Write the document by an atomic rename."""
    atomic.replace(path, msgspec.json.encode(made))


def _kept(output: Path) -> str:
    """Return what to say of an interruption."""
    try:
        made = documents.read(output / MEASUREMENTS)
    except MeasurementsUnreadable:
        return "interrupted before anything was measured: the same command begins again"
    count = sum(len(row.processes) for side in (made.base, made.head) for row in side.rows)
    return (
        f"interrupted; {count} measurements are kept in {output / MEASUREMENTS}: the same command goes on, "
        f"'machmeter compare --measurements {output / MEASUREMENTS}' judges what there is"
    )
