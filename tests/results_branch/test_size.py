"""What the branch takes, and what asv and the site make of a pulled store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import git_remotes as branches
from helpers import stores
from helpers.git_remotes import Project, git
from helpers.results_branch import pushed
from machmeter.history.read import read
from machmeter.site import build


@pytest.fixture
def pulled(tmp_path: Path, remote: Path) -> Path:
    """A checkout of a branch with what machmeter's own store has."""
    source = branches.project(tmp_path / "source", remote)
    stores.own(source.results)
    pushed(source)
    folder = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", "--branch", "results", str(remote), str(folder)], check=True)
    return folder


def test_the_site_is_built_of_a_checkout(pulled: Path, tmp_path: Path) -> None:
    output = tmp_path / "html"
    build.run(build.Request(results=pulled / "results", output=output, title="suite"), lambda step, done, of: None)
    assert (output / "index.html").is_file()
    history = read(pulled / "results")
    assert (len(history.commits), history.left_out) == (3, ())
    assert "openvino" in (output / "index.html").read_text()


ASV_MODULE = "def time_nothing():\n    pass\n\n\ndef track_number():\n    return 7\n"


def test_asv_publishes_and_compares_a_pulled_store(tmp_path: Path, remote: Path) -> None:
    """Real asv measures a commit twice; both runs are pushed, and pulled elsewhere asv's own commands work."""
    configuration = {"version": 1, "project": "p", "repo": ".", "branches": ["main"], "environment_type": "virtualenv"}
    source = branches.project(tmp_path / "source", remote)
    (source.folder / "asv.conf.json").write_text(json.dumps(configuration))
    (source.folder / "benchmarks").mkdir()
    (source.folder / "benchmarks/__init__.py").write_text("")
    (source.folder / "benchmarks/small.py").write_text(ASV_MODULE)
    git(source.folder, "add", "--all")
    git(source.folder, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "-m", "suite")
    git(source.folder, "push", "--quiet", "origin", "main")

    def asv(folder: Path, *arguments: str) -> str:
        variables = {**os.environ, "HOME": str(tmp_path)}
        command = [sys.executable, "-m", "asv", *arguments]
        answer = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout + answer.stderr

    asv(source.folder, "machine", "--yes", "--machine", "here")
    for commit in ("HEAD~1", "HEAD", "HEAD"):
        name = git(source.folder, "rev-parse", commit).strip()
        options = ["--python=same", "--quick", "--machine", "here", "--set-commit-hash", name]
        asv(source.folder, "run", *options)
        pushed(source)
    assert len([path for path in branches.runs(remote) if path.startswith("results/")]) == 3
    folder = tmp_path / "elsewhere"
    subprocess.run(["git", "clone", "--quiet", str(remote), str(folder)], check=True)
    assert Project(folder).command("pull")[0] == 0
    assert "Skipping" not in asv(folder, "publish")
    index = json.loads((folder / "html/index.json").read_text())
    assert sorted(index["benchmarks"]) == ["small.time_nothing", "small.track_number"]
    (graph,) = (
        path for path in (folder / "html/graphs").rglob("small.track_number.json") if "summary" not in str(path)
    )
    assert [point[1] for point in json.loads(graph.read_text())] == [7, 7]
    compared = asv(folder, "compare", "--machine", "here", "HEAD~1", "HEAD")
    assert "small.track_number" in compared


def test_the_size_budget_is_computed_from_the_runs_that_are_here(project: Project) -> None:
    project.measure(1)
    project.measure(2)
    code, output = project.command("size", "--years", "3", "--machines", "4")
    assert code == 0
    here, forecast, packed, plain = output.splitlines()
    assert here.startswith("here: 2 runs on 1 machine; a run is 1 cell in 2.0 files, ")
    assert (
        forecast
        == "3 years of 1 run a day on each of 4 machines: 4\N{NO-BREAK SPACE}380 runs, 8\N{NO-BREAK SPACE}760 files"
    )
    assert packed.startswith("  in git       ")
    assert plain.startswith("  checked out  ")


def test_the_size_budget_is_what_git_really_takes(project: Project, remote: Path) -> None:
    """Pushed one by one and packed as a server packs, ten small runs take no more than was said, and not much less."""
    from machmeter.results_branch import collect, size

    for number in range(1, 11):
        project.measure(number, value=number / 7, started=1_700_000_000_000 + number)
        pushed(project)
    git(remote, "gc", "--quiet")
    packs = sum(path.stat().st_size for path in (remote / "objects/pack").iterdir() if path.suffix in (".pack", ".idx"))
    said = size.budget(collect.collect([collect.of_project(project.folder)]))
    computed = said.packed * said.runs + said.fixed
    assert 0.5 * computed < packs < computed
