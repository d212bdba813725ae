"""A bare remote and projects that publish to it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from helpers import git_remotes as branches
from helpers.git_remotes import Project, bare


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return bare(tmp_path / "remote.git")


@pytest.fixture
def project(tmp_path: Path, remote: Path) -> Project:
    return branches.project(tmp_path / "project", remote)


@pytest.fixture
def other(tmp_path: Path, remote: Path) -> Project:
    return branches.project(tmp_path / "other", remote)


@pytest.fixture
def path_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git that counts its calls is the one that is found; returns where it counts."""
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.setenv("COUNT", "")
    return branches.dying_git(tmp_path / "bin")
