"""What is fit for the branch: damaged, foreign, too large or unfinished files are named and not pushed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from helpers import asv_files
from helpers import git_remotes as branches
from helpers.git_remotes import Project, git
from helpers.results_branch import STEM, pushed
from machmeter.machine import process
from machmeter.results_branch import paths as paths_module


def test_a_damaged_file_is_named_and_nothing_is_pushed(project: Project, remote: Path) -> None:
    """R8, R10: half of a file, as a killed asv leaves it."""
    project.measure(1)
    project.measure(2)
    path = project.results / f"here/{STEM}.json"
    path.write_text(path.read_text()[:100])
    code, output = project.command("push")
    assert code == 36
    assert f"{path} is not valid JSON, perhaps half-written" in output
    assert git(remote, "branch", "--list", "results") == ""
    assert len(path.read_text()) == 100


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ('{"schema": 1, "runs"', "is not strict JSON, perhaps half-written"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"schema": 9}', "is not evidence of schema 1"),
        ({"machine": "there"}, "is of machine 'there', not of 'here'"),
        ({"commit": "../../x"}, "is of '../../x', which is no commit"),
        ({"commit": "9" * 40}, "is of commit 99999999, which is not in its name"),
        ({"environment": "other"}, "is of environment 'other', which is not in its name"),
        ({"runs": {}}, "holds no run"),
        ({"runs": {"r": {"started": "", "cells": {"c": {"p": {}}}}}}, "has a record without a status, of 'c'"),
        ({"stack": float("nan")}, "is not strict JSON"),
        ({"stack": "S"}, None),
    ],
)
def test_evidence_is_strict_and_is_what_its_name_says(
    project: Project, text: str | dict[str, object], reason: str | None
) -> None:
    """R2: what we write is strict JSON."""
    project.measure(1)
    path = project.evidence / f"here/{STEM}.json"
    path.write_text(text if isinstance(text, str) else json.dumps(json.loads(path.read_text()) | text))
    code, output = project.command("push")
    assert (code, reason is None or f"{path} {reason}" in output) == (36 if reason else 0, True), output


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"version": 1}, "is in asv's old format (version 1): 'asv update' converts it"),
        ({"commit_hash": "f" * 40}, "is of commit ffffffff, which is not in its name"),
        ({"params": {"machine": "there"}}, "is of machine 'there', not of 'here'"),
        ({"results": {"time_a": [[float("nan")], [], "1", 1, 1.0]}}, None),  # asv's own way to say "skipped"
    ],
)
def test_a_result_is_what_its_name_says(project: Project, changed: dict[str, object], reason: str | None) -> None:
    project.measure(1)
    path = project.results / f"here/{STEM}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    code, output = project.command("push")
    assert (code, reason is None or f"{path} {reason}" in output) == (36 if reason else 0, True), output


def test_a_file_that_is_too_large_is_refused(project: Project) -> None:
    """R11: the remote would refuse it too, and with it everything else."""
    project.measure(1)
    with (project.results / f"here/{STEM}.json").open("a") as stream:
        stream.truncate(paths_module.LARGEST_FILE + 1)
    code, output = project.command("push")
    assert (code, "has more than 50 MiB" in output) == (36, True)


def test_links_are_not_followed(project: Project, tmp_path: Path) -> None:
    project.measure(1)
    secret = tmp_path / "secret.json"
    secret.write_text((project.results / f"here/{STEM}.json").read_text())
    link = project.results / f"here/{asv_files.commit_hash(2)[:8]}-env.json"
    link.symlink_to(secret)
    code, output = project.command("push")
    assert (code, f"{link} is a link" in output) == (36, True)
    link.unlink()
    (project.evidence / "there").symlink_to(tmp_path, target_is_directory=True)
    code, output = project.command("push")
    assert (code, f"{project.evidence / 'there'} is a link" in output) == (36, True)


@pytest.mark.parametrize("name", ["a:b", "a\nb", "-".join("m" * 101), " a", "a."])
def test_a_machine_whose_name_no_folder_can_have_is_refused(project: Project, name: str) -> None:
    project.measure(1)
    (project.results / name).mkdir()
    code, output = project.command("push")
    assert (code, "cannot be the name of a machine" in output) == (36, True)
    assert "\n" not in output


def test_a_run_that_is_not_over_waits_for_the_next_push(project: Project, remote: Path) -> None:
    alive = {"status": "running", "pid": os.getpid(), "process": process.process_identity(os.getpid())}
    project.measure(1, run="r1")
    project.measure(1, run="r2", record=alive)
    output = pushed(project)
    assert "left for the next push: a run in" in output
    assert len([path for path in branches.runs(remote) if path.startswith("evidence/")]) == 1


def test_a_process_that_died_is_pushed_as_failed(project: Project, remote: Path) -> None:
    """Its traces are on the machine that measured, and nowhere else."""
    project.measure(1, record={"status": "running", "pid": 1, "process": "gone"})
    pushed(project)
    (path,) = (path for path in branches.runs(remote) if path.startswith("evidence/"))
    told = json.loads(git(remote, "cat-file", "blob", f"results:{path}"))
    assert told["runs"]["r1"]["cells"]["a"]["p"]["status"] == "failed"


@pytest.mark.parametrize(
    "told", [{}, {"pid": "x", "process": "gone"}, {"pid": 1, "timeout": "x", "peak_resident_bytes": "x"}]
)
def test_a_dead_process_that_is_not_described_is_refused(project: Project, told: dict[str, object]) -> None:
    project.measure(1, record={"status": "running", **told})
    code, output = project.command("push")
    assert (code, "has a running process that is not described" in output) == (36, True)


def test_no_file_that_evidence_names_is_read_but_a_trace_of_its_own(
    project: Project, remote: Path, tmp_path: Path
) -> None:
    """Evidence of another machine may name any path: one that would wait for a writer for ever, here."""
    os.mkfifo(tmp_path / "never")
    project.measure(1, record={"status": "running", "pid": 1, "process": "gone", "trace": str(tmp_path / "never")})
    own = project.evidence / "there/.traces/p.txt"
    own.parent.mkdir(parents=True)
    own.write_text("Segmentation fault\n")
    project.measure(2, "there", record={"status": "running", "pid": 1, "process": "gone", "trace": str(own)})
    pushed(project)
    reasons = {}
    for path in branches.runs(remote):
        if path.startswith("evidence/"):
            told = json.loads(git(remote, "cat-file", "blob", f"results:{path}"))
            reasons[told["machine"]] = told["runs"]["r1"]["cells"]["a"]["p"]["reason"]
    assert reasons["there"] == "crashed (signal 11, segmentation fault)"
    assert reasons["here"].startswith("killed (signal 9)")


def test_artifacts_of_several_machines_are_pushed_at_once(project: Project, remote: Path, tmp_path: Path) -> None:
    branches.measure(tmp_path / "artifacts/xeon", 1, "xeon")
    branches.measure(tmp_path / "artifacts/gpu", 1, "gpu")
    (tmp_path / "empty").mkdir()
    shutil.rmtree(tmp_path / "artifacts/gpu/results")  # asv was killed: what was finished is in the evidence
    output = pushed(project, str(tmp_path / "artifacts"), str(tmp_path / "empty"))
    assert f"left out: {tmp_path / 'empty'} has no folder 'results' or 'evidence'" in output
    assert sorted(path.rpartition("/")[0] for path in branches.runs(remote)) == [
        "evidence/gpu",
        "evidence/xeon",
        "results/xeon",
    ]


@pytest.mark.parametrize(("sign", "content"), [("measurements.json", ""), ("run.json", '{"base": "a", "head": "b"}')])
@pytest.mark.parametrize("named", ["artifacts", "artifacts/pull", "artifacts/pull/head", "artifacts/link"])
def test_what_was_measured_for_a_pull_request_is_no_history(
    project: Project, remote: Path, tmp_path: Path, sign: str, content: str, named: str
) -> None:
    """The branch only grows: what `machmeter pr` left, or a part of it, is named before anything is pushed."""
    branches.measure(tmp_path / "artifacts/a", 1, "xeon")
    branches.measure(tmp_path / "artifacts/pull/head", 1, "pull")
    (tmp_path / "artifacts/pull" / sign).write_text(content)
    (tmp_path / "artifacts/link").symlink_to("pull/head")
    project.measure(1)
    code, output = project.command("push", str(project.folder), str(tmp_path / named))
    assert code == 36
    assert f"artifacts/pull/{sign}): it compares two commits and is no history" in output
    assert branches.updates(remote) == []


def test_a_file_called_run_json_of_another_program_is_no_comparison(
    project: Project, remote: Path, tmp_path: Path
) -> None:
    branches.measure(tmp_path / "artifacts/a", 1, "xeon")
    (tmp_path / "artifacts/a/run.json").write_text('{"base": 1}')
    (tmp_path / "artifacts/run.json").write_text("no JSON")
    assert "pushed 2 files" in pushed(project, str(tmp_path / "artifacts"))


def test_nothing_to_push_says_so(project: Project, tmp_path: Path) -> None:
    assert project.command("push") == (8, "there are no results to push yet: run 'make bench' or 'asv run'")
    code, output = project.command("push", str(tmp_path / "nowhere"))
    assert (code, output) == (8, f"there is no folder {tmp_path / 'nowhere'}")
