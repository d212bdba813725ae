"""`machmeter pr` with real git and real asv: what it measures, in which order, and what it keeps."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest

from helpers import pr_project as prproject
from helpers.pr_project import Scratch, suite
from machmeter import errors
from machmeter.compare import judge
from machmeter.compare.documents import Measurements, Row, Side
from machmeter.pull_request import checkouts, commits, plan, rounds
from machmeter.pull_request.ledger import Ledger

# The sides take turns in being slow: no number of rounds tells anything.
ERRATIC = """

class Erratic(Clocked):
    def setup_cache(self):
        side = os.environ["ASV_ENV_DIR"].split(os.sep)[-3]
        count = os.path.join(os.environ["ASV_ENV_DIR"], "count")
        with open(count, "a") as log:
            log.write("x")
        slow = (os.path.getsize(count) % 2 == 0) == (side == "base")
        return 0.010 * NOISE * (1.4 if slow else 1.0)

    def time_it(self, seconds):
        NOW[0] += seconds
"""

# In base's second process others take the CPUs; the suite leaves no evidence of that.
NEIGHBOUR = """

class Neighbour(Clocked):
    def setup_cache(self):
        folder = os.environ["ASV_ENV_DIR"]
        with open(os.path.join(folder, "processes"), "a") as log:
            log.write("x")
        if folder.split(os.sep)[-3] == "base" and os.path.getsize(log.name) == 2:
            stat = os.path.join(os.environ["MACHMETER_HOST_ROOT"], "proc/stat")
            lines = open(stat).read().replace(" 0 0 0 0 0 0 0 0 0", " 0 999999 0 0 0 0 0 0 0")
            with open(stat, "w") as out:
                out.write(lines)

    def time_it(self):
        NOW[0] += 0.010 * NOISE
"""


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """One project for all tests here: its two environments are built once."""
    made = prproject.make(tmp_path_factory.mktemp("pr"))
    made.branch("slower")
    made.commit({"benchmarks/work.py": suite(1.3)}, "first push: slower")
    made.commit({"README": "nothing of importance"}, "second push")
    made.branch("harmless")
    made.commit({"README": "a word"})
    made.branch("reshaped")
    gained = "\n    def time_gained(self, name):\n        NOW[0] += 0.001 * NOISE\n"
    text = suite(more=gained).replace(
        "        hold()\n", "        if name == 'b':\n            raise ValueError('no b')\n"
    )
    lost = "from .work import Clocked\n\n\nclass Lost(Clocked):\n    def time_lost(self):\n        pass\n"
    made.commit({"benchmarks/lost.py": lost}, "a benchmark that head will not have")
    made.git("branch", "before-reshaped")
    (made.folder / "benchmarks/lost.py").unlink()
    made.commit({"benchmarks/work.py": text})
    made.branch("erratic")
    made.commit({"benchmarks/work.py": suite() + ERRATIC})
    made.branch("neighbour")
    made.commit({"benchmarks/work.py": suite() + NEIGHBOUR})
    made.git("checkout", "--quiet", "main")
    made.commit({"LICENCE": "any"}, "main moves on")
    return made


def read(output: Path) -> Measurements:
    return msgspec.json.decode((output / "measurements.json").read_bytes(), type=Measurements)


def rows(side: Side, metric: str) -> dict[str, Row]:
    return {row.cell: row for row in side.rows if row.metric == metric}


def places(row: Row) -> list[int]:
    return [process.order for process in row.processes]


def test_a_regression_in_the_first_of_two_pushes(scratch: Scratch, tmp_path: Path) -> None:
    """Base is where the branch parted from main: not the previous push, and not main as it is now."""
    output = tmp_path / "out"
    done = scratch.pr("main", "slower", "--output", str(output))
    assert done.returncode == 1, done.stdout + done.stderr
    parted = scratch.git("merge-base", "main", "slower")
    assert (
        f"base {parted[:8]} (where slower parted from main), head {scratch.git('rev-parse', 'slower')[:8]}"
        in done.stdout
    )
    assert f"main itself has moved on to {scratch.git('rev-parse', 'main')[:8]}" in done.stdout
    measured = read(output)
    assert (measured.base.commit, measured.base.label, measured.head.label) == (parted, "main", "slower")
    found = {(item.cell, item.metric): item for item in judge.compare(measured).findings}
    slower = found["work.Suite(a)", "time_call"]
    assert slower.verdict == "regression"
    assert slower.ratio == pytest.approx(1.3, abs=0.02)
    assert found["work.Suite(a)", "track_size"].verdict == "no change"

    # Each side was first in as many rounds, and both are of one round, one right after the other.
    for cell in ("work.Suite(a)", "work.Suite(b)", "control.Machine"):
        metric = "time_product" if cell.startswith("control") else "time_call"
        base, head = rows(measured.base, metric)[cell], rows(measured.head, metric)[cell]
        assert [process.round for process in base.processes] == [process.round for process in head.processes]
        first = [before < after for before, after in zip(places(base), places(head), strict=True)]
        assert first == [True, False] * (len(first) // 2)
        assert base.control is head.control is cell.startswith("control")
    orders = [place for side in (measured.base, measured.head) for row in side.rows for place in places(row)]
    assert sorted(orders) == list(range(1, len(orders) + 1))
    assert {process.samples for row in measured.base.rows for process in row.processes} == {5, 1}
    assert measured.rounds == 6  # decided: no more were needed
    assert measured.interleaved
    assert measured.head.host["thread budget"] == measured.base.host["thread budget"]
    assert measured.head.versions["asv-runner"] == "0.3.2"

    # asv's own files have every sample of every process.
    from asv.results import Results

    (file,) = (output / "head" / "results").glob("*/[0-9a-f]*.json")
    kept = Results.load(str(file))
    assert [len(samples) for samples in kept.get_result_samples("work.Suite.time_call", [["'a'", "'b'"]])] == [30, 30]


def test_what_was_removed_what_is_new_and_what_fails_now(scratch: Scratch, tmp_path: Path) -> None:
    """Each side has the benchmarks of its own commit."""
    output = tmp_path / "out"
    done = scratch.pr("before-reshaped", "reshaped", "-b", "time_", "--rounds", "1", "--output", str(output))
    assert done.returncode == 1
    measured = read(output)
    lone = {(item.kind, item.cell, item.metric): item.reason for item in judge.compare(measured).lone}
    assert lone == {
        ("removed", "lost.Lost", "time_lost"): "not in head",
        ("failed", "work.Suite(b)", "time_call"): "ValueError: no b",
        ("new", "work.Suite(a)", "time_gained"): "not in base",
        ("new", "work.Suite(b)", "time_gained"): "not in base",
    }
    failed = rows(measured.head, "time_call")["work.Suite(b)"]
    assert (failed.status, failed.processes) == ("failed", [])
    # What cannot be compared is measured once, and not in rounds.
    assert [len(row.processes) for row in rows(measured.head, "time_gained").values()] == [1, 1]


def test_identical_code_and_more_rounds_only_where_it_is_undecided(scratch: Scratch, tmp_path: Path) -> None:
    """More rounds come two at a time, so that each side stays first as often.

    The same command on a finished comparison only shows it; another comparison does not take its place.
    """
    output = tmp_path / "out"
    arguments = ("erratic", "-b", r"time_call\(|Erratic", "--rounds", "7", "--output", str(output))
    done = scratch.pr("erratic", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "both are the same commit" in done.stdout
    assert "1 measurement undecided, " in done.stdout
    measured = read(output)
    assert measured.base.commit == measured.head.commit
    for side in (measured.base, measured.head):
        assert [len(row.processes) for row in rows(side, "time_call").values()] == [6, 6]
        assert len(rows(side, "time_it")["work.Erratic"].processes) == 7
        assert len(rows(side, "time_product")["control.Machine"].processes) == 7
    verdicts = {item.cell: item.verdict for item in judge.compare(measured).findings}
    assert verdicts == {"work.Suite(a)": "no change", "work.Suite(b)": "no change", "work.Erratic": "undecided"}

    again = scratch.pr("erratic", *arguments)
    assert again.returncode == 0
    assert "going on after" in again.stdout
    assert read(output).head.rows == measured.head.rows
    for others, words in ((("slower",), "holds the comparison of"), (("erratic",), ", measured otherwise")):
        taken = scratch.pr("erratic", *others, "--output", str(output))
        assert taken.returncode == 27
        assert words in taken.stderr
        assert len(taken.stderr.splitlines()) == 1
    assert read(output).head.rows == measured.head.rows


def test_a_round_in_which_others_had_the_cpus_is_left_out(scratch: Scratch, tmp_path: Path) -> None:
    """Of any suite: where no evidence tells how it was, it is measured around the call."""
    done = scratch.pr("neighbour", "neighbour", "-b", "Neighbour", "--rounds", "2", "--output", str(tmp_path / "out"))
    assert done.returncode == 2, done.stdout + done.stderr
    measured = read(tmp_path / "out")
    for metric in ("time_it", "time_product"):  # the control was measured in the same call
        for side, shares in ((measured.base, [0.0, 1.0]), (measured.head, [0.0, 0.0])):
            (found,) = rows(side, metric).values()
            assert [process.disturbed for process in found.processes] == shares
    compared = judge.compare(measured)
    assert compared.notes[0] == "2 measurements were left out: other programs had the CPUs meanwhile"
    assert compared.findings[0].words.startswith("1 undisturbed round, and 1 in which other programs had the CPUs")


@pytest.mark.parametrize(("broken", "code"), [("base", 2), ("head", 1)])
def test_a_side_that_does_not_build(scratch: Scratch, tmp_path: Path, broken: str, code: int) -> None:
    """Without base nothing can be judged; a head that does not build while base does is what was to be found."""
    name = f"broken-{broken}"
    scratch.branch(name)
    scratch.commit({"benchmarks/work.py": "import no_such_module\n"})
    if broken == "base":
        scratch.branch("mended", name)
        scratch.commit({"benchmarks/work.py": suite()})
    scratch.git("checkout", "--quiet", "main")
    arguments = (name, "mended") if broken == "base" else ("main", name)
    done = scratch.pr(*arguments, "--output", str(tmp_path / "out"))
    assert done.returncode == code, done.stdout + done.stderr
    measured = read(tmp_path / "out")
    bad, good = (measured.base, measured.head) if broken == "base" else (measured.head, measured.base)
    assert bad.error == "does not build: ModuleNotFoundError: No module named 'no_such_module'"
    assert good.error == ""
    assert f"{broken} does not build: ModuleNotFoundError" in done.stdout


def test_an_interruption_keeps_what_was_measured_and_the_same_command_goes_on(scratch: Scratch, tmp_path: Path) -> None:
    """Told to end (as CI does) while head is measured in round 2: round 1 is kept, and no half round."""
    output, pipe = tmp_path / "out", tmp_path / "pipe"
    os.mkfifo(pipe)
    arguments = ("main", "harmless", "-b", r"time_call\('a'", "--rounds", "3", "--output", str(output))
    # Processes of time_call: base and head of round 1, then (head comes first) head and base of round 2.
    process = scratch.start(*arguments, SCRATCH_HOLD=str(pipe), SCRATCH_HOLD_AT="4")
    assert pipe.read_text() == "here"
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert errors.startswith("machmeter: interrupted; ")
    assert "the same command goes on" in errors
    assert len(errors.splitlines()) == 1
    kept = read(output)
    for side in (kept.base, kept.head):
        assert [process.round for process in rows(side, "time_call")["work.Suite(a)"].processes] == [1]
    done = scratch.pr(*arguments)
    assert done.returncode == 2, done.stdout + done.stderr  # three rounds cannot be judged
    assert "going on after" in done.stdout
    measured = read(output)
    for before, after in ((kept.base, measured.base), (kept.head, measured.head)):
        old, new = (rows(side, "time_call")["work.Suite(a)"] for side in (before, after))
        assert new.processes[0] == old.processes[0]
        assert [process.round for process in new.processes] == [1, 2, 3]
        assert {process.samples for process in new.processes} == {5}
    assert measured.seconds > kept.seconds


def test_the_budget_ends_it_early(scratch: Scratch, tmp_path: Path) -> None:
    """One pair of calls takes longer than a second: what comes after it is not begun."""
    output = tmp_path / "out"
    arguments = ("main", "slower", "-b", "track_size", "--rounds", "1", "--output", str(output))
    done = scratch.pr(*arguments, "--budget", "1s")
    measured = read(output)
    assert measured.notes == ["the time budget ended before 1 of 2 cells (choose fewer with -b, or give more time)"]
    assert measured.notes[0] in done.stdout
    begun, late = (rows(measured.head, "track_size")[f"work.Suite({name})"] for name in "ab")
    assert [process.round for process in begun.processes] == [1]
    assert (late.status, late.reason) == ("not run", "the time budget ended before it")
    # With more time the same command goes on.
    scratch.pr(*arguments)
    measured = read(output)
    assert measured.notes == []
    assert [row.status for row in measured.head.rows] == ["ok", "ok", "ok"]
    assert rows(measured.head, "track_size")["work.Suite(a)"] == begun


def test_time_goes_first_to_what_was_asked_for(scratch: Scratch, tmp_path: Path) -> None:
    """A control that costs as much as a cell could use up the time in which the cell is to be judged."""
    scratch.pr("main", "slower", "-b", "time_call", "--budget", "1s", "--output", str(tmp_path / "out"))
    measured = read(tmp_path / "out")
    assert [len(row.processes) for row in rows(measured.head, "time_call").values()] == [1, 0]
    (control,) = rows(measured.head, "time_product").values()
    assert (control.processes, control.reason) == ([], "the time budget ended before it")


def test_a_selection_of_nothing_leaves_nothing_behind(scratch: Scratch, tmp_path: Path) -> None:
    """The mended command may name the same folder."""
    for pattern, words in (
        ("nosuch", "no benchmark of either side matches nosuch: there are control.Machine, work.Suite"),
        ("(", "is not a regular expression"),
    ):
        done = scratch.pr("main", "slower", "-b", pattern, "--output", str(tmp_path / "out"))
        assert done.returncode == 6
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert list(tmp_path.iterdir()) == []


def test_names_to_choose_from_are_counted() -> None:
    place = checkouts.Place(name="base", commit="0" * 40, work=Path("work"), kept=Path("kept"))
    names = {f"m{number}.Suite.time_it": {"type": "time"} for number in range(10)}
    built = checkouts.Built(place=place, benchmarks=names)
    items = plan.items(names, ["nosuch"])
    chosen = commits.Commits(top=Path(), prefix="", base="", head="", base_label="", head_label="", base_tip="")
    ledger = Ledger(chosen, {"base": built, "head": built}, {"base": items, "head": items}, None)
    with pytest.raises(errors.NothingSelected, match=r"there are m0.Suite, .*, m7.Suite and 2 more$"):
        rounds.check_selected(ledger, ["nosuch"], [built])


def test_two_at_a_time_would_disturb_each_other(scratch: Scratch, tmp_path: Path) -> None:
    import fcntl

    with (scratch.folder / ".asv/pr/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = scratch.pr("main", "slower", "--output", str(tmp_path / "out"))
    assert done.returncode == 29
    assert "another 'machmeter pr' is measuring" in done.stderr


def test_a_folder_with_something_else_is_left_alone(scratch: Scratch, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("do not touch")
    done = scratch.pr("main", "slower", "--output", str(tmp_path))
    assert done.returncode == 27
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_the_repository_is_left_as_it_was(scratch: Scratch) -> None:
    """No worktree, no branch, no change: only the ignored folder .asv."""
    assert scratch.git("worktree", "list").count("\n") == 0
    assert scratch.git("status", "--porcelain") == ""
