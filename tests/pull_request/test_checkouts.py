"""The two sides of `machmeter pr`: their libraries, their evidence, and why a cell has no number."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from helpers import pr_project as prproject
from helpers.pr_project import Scratch
from helpers.project import MODULE, SUITE
from machmeter.compare import judge
from machmeter.compare.documents import Measurements, Row, Side
from machmeter.pull_request import pin_environments

# What `pip wheel` would do for a project of ours, without fetching a build system.
BUILD = """
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1] + "/scratch-1.0-py3-none-any.whl", "w") as archive:
    archive.writestr("scratch.py", open("scratch.py").read())
    archive.writestr("scratch-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: scratch\\nVersion: 1.0\\n")
    archive.writestr("scratch-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    archive.writestr("scratch-1.0.dist-info/RECORD", "")
"""

USES_THE_LIBRARY = """
import scratch
import tinylib

from .work import NOISE, NOW, Clocked


class Library(Clocked):
    def time_it(self):
        NOW[0] += 0.010 * NOISE * tinylib.FACTOR * scratch.FACTOR
"""


def read(output: Path) -> Measurements:
    return msgspec.json.decode((output / "measurements.json").read_bytes(), type=Measurements)


def row(side: Side, cell: str, metric: str) -> Row:
    (found,) = [row for row in side.rows if (row.cell, row.metric) == (cell, metric)]
    return found


@pytest.fixture(scope="module")
def stacked(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """Make a project with a stack: an installable module, and one library in two versions."""
    scratch = prproject.make(
        tmp_path_factory.mktemp("stacked"),
        {"matrix": {"env": {"STACK": ["tiny"]}}, "build_command": ["python build.py {build_cache_dir}"]},
        {
            "build.py": BUILD,
            "scratch.py": "FACTOR = 1.0\n",
            "requirements/tiny.txt": "# the stack\ntinylib==1.0\n",
            "benchmarks/library.py": USES_THE_LIBRARY,
        },
    )
    for version, factor in (("1.0", 1.0), ("2.0", 1.5)):
        prproject.make_wheel(scratch.wheels, "tinylib", version, {"tinylib.py": f"FACTOR = {factor}\n"})
    return scratch


def test_each_side_has_its_own_pins_and_its_own_project(stacked: Scratch, tmp_path: Path) -> None:
    """A change of the project alone shares the libraries; one of the pins brings its own, and is named as such."""
    scratch = stacked
    scratch.branch("recipe")
    scratch.commit({"scratch.py": "FACTOR = 1.2\n", "requirements/tiny.txt": "tinylib==1.0  # the same\n"})
    scratch.branch("pins")
    scratch.commit({"requirements/tiny.txt": "tinylib==2.0\n"})
    arguments = ("-b", "library", "--stack", "tiny", "--rounds", "1", "--output")

    done = scratch.pr("main", "recipe", *arguments, str(tmp_path / "recipe"))
    assert done.stdout.count("installing the pins of tiny") == 1
    measured = read(tmp_path / "recipe")
    assert speed(measured) == pytest.approx(1.2, abs=0.02)
    assert (measured.base.stack, measured.base.pins) == ("tiny", {"tinylib": "1.0"})
    assert measured.head.pins == measured.base.pins
    assert judge.compare(measured).packages == []

    done = scratch.pr("recipe", "pins", *arguments, str(tmp_path / "pins"))
    assert done.stdout.count("installing the pins of tiny") == 1  # the others are there already
    measured = read(tmp_path / "pins")
    assert speed(measured) == pytest.approx(1.5, abs=0.03)
    compared = judge.compare(measured)
    assert [(item.name, item.base, item.head, item.pinned) for item in compared.packages] == [
        ("tinylib", "1.0", "2.0", True)
    ]
    assert compared.incomparable == []


def speed(measured: Measurements) -> float:
    """Return how much longer head takes."""
    base, head = (row(side, "library.Library", "time_it").processes for side in (measured.base, measured.head))
    return head[0].value / base[0].value


def test_pins_that_cannot_be_installed(stacked: Scratch, tmp_path: Path) -> None:
    scratch = stacked
    scratch.branch("absent")
    scratch.commit({"requirements/tiny.txt": "tinylib==3.0\n"})
    done = scratch.pr("main", "absent", "--stack", "tiny", "--output", str(tmp_path / "out"))
    assert done.returncode == 1, done.stdout + done.stderr
    measured = read(tmp_path / "out")
    assert measured.head.error == "cannot be installed: No matching distribution found for tinylib==3.0"
    assert measured.base.error == ""


def test_neither_side_can_be_installed(stacked: Scratch, tmp_path: Path) -> None:
    """It cannot be judged, and there is a document that says why: somebody waits for a comment."""
    scratch = stacked
    scratch.branch("gone")
    scratch.commit({"requirements/tiny.txt": "tinylib==4.0\n"})
    done = scratch.pr("gone", "gone", "--stack", "tiny", "--output", str(tmp_path / "out"))
    assert done.returncode == 2, done.stdout + done.stderr
    measured = read(tmp_path / "out")
    why = "cannot be installed: No matching distribution found for tinylib==4.0"
    assert (measured.base.error, measured.head.error) == (why, why)
    assert f"base {why}" in done.stdout
    assert f"head {why}" in done.stdout


def test_a_stack_that_neither_side_has_is_a_mistyped_option(stacked: Scratch, tmp_path: Path) -> None:
    done = stacked.pr("main", "main", "--stack", "nosuch", "--output", str(tmp_path / "out"))
    assert done.returncode == 3
    assert done.stderr == "machmeter: unknown stack 'nosuch': known stacks are tiny\n"
    assert not (tmp_path / "out").exists()


def test_environments_of_pins_do_not_fill_the_disk(tmp_path: Path) -> None:
    """The two that were used last are kept. One that was never finished is not counted: it is made again."""
    for age, name in enumerate(("oldest", "older", "newer")):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".complete").touch()
        os.utime(tmp_path / name / ".complete", (age, age))
    (tmp_path / "unfinished").mkdir()
    pin_environments.remove_old(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["newer", "older", "unfinished"]


def test_what_a_machmeter_suite_records(tmp_path: Path) -> None:
    """Facts known once, the machine, disturbances, and reasons: from the evidence of each process."""
    scratch = prproject.make(tmp_path)
    (scratch.folder / "benchmarks/work.py").unlink()
    (scratch.folder / "benchmarks/control.py").unlink()
    shutil.copytree(SUITE, scratch.folder / "benchmarks", dirs_exist_ok=True)
    settings = {"batches": [1], "repeat": (5, 10, 0.2), "timeout": 60.0}
    scratch.commit({"benchmarks/cpu/sleeper.py": MODULE.format(name="sleeper", **settings)}, "base")
    scratch.branch("head")
    scratch.commit({"benchmarks/cpu/crasher.py": MODULE.format(name="crasher", **settings)}, "head")
    done = scratch.pr("main", "head", "-b", "time_forward|peakmem|load_time|sqnr", "--rounds", "1", "--output", "out")
    measured = read(scratch.folder / "out")
    cell = "cpu.sleeper.Small(fp32, 1)"
    for side in (measured.base, measured.head):
        assert len(row(side, cell, "time_forward").processes) == 1
        loading = row(side, cell, "track_load_time").processes  # from the process that was timed
        assert [process.value for process in loading] == [opening(scratch, side, cell)["track_load_time"]]
        assert len(row(side, cell, "peakmem_forward").processes) == 1
        assert row(side, cell, "track_sqnr").status == "n/a"  # the fake computes nothing
        assert row(side, cell, "time_forward").processes[0].disturbed is not None
        assert side.host["thread budget"]
        assert side.versions["numpy"]
    crashed = row(measured.head, "cpu.crasher.Small(fp32, 1)", "time_forward")
    assert (crashed.status, crashed.reason) == ("failed", "crashed (signal 11, segmentation fault)")
    assert done.returncode == 2, done.stdout + done.stderr  # one round cannot be judged
    (evidence,) = (scratch.folder / "out" / "head" / "evidence").glob("*/*.json")
    runs = json.loads(evidence.read_text())["runs"].values()
    assert {run["uncommitted_changes"] for run in runs} == {False}
    assert sum(cell in run["cells"] for run in runs) == 1  # nothing was surveyed again for it

    # Where nothing else of the cell is timed it has processes of its own, and each finds it itself.
    scratch.pr("main", "head", "-b", "sleeper.*load_time", "--rounds", "2", "--output", "alone")
    measured = read(scratch.folder / "alone")
    for side in (measured.base, measured.head):
        loading = row(side, cell, "track_load_time").processes
        assert [process.round for process in loading] == [1, 2]
        assert loading[0].value != loading[1].value


def opening(scratch: Scratch, side: Side, cell: str) -> dict[str, float]:
    """Return what the process that was timed put on record of its beginning."""
    (path,) = (scratch.folder / "out").glob(f"*/evidence/*/{side.commit[:8]}-*.json")
    (run,) = [run for run in json.loads(path.read_text())["runs"].values() if cell in run["cells"]]
    (record,) = [record for record in run["cells"][cell].values() if record["benchmark"] == "time_forward"]
    return record["opening_seconds"]
