"""What the workflows promise, read from their files: pins, rights, machines, and steps without logic."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import typer
import yaml

from helpers.acting import program
from helpers.project import ROOT
from machmeter.cli import app
from machmeter.results_branch import paths
from machmeter.runners import machine_list

FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yml"))}
HOSTED = {"ubuntu-latest"}
PRIVILEGED = {"pull_request_target", "workflow_run", "issue_comment"}

CHECKS = {
    "zizmor": ["--offline", "--quiet", "--no-progress", "--persona", "pedantic", ".github"],
    "jactionlint": ["--no-online", "--strict-exit"],
    "check-jsonschema": ["--builtin-schema", "vendor.github-workflows", ".github/workflows/ci.yml"],
    "yamllint": ["--strict", ".github"],
}


def _triggers(workflow: dict[Any, Any]) -> dict[str, Any]:
    found = workflow[True]  # YAML 1.1 reads `on` as true
    return found if isinstance(found, dict) else {found: None}


def _jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, workflow in WORKFLOWS.items():
        for job, content in workflow["jobs"].items():
            yield name, job, content


def _steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, job, content in _jobs():
        for step in content.get("steps", []):
            yield f"{name}.{job}: {step.get('name')}", step


def _run(tool: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [program(tool), *CHECKS[tool]]
    if tool == "jactionlint":
        command += ["--shellcheck", program("shellcheck")]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_workflows_are_those_that_were_agreed() -> None:
    assert set(WORKFLOWS) == {"ci", "benchmark", "versions", "benchmark-pr", "publish"}


def test_what_is_kept_of_a_sweep_is_what_is_new(tmp_path: Path) -> None:
    """Not what was pulled from the branch, where a file's name ends in a hash; and any name of asv's own is kept."""
    (step,) = [step for where, step in _steps() if where == "versions.measure: Keep what was measured"]
    left_out = [line.removeprefix("!") for line in step["with"]["path"].splitlines() if line.startswith("!")]
    new = ["xeon/a1b2c3d4-virtualenv-py3.11-STACKminimal.json", "xeon/a1b2c3d4-virtualenv-py3.11-STACKcpu-only.json",
           "xeon/a1b2c3d4-virtualenv-py3.11-openvino2026.4.0.json", "xeon/machine.json", "benchmarks.json"]  # fmt: skip
    stem = "a1b2c3d4-virtualenv-py3.11-STACKminimal"
    pulled = [paths.path_of("result", "xeon", stem, content).removeprefix("results/") for content in (b"1", b"2")]
    for folder in ("results", "evidence"):
        for name in (*new, *pulled):
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / name).touch()
    found = {str(path.relative_to(tmp_path)) for pattern in left_out for path in tmp_path.glob(pattern)}
    assert found == {f"{folder}/{name}" for folder in ("results", "evidence") for name in pulled}


def test_the_checkers_find_nothing() -> None:
    environment = Path(program("python")).parents[1]
    command = ["make", "lint-workflows", f"VENV={environment}", "--assume-old", f"{environment}/.dev"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("tool", "old", "new"),
    [
        ("zizmor", "@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1", "@v7"),
        ("zizmor", "        with:\n          persist-credentials: false\n", ""),
        ("zizmor", "run: make lint", "run: echo ${{ github.event.pull_request.title }}"),
        ("jactionlint", "contents: read", "contentz: read"),
        ("jactionlint", "github.event.pull_request.number", "gitub.event.pull_request.number"),
        ("check-jsonschema", "runs-on:", "run-on:"),
        ("yamllint", "    steps:\n", "     steps:  \n"),
    ],
)
def test_each_checker_finds_a_fault_of_its_kind(tmp_path: Path, tool: str, old: str, new: str) -> None:
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    shutil.copy(ROOT / ".yamllint.yaml", tmp_path)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    ci = tmp_path / ".github" / "workflows" / "ci.yml"
    assert old in ci.read_text()
    ci.write_text(ci.read_text().replace(old, new, 1))
    assert _run(tool, tmp_path).returncode != 0


def test_every_label_is_of_a_machine_in_the_list_or_hosted() -> None:
    """What runs elsewhere takes its labels from the matrix, and the matrix comes from the list."""
    for name, job, content in _jobs():
        label = content.get("runs-on")
        if label is None:
            assert content["uses"] == "$/.github/workflows/publish.yml", f"{name}.{job}"
        elif label != "${{ matrix.labels }}":
            assert label in HOSTED, f"{name}.{job}"
        else:
            source = re.fullmatch(
                r"\$\{\{ fromJSON\(needs\.(\w+)\.outputs\.matrix\) \}\}", content["strategy"]["matrix"]
            )
            assert source, f"{name}.{job}"
            plan = WORKFLOWS[name]["jobs"][source.group(1)]
            assert [step["run"] for step in plan["steps"] if step.get("id") == "machines"] == [
                f"machmeter runners matrix --for {name}"
            ]
    assert all("self-hosted" in runner.labels for runner in machine_list.load(ROOT))


def test_no_machine_of_the_list_is_reachable_from_a_pull_request() -> None:
    """A fork's run uses the fork's copy of the file: nothing written in it would protect a machine."""
    for name, workflow in WORKFLOWS.items():
        if {"pull_request", "pull_request_target"} & set(_triggers(workflow)):
            assert {content.get("runs-on") for content in workflow["jobs"].values()} <= HOSTED, name
    assert "pull_request" in _triggers(WORKFLOWS["ci"])


def test_only_the_comment_of_a_maintainer_is_a_privileged_trigger() -> None:
    assert {name for name, workflow in WORKFLOWS.items() if PRIVILEGED & set(_triggers(workflow))} == {"benchmark-pr"}
    assert set(_triggers(WORKFLOWS["benchmark-pr"])) == {"workflow_dispatch", "issue_comment"}


def test_every_job_has_rights_of_its_own_and_a_time_limit() -> None:
    for name, workflow in WORKFLOWS.items():
        assert workflow["permissions"] == {}, name
    for name, job, content in _jobs():
        assert "permissions" in content, f"{name}.{job}"
        assert "timeout-minutes" in content or "uses" in content, f"{name}.{job}"
        assert "secrets" not in content, f"{name}.{job}"


def test_the_jobs_that_write_and_what_they_write() -> None:
    written = {
        f"{name}.{job}": sorted(what for what, right in content["permissions"].items() if right == "write")
        for name, job, content in _jobs()
    }
    assert {job: rights for job, rights in written.items() if rights} == {
        "benchmark.record": ["contents"],
        "benchmark.alert": ["issues"],
        "benchmark.publish": ["id-token", "pages"],
        "benchmark-pr.comment": ["pull-requests"],
        "publish.deploy": ["id-token", "pages"],
        "versions.record": ["contents"],
        "versions.publish": ["id-token", "pages"],
    }


def test_where_the_pull_request_s_code_runs_there_is_no_token() -> None:
    jobs = WORKFLOWS["benchmark-pr"]["jobs"]
    assert jobs["measure"]["permissions"] == {}
    assert "token" not in yaml.safe_dump(jobs["measure"]).lower()
    assert "secrets." not in (FOLDER / "benchmark-pr.yml").read_text()
    assert jobs["measure"]["needs"] == "admit"
    assert jobs["measure"]["if"] == "needs.admit.outputs.run == 'true'"


def test_only_the_measuring_job_checks_out_the_pull_request_s_code() -> None:
    """And beside the commands, not in their place."""
    found = {
        (job, step["with"].get("path", "."), step["with"]["ref"])
        for job, content in WORKFLOWS["benchmark-pr"]["jobs"].items()
        for step in content["steps"]
        if step.get("uses", "").startswith("actions/checkout@")
    }
    assert found == {
        ("admit", ".", "main"),
        ("measure", ".", "main"),
        ("measure", "head", "${{ needs.admit.outputs.sha }}"),
        ("comment", ".", "main"),
    }


def test_writers_of_the_results_share_a_group_that_replaces_none() -> None:
    pushing = {
        f"{name}.{job}": content.get("concurrency")
        for name, job, content in _jobs()
        if any("machmeter results push" in step.get("run", "") for step in content.get("steps", []))
    }
    group = {"group": "results", "cancel-in-progress": False, "queue": "max"}
    assert pushing == {"benchmark.record": group, "versions.record": group}


def test_foreign_actions_are_pinned_with_their_version_beside() -> None:
    pinned = re.compile(r"uses: actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
    for path in FOLDER.glob("*.yml"):
        for line in path.read_text().splitlines():
            if "uses:" in line and "$/" not in line:
                assert pinned.search(line), f"{path.name}: {line.strip()}"


def test_no_clone_keeps_a_token() -> None:
    for where, step in _steps():
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False, where


def test_each_step_is_one_command_without_an_expression() -> None:
    """Logic is in the package, where it has tests; values come by `env`, so that no text of a stranger is a command."""
    for where, step in _steps():
        command = step.get("run")
        if command is not None:
            assert re.match(r"(machmeter|make) ", command), where
            assert not re.search(r"\$\{\{|\$\(|`|[;&|<>\n]", command.rstrip("\n")), where


def _parse(arguments: list[str]) -> None:
    """Let the command line parse `arguments` without running anything. Raises click.UsageError."""
    command: Any = typer.main.get_command(app)
    context = click.Context(command, info_name="machmeter")
    while hasattr(command, "commands"):
        name = arguments.pop(0)
        assert name in command.commands, f"there is no command {name!r}"
        command = command.commands[name]
    command.make_context("x", arguments, parent=context)


def test_each_command_is_one_that_the_command_line_knows() -> None:
    for where, step in _steps():
        if step.get("run", "").startswith("machmeter "):
            text = re.sub(r"\$\w+", "1", step["run"])
            try:
                _parse(shlex.split(text)[1:])
            except Exception as error:
                raise AssertionError(f"{where}: {error}") from error


def test_each_target_of_make_is_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for where, step in _steps():
        if step.get("run", "").startswith("make "):
            for target in step["run"].split()[1:]:
                assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), f"{where}: {target}"


def test_dependabot_waits_and_bumps_one_runtime_at_a_time() -> None:
    content = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text())
    updates = {update["package-ecosystem"]: update for update in content["updates"]}
    assert set(updates) == {"github-actions", "pip", "npm"}
    assert all(update["cooldown"]["default-days"] >= 7 for update in updates.values())
    assert list(updates["pip"]["groups"])[-1] == "tools"  # the first group that fits takes a library


def test_workflows_and_machines_have_an_owner() -> None:
    assert "/.github/ @" in (ROOT / ".github" / "CODEOWNERS").read_text()
