"""The recorded results in examples/: what they may hold, how a machine is added, and the site of `make demo`."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from helpers.project import ROOT
from helpers.without_frameworks import BLOCKER

EXAMPLES = ROOT / "examples"
MACHINES = sorted(path.name for path in (EXAMPLES / "results").iterdir() if path.is_dir())


def _script() -> ModuleType:
    specification = importlib.util.spec_from_file_location("add_example", ROOT / "tools" / "docs" / "add_example.py")
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site that `make demo` builds, where no framework can be imported."""
    folder, blocked = tmp_path_factory.mktemp("demo"), tmp_path_factory.mktemp("blocked")
    (blocked / "sitecustomize.py").write_text(BLOCKER)
    variables = {**os.environ, "PYTHONPATH": f"{blocked}:{ROOT / 'tools'}"}
    tried = subprocess.run([sys.executable, "-c", "import torch"], env=variables, capture_output=True, check=False)
    assert b"No module named 'torch'" in tried.stderr
    # The environment is that of the tests, and a test installs nothing.
    installed = [f"VENV={sys.prefix}", "-o", f"{sys.prefix}/.tools", "-o", "node_modules/.site"]
    done = subprocess.run(
        ["make", *installed, "demo", "SERVE=0", f"DEMO={folder}"],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left out" not in done.stdout
    return folder / "html"


def test_the_demo_has_the_page_of_the_model_on_every_machine(demo: Path) -> None:
    home = (demo / "index.html").read_text(encoding="utf-8")
    for name in MACHINES:
        pages = {path.name: path.read_text(encoding="utf-8") for path in (demo / "model" / name).glob("*.html")}
        assert name in pages["ResNet50.html"]
        assert f'href="model/{name}/ResNet50.html"' in home


def test_the_demo_has_ladders_a_sweep_and_failures(demo: Path) -> None:
    assert "TCMalloc" in (demo / "model" / "xeon-amx" / "ResNet50.html").read_text(encoding="utf-8")
    assert "TCMalloc" in (demo / "model" / "xeon-amx" / "ViTB16.html").read_text(encoding="utf-8")
    assert "2025.0.0" in (demo / "versions.html").read_text(encoding="utf-8")
    assert "other programs used the CPUs" in (demo / "failures.html").read_text(encoding="utf-8")


def test_the_examples_are_small() -> None:
    script = _script()
    assert script.size(EXAMPLES) <= script.MOST_BYTES == 3_000_000


def test_the_examples_name_nobodys_folders() -> None:
    script = _script()
    names = [str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.json")]
    texts = [path.read_text(encoding="utf-8") for path in EXAMPLES.rglob("*.json")]
    assert [found.group() for text in [*names, *texts] if (found := script._PRIVATE.search(text))] == []


def test_the_page_of_the_examples_has_every_machine() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE) == MACHINES


def _measured(folder: Path, machine: str, where: str) -> Path:
    """Results as a machine leaves them, with a lock and a trace."""
    environment = f"existing-py{where.replace('/', '_')}_.venv_bin_python-STACKcpu"
    results, evidence = folder / "results" / machine, folder / "evidence" / machine
    (evidence / ".traces").mkdir(parents=True)
    results.mkdir(parents=True)
    (folder / "results" / "benchmarks.json").write_text(json.dumps({"cpu.new.time_it": {"unit": "seconds"}}))
    (results / f"929a988f-{environment}.json").write_text(json.dumps({"python": f"{where}/.venv/bin/python"}, indent=1))
    (evidence / f"929a988f-{environment}.json").write_text(json.dumps({"environment": environment, "machine": machine}))
    (evidence / f".929a988f-{environment}.json.lock").write_text("")
    (evidence / ".traces" / "0123.json").write_text("{}")
    return folder


def test_a_machine_is_added_without_its_paths(tmp_path: Path) -> None:
    script = _script()
    examples = tmp_path / "examples"
    (examples / "results").mkdir(parents=True)
    (examples / "results" / "benchmarks.json").write_text(json.dumps({"cpu.old.time_it": {"unit": "seconds"}}))
    folder = _measured(tmp_path / "measured", "xeon", "/data/ann/machmeter")
    pairs = script.replacements(Path("/data/ann/machmeter"), Path("/data/ann"))
    name = "929a988f-existing-py_home_you_machmeter_.venv_bin_python-STACKcpu.json"
    assert script.add(folder, examples, pairs) == [
        f"evidence/xeon/{name}",
        "results/benchmarks.json",
        f"results/xeon/{name}",
    ]
    assert (examples / "results" / "xeon" / name).read_text() == '{"python":"/home/you/machmeter/.venv/bin/python"}\n'
    assert list(json.loads((examples / "results" / "benchmarks.json").read_text())) == [
        "cpu.new.time_it",
        "cpu.old.time_it",
    ]
    assert [path.name for path in examples.rglob(".*")] == []


@pytest.mark.parametrize("where", ["/home/ann/m", "/root/m", "/tmp/m", "/Users/ann/m", "/srv/ann/m"])
def test_paths_that_nobody_replaced_are_refused(tmp_path: Path, where: str) -> None:
    script = _script()
    folder = _measured(tmp_path / "measured", "xeon", where)
    with pytest.raises(script.Unfit, match="has the path"):
        script.add(folder, tmp_path / "examples", script.replacements(Path("/data/other"), Path("/data/home")))
    assert not (tmp_path / "examples").exists()


def test_more_than_the_examples_may_hold_is_refused(tmp_path: Path) -> None:
    script = _script()
    folder = _measured(tmp_path / "measured", "xeon", "/data/ann")
    (folder / "results" / "xeon" / "929a988f-large.json").write_text(json.dumps("x" * script.MOST_BYTES))
    with pytest.raises(script.Unfit, match="more than 3,000,000"):
        script.add(folder, tmp_path / "examples", script.replacements(Path("/data/ann"), Path("/data/ann")))


def test_adding_twice_changes_nothing(tmp_path: Path) -> None:
    script = _script()
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    before = {path: path.read_bytes() for path in (tmp_path / "examples").rglob("*.json")}
    script.add(EXAMPLES, tmp_path / "examples", [])
    assert {path: path.read_bytes() for path in (tmp_path / "examples").rglob("*.json")} == before
