"""The workflows, really run by act: their commands, the order of their jobs, and what passes between them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers import github_server as githubserver
from helpers.acting import Scratch, make_scratch
from helpers.project import ROOT

pytestmark = pytest.mark.network  # asv installs NumPy into its environments, npm the chart library


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return make_scratch(tmp_path_factory.mktemp("act"))


@pytest.fixture
def github(scratch: Scratch) -> Iterator[githubserver.GitHub]:
    """A stand-in for GitHub's REST interface, which the commands in the workflows speak to."""
    with githubserver.running() as server:
        scratch.variables["GITHUB_API_URL"] = server.url
        yield server
        del scratch.variables["GITHUB_API_URL"]


@pytest.fixture(scope="module")
def change(scratch: Scratch) -> str:
    """A commit of a pull request: pushed, and not on main."""
    scratch.git("switch", "--quiet", "--create", "change")
    readme = scratch.folder / "README.md"
    readme.write_text(readme.read_text() + "\nA change.\n")
    scratch.commit("A change", "README.md")
    scratch.push("change")
    commit = scratch.git("rev-parse", "HEAD")
    scratch.git("switch", "--quiet", "main")
    return commit


def _succeeded(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def _jobs(said: str) -> list[str]:
    """Return the names of the jobs that ran, without the workflow's."""
    return sorted({match.group(1).strip() for match in re.finditer(r"^\[[^\]/]+/(.+?) *\] ⭐", said, re.MULTILINE)})


def _on_branch(scratch: Scratch) -> list[str]:
    command = ["git", "-C", str(scratch.origin), "ls-tree", "-r", "--name-only", "results"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_ci_runs_its_three_jobs(scratch: Scratch) -> None:
    """The same commands as on GitHub; only the tests that pytest selects are few, or this one would start itself."""
    scratch.variables["PYTEST_ADDOPTS"] = "tests/test_metrics.py"
    done = scratch.act("push", "ci", {})
    del scratch.variables["PYTEST_ADDOPTS"]
    said = _succeeded(done)
    assert _jobs(said) == ["Style, types and workflows", "Tests", "asv check and machine controls"]
    assert "Success: no issues found" in said  # mypy
    assert "control.Machine.time_matrix_product" in said  # asv


def test_a_broken_style_fails_ci(scratch: Scratch) -> None:
    scratch.git("switch", "--quiet", "--create", "broken")
    (scratch.folder / "tools" / "broken.py").write_text("import os\n")
    scratch.commit("Broken style", "tools/broken.py")
    scratch.push("broken")
    done = scratch.act("push", "ci", {}, "--job", "lint")
    scratch.git("switch", "--quiet", "main")
    assert done.returncode != 0
    assert "F401" in done.stdout


def test_benchmark_adds_results_to_the_branch_and_publishes(scratch: Scratch, github: githubserver.GitHub) -> None:
    """The controls' results of HEAD are on `results` with their evidence, and the site is built of them."""
    chosen = {"inputs": {"benchmarks": r"^control\.(Null\.time_forward|Machine\.)", "commits": ""}}
    said = _succeeded(scratch.act("workflow_dispatch", "benchmark", chosen))
    head = scratch.git("rev-parse", "HEAD")[:8]
    listed = _on_branch(scratch)
    for folder in ("results", "evidence"):
        assert [path for path in listed if path.startswith(f"{folder}/scratch/{head}")], listed
    assert (scratch.site / "index.html").is_file()
    assert "scratch" in (scratch.site / "index.html").read_text()
    assert not github.state.issues  # one run of one commit is no regression
    assert "Measure on scratch" in _jobs(said)


def test_versions_ends_after_the_plan_where_no_machine_sweeps(scratch: Scratch) -> None:
    said = _succeeded(scratch.act("workflow_dispatch", "versions", {"inputs": {"last": "5"}}))
    assert '{"include": []}' in said
    assert _jobs(said) == ["Choose the machines"]


def test_publish_builds_what_is_on_the_branch(scratch: Scratch, github: githubserver.GitHub) -> None:
    """Started by itself, as the daily run is: the site that was there is replaced."""
    if not _on_branch_exists(scratch):
        _succeeded(scratch.act("push", "benchmark", {}))
    scratch.site.mkdir(exist_ok=True)
    (scratch.site / "old.html").write_text("old")
    _succeeded(scratch.act("workflow_dispatch", "publish", {"inputs": {}}))
    assert (scratch.site / "index.html").is_file()
    assert not (scratch.site / "old.html").exists()


def _on_branch_exists(scratch: Scratch) -> bool:
    command = ["git", "-C", str(scratch.origin), "rev-parse", "--verify", "--quiet", "results"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_maintainer_s_comment_is_answered_with_one_comment(
    scratch: Scratch, github: githubserver.GitHub, change: str
) -> None:
    """Base and head are measured on the machine of the list, without a token, and the hosted job writes the comment."""
    github.state.pull(7, change)
    github.state.permissions["ada"] = "write"
    said = _succeeded(scratch.act("issue_comment", "benchmark-pr", _comment("ada", "MEMBER", f"/benchmark {change}")))
    assert _jobs(said) == ["Check who asks, and for what", "Compare on scratch", "Judge and tell"]
    assert "Summary - ### Machmeter on `scratch`: " in said
    assert (scratch.artifacts / "measurements-scratch" / "minimal" / "measurements.json").is_file()
    (comment,) = github.state.comments
    assert (comment["issue"], comment["edits"]) == (7, 0)
    assert "### Machmeter on `scratch`: " in comment["body"]
    assert "no usable measurements" not in comment["body"]
    assert "/actions/runs/" in comment["body"]  # whose summary has all numbers
    assert (scratch.artifacts / "comment" / "comment.md").read_text().strip() == comment["body"].strip()


def test_a_dispatch_asks_for_the_same(scratch: Scratch, github: githubserver.GitHub, change: str) -> None:
    github.state.pull(7, change)
    inputs = {"inputs": {"pr": "7", "sha": change}}
    said = _succeeded(scratch.act("workflow_dispatch", "benchmark-pr", inputs, "--job", "admit"))
    assert "run=true" in said
    assert f"sha={change}" in said
    stranger = {"inputs": {"pr": "7", "sha": "1" * 40}}
    refused = scratch.act("workflow_dispatch", "benchmark-pr", stranger, "--job", "admit")
    assert "run=true" not in refused.stdout


@pytest.mark.parametrize(
    ("login", "association", "permission", "text", "jobs"),
    [
        ("eve", "NONE", "read", "/benchmark {sha}", []),  # not even a hosted job
        ("eve", "MEMBER", "read", "/benchmark {sha}", ["Check who asks, and for what"]),  # GitHub was asked
        ("ada", "MEMBER", "write", "/benchmark main", ["Check who asks, and for what"]),  # not a full hash
        ("ada", "MEMBER", "write", "please /benchmark {sha}", []),
    ],
)
def test_nobody_else_and_nothing_else_starts_it(
    scratch: Scratch,
    github: githubserver.GitHub,
    change: str,
    login: str,
    association: str,
    permission: str,
    text: str,
    jobs: list[str],
) -> None:
    github.state.pull(7, change)
    github.state.permissions[login] = permission
    done = scratch.act("issue_comment", "benchmark-pr", _comment(login, association, text.format(sha=change)))
    assert _jobs(done.stdout) == jobs, done.stdout[-3000:]
    assert ("Summary - **Nothing is measured:**" in done.stdout) == bool(jobs)
    assert not github.state.comments
    assert not (scratch.artifacts / "measurements-scratch").exists()


def _comment(login: str, association: str, body: str) -> dict[str, object]:
    author = {"user": {"login": login}, "author_association": association, "body": body, "id": 1}
    issue = {"number": 7, "pull_request": {"url": "https://api.github.com/repos/o/r/pulls/7"}}
    return {"action": "created", "issue": issue, "comment": author}


def test_every_foreign_action_has_a_stand_in() -> None:
    from helpers.acting import ACTIONS, USES, all_workflows

    used = {action.removeprefix("actions/") for action, _ in USES.findall(all_workflows())}
    assert used == {path.name for path in Path(ACTIONS).iterdir()}
    assert (ROOT / ".github" / "workflows").is_dir()
