"""Fixtures: a git project with fake backends and a real asv, and a store shared by the tests on real models."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from helpers.project import ROOT

ALONE = "MACHMETER_TEST_ALONE"  # set in the process of a test that has one of its own
STORE = "MACHMETER_TEST_STORE"  # where `make test` keeps the artifacts of real models for both of its passes
# What takes longest begins first, so that no process ends with it while another has nothing left to do.
LONGEST_FIRST = ("backends", "workflows", "pull_request", "recommend", "running", "browser", "site")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let golden files be written anew."""
    parser.addoption("--update", action="store_true", help="Write the golden files anew (tests/data/golden).")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the files begin first that take longest: pytest-xdist gives each file to one process, in this order."""

    def place(item: pytest.Item) -> int:
        room = item.nodeid.removeprefix("tests/").partition("/")[0]
        return LONGEST_FIRST.index(room) if room in LONGEST_FIRST else len(LONGEST_FIRST)

    items.sort(key=place)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test marked `alone` in a process of its own where this one has other threads, such as the browser's."""
    if not pyfuncitem.get_closest_marker("alone") or threading.active_count() == 1 or ALONE in os.environ:
        return None
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", pyfuncitem.nodeid]
    environment = {**os.environ, ALONE: "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return True


@pytest.fixture(scope="session")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for all tests on real models: what was prepared once serves them all."""
    return Path(os.environ[STORE]) if STORE in os.environ else tmp_path_factory.mktemp("store")


@pytest.fixture
def store_variable(shared_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let this process use the shared store."""
    monkeypatch.setenv("MACHMETER_STORE", str(shared_store))
    return shared_store
