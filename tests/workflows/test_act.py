"""The workflows, really run by act: their commands, the order of their jobs, and what passes between them."""

from __future__ import annotations

import subprocess

import pytest

from acting import Scratch, make_scratch

pytestmark = pytest.mark.network  # asv installs NumPy into its environment


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return make_scratch(tmp_path_factory.mktemp("act"))


def _succeeded(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def test_ci_runs_its_three_jobs(scratch: Scratch) -> None:
    """The same commands as on GitHub; only the tests that pytest selects are few, or this one would start itself."""
    scratch.variables["PYTEST_ADDOPTS"] = "tests/test_metrics.py"
    said = _succeeded(scratch.act("push", "ci", {}))
    del scratch.variables["PYTEST_ADDOPTS"]
    assert said.count("Job succeeded") == 3
    assert "Success: no issues found" in said  # mypy
    assert "control.Machine.time_matrix_product" in said  # asv


def test_a_broken_style_fails_ci(scratch: Scratch) -> None:
    path = scratch.folder / "tools" / "broken.py"
    path.write_text("import os\n")
    done = scratch.act("push", "ci", {}, "--job", "lint")
    path.unlink()
    assert done.returncode != 0
    assert "F401" in done.stdout


def test_benchmark_adds_results_to_the_branch(scratch: Scratch) -> None:
    """plan, measure, record, publish: the controls' results of HEAD are on `results`, and the site is built of them."""
    done = scratch.act("push", "benchmark", {"ref": "refs/heads/main"})
    said = _succeeded(done)
    head = scratch.git("rev-parse", "HEAD")
    listed = subprocess.run(
        ["git", "-C", str(scratch.origin), "ls-tree", "-r", "--name-only", "results"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert any(f"scratch/{head[:8]}" in path for path in listed), listed
    assert (scratch.site / "index.html").is_file()
    assert "scratch" in said
