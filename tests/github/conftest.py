"""GitHub's stand-in, measurements and calls of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from helpers import comment_samples as samples
from helpers import github_server as githubserver
from helpers.github_calls import SHA, Call, Called
from helpers.github_server import GitHub, State
from machmeter import cli
from machmeter.github import client


@pytest.fixture
def state() -> State:
    known = State()
    known.pull(7, SHA)
    return known


@pytest.fixture
def github(state: State) -> Iterator[GitHub]:
    with githubserver.running(state) as server:
        yield server


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody waits: how long would have been waited."""
    found: list[float] = []
    original = client.repository
    monkeypatch.setattr(client, "repository", lambda name, **_: original(name, pause=found.append))
    return found


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], github: GitHub, pauses: list[float]
) -> Call:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.delenv("GITHUB_OUTPUT", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    def run(*arguments: object) -> Called:
        monkeypatch.setattr("sys.argv", ["machmeter", "github", *map(str, arguments)])
        code: Any = 0
        try:
            cli.main()
        except SystemExit as ending:
            code = ending.code
        said = capsys.readouterr()
        return Called(code or 0, said.out, said.err)

    return run


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Measurements of two machines, as their artifacts are unpacked."""
    found = {}
    for machine, name in (("xeon-1", "regression"), ("gpu-1", "nothing")):
        found[machine] = tmp_path / machine / "measurements.json"
        found[machine].parent.mkdir()
        content = msgspec.structs.replace(samples.all_samples()[name], machine=machine)
        found[machine].write_bytes(msgspec.json.encode(content))
    return found
