"""The tuning ladder as a command, on fake backends and on a real model."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from helpers.project import SUITE, Project, make_project
from machmeter.machine import host, process

pytestmark = pytest.mark.quiet

MODULE = """
from machmeter.workload import models
from machmeter.measure.ladder_classes import ladder_classes

globals().update(ladder_classes(__name__, [models.get("ResNet50")]))
"""


RUNGS = """
[one]
title = "one instance"
adds = { backend = "fakes:sleeper", precision = "fp32", batch = 8, seconds = 1 }
[two]
on = "one"
adds = { instances = 2 }
[faster]
on = "one"
adds = { allocator = "tcmalloc" }
[too-many]
on = "one"
adds = { instances = 4096 }
[dies]
on = "one"
adds = { backend = "fakes:crasher" }
[slow]
on = "one"
adds = { backend = "fakes:hanger" }
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A ladder of fake backends, climbed once."""
    base = tmp_path_factory.mktemp("ladder")
    project = make_project(base / "project", base / "home", {}, {"tuning.py": MODULE})
    (project.folder / "mine.toml").write_text(RUNGS)
    for name in ("PYTHONPATH", "ASV_PYTHONPATH"):  # asv gives its processes the second as the first
        project.variables[name] = os.pathsep.join([str(SUITE), os.environ.get("PYTHONPATH", "")])
    return project


CHOSEN = (
    "--rungs",
    "mine.toml",
    *(part for name in ("one", "two", "faster", "too-many", "dies") for part in ("--rung", name)),
)


@pytest.fixture(scope="module")
def output(project: Project) -> str:
    done = project.machmeter("ladder", "ResNet50", *CHOSEN)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def rows(project: Project, output: str) -> dict[str, dict[str, Any]]:
    shown = project.machmeter("ladder", "ResNet50", "--rungs", "mine.toml", "--show", "--json")
    assert shown.returncode == 0, shown.stderr
    return {row["rung"]: row for row in json.loads(shown.stdout)["rows"]}


def test_each_rung_has_its_gain(rows: dict[str, dict[str, Any]]) -> None:
    # Batches would be 100 and instances that are averaged 1.0; a busy machine only makes them slower.
    assert rows["one"]["images_per_second"] == pytest.approx(800, rel=0.35)
    gain = rows["two"]["images_per_second"] / rows["one"]["images_per_second"]
    assert gain == pytest.approx(2.0, rel=0.25)
    disturbed = rows["one"]["reason"] or rows["two"]["reason"]  # then no gain is claimed
    assert rows["two"]["times_below"] == (None if disturbed else pytest.approx(gain, rel=0.01))
    assert rows["faster"]["launch"]["allocator"] == "tcmalloc"
    assert rows["two"]["instances"] == 2
    assert rows["one"]["batch"] == 8
    assert rows["one"]["times_below"] is None
    assert rows["two"]["times_first"] is None  # the ladder's first rung was not measured


def test_why_a_rung_was_not_possible(rows: dict[str, dict[str, Any]]) -> None:
    """M8 through the command; M18: the others go on."""
    assert rows["too-many"]["status"] == "n/a"
    cores = host.cpu().physical_cores
    assert f"4096 instances need 4096 physical cores, and this process may use {cores}" in rows["too-many"]["reason"]
    assert rows["dies"]["status"] == "failed"
    assert "killed by signal 11" in rows["dies"]["reason"]
    assert rows["slow"]["status"] == "not run"
    assert rows["ipex"]["status"] == "not run"


def test_progress_and_table(output: str) -> None:
    assert re.search(r"\[ +1/5\] tuning\.ResNet50\(one\): [5-8]\d\d\.\d images/s", output)
    assert "failed  dies: " in output
    assert "n/a     too-many: " in output


@pytest.mark.parametrize(
    ("names", "code", "said"),
    [
        (("dies", "too-many"), 10, "machmeter: nothing could be measured: 1 failed, 1 n/a; the reasons are above\n"),
        (("too-many",), 0, ""),
    ],
)
def test_a_ladder_of_which_all_failed_is_a_failure(
    project: Project, output: str, names: tuple[str, ...], code: int, said: str
) -> None:
    """After the table; what is not possible here is none, and neither is one rung of several."""
    chosen = [part for name in names for part in ("--rung", name)]
    done = project.machmeter("ladder", "ResNet50", "--rungs", "mine.toml", *chosen)
    assert (done.returncode, done.stderr) == (code, said)
    assert "n/a     too-many: " in done.stdout


def test_only_the_rungs_that_were_named_are_shown(project: Project, rows: dict[str, dict[str, Any]]) -> None:
    shown = project.machmeter("ladder", "ResNet50", "--rungs", "mine.toml", "--rung", "two", "--show", "--json")
    (row,) = json.loads(shown.stdout)["rows"]
    assert row == rows["two"]  # with its gain over a rung that is not shown


def test_asv_has_the_samples(project: Project, rows: dict[str, dict[str, Any]]) -> None:
    """The ladder is a benchmark as any other: asv's files hold its slices, and asv can publish them."""
    (path,) = project.results.glob("*/*existing*.json")
    content = json.loads(path.read_text())
    record = dict(zip(content["result_columns"], content["results"]["tuning.ResNet50.track_throughput"], strict=False))
    numbers = dict(zip([name.strip("'") for name in record["params"][0]], record["result"], strict=True))
    assert numbers["one"] == pytest.approx(rows["one"]["images_per_second"], rel=0.01)
    samples = dict(zip([name.strip("'") for name in record["params"][0]], record["samples"], strict=True))
    assert len(samples["one"]) == 20
    done = project.asv("publish")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("ladder", "ResNet51"), 3, "unknown model 'ResNet51'"),
        (("ladder", "ResNet50", "--rung", "nothing"), 3, "unknown rung 'nothing'"),
        (("ladder", "ResNet18"), 3, "ResNet18 is only for tests"),
        (("ladder", "ResNet50", "--rungs", "nowhere.toml"), 9, "cannot read rungs from"),
        (("ladder", "ViTB16", "--show"), 8, "no rung of ViTB16 was measured"),
    ],
)
def test_bad_input_is_one_line(project: Project, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = project.machmeter(*arguments)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_being_told_to_end_leaves_nothing_running(project: Project, output: str) -> None:
    """`timeout`, a service manager and CI send SIGTERM: an orphan would disturb all later measurements."""
    program = "from machmeter.cli import main; main()"
    begun = subprocess.Popen(
        [sys.executable, "-c", program, "ladder", "ResNet50", "--rungs", "mine.toml", "--rung", "slow"],
        cwd=project.folder, env=project.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not (workers := _descendants(begun.pid, "machmeter.measure.instance")):
        assert begun.poll() is None
        time.sleep(0.1)
    identities = {pid: process.process_identity(pid) for pid in workers}
    begun.send_signal(signal.SIGTERM)
    _, said = begun.communicate()
    assert begun.returncode == 130, said
    assert "interrupted" in said
    # A worker ends when its parent's socket closes. One that stays is killed after a long while, and is the failure.
    for _ in range(600):
        left = [pid for pid, identity in identities.items() if process.is_running(pid, identity)]
        if not left:
            break
        time.sleep(0.1)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def _descendants(pid: int, words: str) -> list[int]:
    """Return the processes below `pid` whose command line has `words`."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            parents[int(entry.parent.name)] = int(entry.read_text().rsplit(")", 1)[1].split()[1])
    below, grown = {pid}, True
    while grown:
        more = {child for child, parent in parents.items() if parent in below} - below
        below, grown = below | more, bool(more)
    return [child for child in below if any(words in part for part in process.command_line(child))]
