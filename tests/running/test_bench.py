"""`machmeter bench` from end to end, on a real model and real runtimes in a clone of this repository."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from helpers.project import ROOT, Project

pytestmark = [pytest.mark.models, pytest.mark.quiet]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory, shared_store: Path) -> Project:
    base = tmp_path_factory.mktemp("bench")
    (base / "home").mkdir()
    project = Project(folder=base, home=base / "home", variables={"MACHMETER_STORE": str(shared_store)})
    done = project.command("git", "clone", "--quiet", str(ROOT), "clone")
    assert done.returncode == 0, done.stderr
    project.folder = base / "clone"
    return project


BENCH = ("bench", "--model", "EfficientNetLite0", "--batch", "8", "--filter", r"\((fp32|int8),", "-a", "repeat=30")
BACKENDS = ("--backend", "onnxruntime", "--backend", "openvino")


def test_one_command_measures_and_shows(clone: Project, shared_store: Path) -> None:
    """No prompt, progress, every cell in the table with answers; a second run prepares nothing again."""
    first = clone.machmeter(*BENCH, *BACKENDS)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "[  4/4] cpu.openvino.EfficientNetLite0(int8, 8): " in first.stdout
    artifacts = sorted(path.name for path in shared_store.glob("*/*/"))
    rows = json.loads(clone.machmeter("show", "--json").stdout)["rows"]
    assert {(row["backend"], row["precision"], row["status"]) for row in rows} == {
        (backend, precision, "ok") for backend in ("onnxruntime", "openvino") for precision in ("fp32", "int8")
    }
    for row in rows:
        assert row["images_per_second"] > 0
        assert 0.5 < row["top1_agreement"] <= 1.0
        assert row["peak_memory_mb"] > 50
        assert row["samples"] == 30
        assert f"{row['images_per_second']:.1f}" in first.stdout

    second = clone.machmeter(*BENCH, "--backend", "openvino", "--offline")
    assert second.returncode == 0, second.stderr
    assert sorted(path.name for path in shared_store.glob("*/*/")) == artifacts
    again = {row["backend"]: row for row in json.loads(clone.machmeter("show", "--json").stdout)["rows"]}
    assert {row["offline_images_per_second"] for row in rows} == {None}  # only where it was asked for
    assert again["openvino"]["offline_images_per_second"] > 0
    assert again["openvino"]["prepare_s"] == {row["backend"]: row for row in rows}["openvino"]["prepare_s"]


def test_asvs_own_commands_read_the_results(clone: Project) -> None:
    for arguments in (("show", "HEAD"), ("compare", "HEAD", "HEAD"), ("publish",)):
        done = clone.command(sys.executable, "-m", "asv", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (clone.folder / "html" / "index.html").is_file()
