"""`machmeter ladder` from end to end: real asv, real worker processes; and what its table says of them."""

from __future__ import annotations

import contextlib
import dataclasses
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
from machmeter import backends, recommend
from machmeter.machine import host, process
from machmeter.measure import instances, rung_configuration, starting
from machmeter.measure.instances import Done
from machmeter.tables import ladder_table
from machmeter.tables.cells_table import Table
from machmeter.workload import fidelity, launch, models, rungs
from machmeter.workload import precision as precision_labels
from machmeter.workload.cells import Cell
from machmeter.workload.launch import Launch
from machmeter.workload.rungs import Rung

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
    begun.send_signal(signal.SIGTERM)
    _, said = begun.communicate()
    assert begun.returncode == 130, said
    assert "interrupted" in said
    while any(process.is_running(pid, process.process_identity(pid)) for pid in workers):
        time.sleep(0.1)  # it ends when its parent's socket closes; a failure is a test that hangs


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


# ---------------------------------------------------------------------- the table, from literal records


def record(speed: float | None, **more: Any) -> dict[str, Any]:
    proof = {"huge_page_bytes": 0, "memory_binding": {"bound": False}, "cpus": [0, 1], "variables": {}}
    settings = {"backend": "eager", "precision": "fp32", "batch": 1}
    if speed is None:
        return {"status": "n/a", "started_at": 1.0, "settings": settings, **more}
    return {
        "status": "ok",
        "started_at": 1.0,
        "settings": settings,
        "images_per_second": speed,
        "median_seconds": 1 / speed,
        "call_seconds": [1 / speed] * 5,
        "facts": {"track_top1_agreement": 1.0, "track_sqnr": 100.0},
        "instances": [{"proof": proof, "threads": 2, "artifact": {"kind": "weights", "key": "k"}}],
        **more,
    }


def write(folder: Path, environment: str, cells: dict[str, dict[str, Any]], cpu: str = "Xeon") -> None:
    content = {
        "schema": 1,
        "machine": "box",
        "commit": "a" * 40,
        "environment": environment,
        "runs": {
            "run": {
                "started": "2026-01-01T00:00:00Z",
                "host": {"cpu": {"model": cpu}, "thread_budget": 2},
                "versions": {"torch": environment},
                "cells": {f"tuning.ResNet50({name})": {"p": found} for name, found in cells.items()},
            }
        },
    }
    (folder / "evidence/box").mkdir(parents=True, exist_ok=True)
    (folder / f"evidence/box/aaaaaaaa-{environment}.json").write_text(json.dumps(content))


STEPS = [
    Rung(name="first", title="first", on=None, adds={"backend": "eager", "precision": "fp32", "batch": 1}),
    Rung(name="second", title="second", on="first"),
    Rung(name="third", title="third", on="second"),
]


def test_gains_over_the_rung_below_and_over_the_first(tmp_path: Path) -> None:
    write(tmp_path, "cpu", {"first": record(20.0), "second": record(50.0), "third": record(40.0)})
    rows = ladder_table.build(tmp_path / "results", "box", "ResNet50", STEPS).rows
    assert [(row.times_below, row.times_first, row.slower) for row in rows] == [
        (None, 1.0, False),
        (2.5, 2.5, False),
        (0.8, 2.0, True),
    ]


def test_a_missing_rung_below_gives_no_ratio(tmp_path: Path) -> None:
    write(tmp_path, "cpu", {"first": record(20.0), "second": record(None, reason="no"), "third": record(40.0)})
    rows = ladder_table.build(tmp_path / "results", "box", "ResNet50", STEPS).rows
    assert [(row.status, row.times_below, row.times_first) for row in rows] == [
        ("ok", None, 1.0),
        ("n/a", None, None),
        ("ok", None, 2.0),
    ]


def test_what_one_stack_lacks_does_not_hide_what_another_measured(tmp_path: Path) -> None:
    write(tmp_path, "ipex", {"second": record(50.0)})
    write(tmp_path, "cpu", {"first": record(20.0), "second": record(None, reason="no IPEX", started_at=2.0)})
    rows = ladder_table.build(tmp_path / "results", "box", "ResNet50", STEPS).rows
    assert (rows[1].status, rows[1].images_per_second, rows[1].torch) == ("ok", 50.0, "ipex")


def test_a_rung_can_be_recommended_with_the_command_that_starts_it(tmp_path: Path) -> None:
    """A faster rung wins over cells, and the command names what its processes were really given."""
    worker = {
        "proof": {
            "huge_page_bytes": 1,
            "memory_binding": {"bound": False},
            "cpus": [0],
            "variables": {
                "LD_PRELOAD": "/lib/libtcmalloc.so.4",
                "THP_MEM_ALLOC_ENABLE": "1",
                "NUMPY_MADVISE_HUGEPAGE": "0",
            },
        },
        "threads": 1,
        "artifact": {"kind": "weights", "key": "k"},
    }
    settings = {
        "backend": "eager",
        "precision": "bf16",
        "options": {"layout": "channels_last"},
        "batch": 8,
        "allocator": "tcmalloc",
        "huge_pages": True,
        "launcher": "run_cpu",
        "instances": 2,
    }
    second = {**worker, "proof": {**worker["proof"], "cpus": [1]}}
    write(
        tmp_path, "cpu", {"first": record(20.0), "second": record(50.0, settings=settings, instances=[worker, second])}
    )
    steps = [STEPS[0], Rung(name="second", title="second", on="first", adds=settings)]
    built = ladder_table.build(tmp_path / "results", "box", "ResNet50", steps)
    empty = Table(machine="box", host={}, rows=(), notes=())
    best = recommend.judge(recommend.measured(empty, built), []).recommended
    assert (best.name, best.images_per_second, best.threads) == ("rung second (eager bf16) batch 8", 50.0, 1)
    assert best.launch == (
        "LD_PRELOAD=/lib/libtcmalloc.so.4 THP_MEM_ALLOC_ENABLE=1 NUMPY_MADVISE_HUGEPAGE=0 "
        "python -m torch.backends.xeon.run_cpu --ninstances 2 --ncores-per-instance 1 --core-list 0,1 "
        "--use-default-allocator program.py"
    )


def test_instances_without_a_launcher_are_bound_by_taskset() -> None:
    assert launch.shell(Launch(instances=2), [[0], [1]], {}) == (
        "taskset -c 0 python program.py & taskset -c 1 python program.py"
    )
    assert launch.shell(Launch(), [[0, 1]], {}) == ""


def test_a_disturbed_rung_has_no_gain_and_gives_none(tmp_path: Path) -> None:
    """A busy machine must not make the next step look twenty times faster."""
    write(tmp_path, "cpu", {"first": record(20.0), "second": record(2.0, disturbed_share=0.78), "third": record(40.0)})
    rows = ladder_table.build(tmp_path / "results", "box", "ResNet50", STEPS).rows
    assert [(row.images_per_second, row.times_below, row.times_first, row.slower) for row in rows] == [
        (20.0, None, 1.0, False),
        (2.0, None, None, False),
        (40.0, None, 2.0, False),
    ]
    assert rows[1].reason == "disturbed: other programs had 78 % of the CPUs while it was timed"


def test_a_newer_disturbed_measurement_does_not_replace_an_undisturbed_one(tmp_path: Path) -> None:
    write(tmp_path, "a", {"first": record(20.0, disturbed_share=0.01)})
    write(tmp_path, "b", {"first": record(2.0, disturbed_share=0.78, started_at=9.0)})
    assert ladder_table.build(tmp_path / "results", "box", "ResNet50", STEPS).rows[0].images_per_second == 20.0


def test_a_rung_that_was_defined_anew_was_not_measured_yet(tmp_path: Path) -> None:
    write(tmp_path, "cpu", {"first": record(20.0)})
    anew = [Rung(name="first", title="first", on=None, adds={"backend": "eager", "precision": "fp32", "batch": 32})]
    assert ladder_table.build(tmp_path / "results", "box", "ResNet50", anew).rows[0].status == "not run"


def test_rungs_of_different_cpus_are_not_compared_without_a_word(tmp_path: Path) -> None:
    write(tmp_path, "a", {"first": record(20.0)}, cpu="Xeon")
    write(tmp_path, "b", {"second": record(50.0)}, cpu="EPYC")
    (note,) = ladder_table.build(tmp_path / "results", "box", "ResNet50", STEPS).notes
    assert "different CPU models" in note


# ---------------------------------------------------------------------- real models


@pytest.fixture
def resnet18(store_variable: Path) -> Any:
    known = rungs.load()

    def climb(name: str) -> Done:
        found = rung_configuration.configuration(known[name], known, "ResNet18")
        if reason := (
            starting.unsupported(found.launch)
            or backends.unsupported(found.backend, models.get("ResNet18"), found.cell.precision, **found.cell.options)
        ):
            pytest.skip(reason)
        return instances.run(dataclasses.replace(found, seconds=1.0))

    return climb


@pytest.mark.models
@pytest.mark.parametrize("name", ["tcmalloc", "huge-pages", "two-instances", "onnxruntime", "openvino-int8"])
def test_rungs_on_a_real_model(name: str, resnet18: Any) -> None:
    """What was asked for is proved by `instances.run`; here, that the answers are right and the speed is one."""
    done = resnet18(name)
    assert done.images_per_second > 1
    assert (
        fidelity.shortfall(
            fidelity.Fidelity(
                top1_agreement=done.facts()["track_top1_agreement"], sqnr_db=done.facts()["track_sqnr"], images=64
            ),
            "int8" if name == "openvino-int8" else "fp32" if name == "onnxruntime" else "bf16",
        )
        is None
    )
    if name == "huge-pages":
        assert (done.workers[0].proof.huge_page_bytes or 0) > 10e6


@pytest.mark.models
def test_openvino_says_which_precision_it_chose(resnet18: Any) -> None:
    """M10: left alone it takes bf16 where the CPU has it, and the row says so."""
    (worker,) = resnet18("openvino").workers
    assert worker.precision == ("bf16" if host.cpu().has_bf16 else "fp32")


@pytest.mark.models
@pytest.mark.usefixtures("store_variable")
@pytest.mark.parametrize(
    ("name", "options", "in_flight"),
    [("openvino", {}, "requests"), ("onnxruntime", {}, "sessions"), ("eager", {"layout": "channels_last"}, None)],
)
def test_offline_throughput(name: str, options: dict[str, str], in_flight: str | None) -> None:
    """Requests side by side: the runtime's own where it has them, instances where it has not."""
    cell = Cell(device="cpu", backend=name, model="ResNet18", precision="fp32", batch=8, options=options)
    found = instances.offline(backends.get(name), cell)
    done = instances.run(dataclasses.replace(found, seconds=1.0))
    budget = host.thread_budget()
    assert done.facts()["track_top1_agreement"] >= 0.98
    if in_flight:
        assert len(done.workers) == 1
        assert done.workers[0].effective.settings[in_flight] >= budget
        assert done.workers[0].effective.threads == budget
    else:
        assert len(done.workers) == budget
    assert done.images_per_second > 1


@pytest.mark.parametrize(
    ("compute", "precision"),
    [
        ({"fp32": 1, "bf16": 52}, "bf16"),
        ({"fp32": 50, "bf16": 3}, "fp32"),
        ({"int8": 3, "fp32": 50}, "int8"),
        ({}, "fp32"),
    ],
)
def test_the_precision_a_runtime_chose(compute: dict[str, int], precision: str) -> None:
    assert precision_labels.dominant(compute) == precision


def test_ipex_names_the_stack_it_needs() -> None:
    """M24: a library that is missing or too new is n/a, with what to do."""
    reason = backends.unsupported(backends.get("ipex"), models.get("ResNet50"), "bf16", mode="eager")
    if "ipex" not in str(reason):
        pytest.skip("this is the stack ipex")
    assert "IPEX ended with 2.8.0, which needs torch 2.8" in str(reason)
    assert "machmeter run --stack ipex" in str(reason)
