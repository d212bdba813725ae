"""Verifying a branch or a folder: whatever was changed, removed or does not belong there is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers import git_remotes as branches
from helpers.git_remotes import Project, git
from helpers.results_branch import STEM, pushed, put
from machmeter.results_branch import paths as paths_module


def test_a_file_that_was_changed_on_the_branch_is_named(project: Project, other: Project, remote: Path) -> None:
    """R10: verify stops with its name, and no push overwrites it."""
    project.measure(1)
    pushed(project)
    (path,) = (path for path in branches.runs(remote) if path.startswith("results/"))
    whole = git(remote, "cat-file", "blob", f"results:{path}")
    put(project, remote, path, whole[:50])
    damaged = branches.files(remote)[path]
    code, output = project.command("verify")
    assert code == 37
    assert f"{path} was changed: its bytes are not those that its name was made of" in output
    assert f"{path} was changed by commit" in output
    assert output.count("its bytes are not those") == 1  # told once
    assert output.endswith("the branch results of origin is not sound: 1 problem, named above")
    code, output = project.command("push")
    assert (code, f"{path} on the branch was changed: it is not" in output) == (37, True)
    other.measure(2)
    pushed(other)  # what others measured does not depend on it
    assert branches.files(remote)[path] == damaged
    put(project, remote, path, whole)
    code, output = project.command("verify")
    assert (code, "and is whole again" in output) == (0, True)
    assert output.splitlines()[-1].endswith(", 4 commits, by which 1 file was changed or removed, and put back")


def test_a_file_that_was_removed_from_the_branch_is_named(project: Project, remote: Path) -> None:
    project.measure(1)
    pushed(project)
    (path,) = (path for path in branches.runs(remote) if path.startswith("evidence/"))
    put(project, remote, path, None)
    code, output = project.command("verify")
    assert (code, f"{path} was removed by commit" in output) == (37, True)
    assert output.count("was removed by commit") == 1


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("results/here/notes.txt", "'results/here/notes.txt' is no file of a results branch"),
        (f"results/here/{STEM}.json", f"'results/here/{STEM}.json' is no file of a results branch"),
        ("results/a:b/machine.json", "'results/a:b/machine.json' is no file of a results branch"),
        ("results/benchmarks.json", "results/benchmarks.json is not strict JSON"),
        ("results/here/machine.json", "results/here/machine.json is not strict JSON"),
    ],
)
def test_whatever_does_not_belong_on_the_branch_is_named(
    project: Project, remote: Path, path: str, reason: str
) -> None:
    project.measure(1)
    pushed(project)
    put(project, remote, path, "x")
    code, output = project.command("verify")
    assert (code, reason in output) == (37, True), output


def test_a_readme_beside_the_results_is_allowed(project: Project, remote: Path) -> None:
    project.measure(1)
    pushed(project)
    put(project, remote, "README.md", "what this is")
    code, output = project.command("verify")
    assert (code, "not ours, and left alone: 'README.md'" in output) == (0, True)
    project.measure(2)
    pushed(project)
    assert "README.md" in branches.files(remote)


def test_a_list_of_benchmarks_that_cannot_be_read_is_not_overwritten(project: Project, remote: Path) -> None:
    """R10: it is never read as empty."""
    project.measure(1)
    pushed(project)
    put(project, remote, paths_module.BENCHMARKS, '{"time_old": ')
    before = branches.files(remote)
    project.measure(2)
    code, output = project.command("push")
    assert (code, "results/benchmarks.json on the branch 'results' is not strict JSON" in output) == (37, True)
    assert branches.files(remote) == before


def test_a_folder_can_be_verified(project: Project) -> None:
    project.measure(1)
    assert project.command("verify", "--folder", str(project.folder))[0] == 0
    path = project.evidence / f"here/{STEM}.json"
    path.write_text("{")
    code, output = project.command("verify", "--folder", str(project.folder))
    assert (code, str(path) in output) == (37, True)


def test_no_branch_yet_says_so(project: Project) -> None:
    for command in ("pull", "verify"):
        code, output = project.command(command)
        assert (code, output) == (
            8,
            "'origin' has no branch 'results' yet: 'machmeter results push' makes it",
        )
