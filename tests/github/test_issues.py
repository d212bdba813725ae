"""One issue per benchmark that has regressed on main, from a store of results to GitHub's stand-in."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers import asv_files, stores
from helpers import github_server as githubserver
from helpers.github_server import ACTIONS, GitHub, State
from machmeter import cli
from machmeter.changes import of_history, regressions
from machmeter.history import read

NAME = "cpu.openvino.ResNet50.time_forward"
CELLS = [["'fp32'", "'int8'"], ["1"]]


CONTROL = "control.Machine.time_matrix_product"


def write(
    results: Path,
    levels: list[float],
    *,
    control: list[float] | None = None,
    first: int = 0,
    also: tuple[str, ...] = (),
) -> None:
    """Write a commit for each level of the int8 cell and of the benchmarks `also`; fp32 stays where it is."""
    for number, level in enumerate(levels, first):
        wobble = 1.0 + 0.004 * ((number * 7) % 5 - 2)
        host = (control or [1.0] * len(levels))[number - first]
        rows: dict[str, Any] = {
            NAME: (CELLS, [0.020 * wobble, 0.010 * level * wobble]),
            CONTROL: ([], [0.04 * host * wobble]),
            **{name: ([], [0.04 * level * wobble]) for name in also},
        }
        stores.write_result(results, number, rows)
    asv_files.write_catalogue(
        results,
        {
            NAME: {"params": CELLS, "param_names": ["precision", "batch"]},
            CONTROL: {},
            **{name: {} for name in also},
        },
    )


@pytest.fixture
def github() -> Iterator[GitHub]:
    with githubserver.running(State()) as server:
        yield server


@pytest.fixture
def alerts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], github: GitHub, tmp_path: Path
) -> Callable[..., list[str]]:
    """Run the command and return its lines, with numbers of issues instead of their addresses."""
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setenv("GITHUB_API_URL", github.url)

    def run(*more: str) -> list[str]:
        arguments = ["--results", str(tmp_path / "results"), "--repository", "o/r", *more]
        monkeypatch.setattr("sys.argv", ["machmeter", "github", "alerts", *arguments])
        with contextlib.suppress(SystemExit):
            cli.main()
        return capsys.readouterr().out.replace("https://github.com/o/r/issues/", "#").splitlines()

    return run


TITLE = "Regression: latency of one forward call of cpu.openvino.ResNet50"
LEFT, NONE = "regressed on the main branch: 1 of 2 benchmarks", "regressed on the main branch: 0 of 2 benchmarks"
SLOWER = [1.0] * 30 + [1.2] * 10


def test_a_regression_opens_one_issue_and_the_same_again_changes_nothing(
    alerts: Callable[..., list[str]], github: GitHub, tmp_path: Path
) -> None:
    """With the series, the range of commits, and a link to the site and to the changes."""
    write(tmp_path / "results", SLOWER)
    assert alerts("--link", "https://example.org/site/") == [
        f"opened: #1 {TITLE}", LEFT,
    ]  # fmt: skip
    issue = github.state.issues[0]
    assert (issue["labels"], issue["author"], issue["state"]) == (["performance-regression"], ACTIONS, "open")
    good, bad = stores.commit(29), stores.commit(30)
    row = next(line for line in issue["body"].splitlines() if line.startswith("| `int8"))
    assert "| 10.00 ms | 12.00 ms | +20.0 % (10 commits) |" in row
    assert f"[`{good[:8]}...{bad[:8]}`](https://github.com/o/r/compare/{good}...{bad})" in row
    assert "https://example.org/site/history/" in row
    assert "fp32" not in issue["body"]
    github.requests.clear()
    assert alerts("--link", "https://example.org/site/") == [LEFT]
    assert github.asked("POST", "PATCH") == []


def test_an_issue_is_kept_up_to_date_and_closed_when_all_have_recovered(
    alerts: Callable[..., list[str]], github: GitHub, tmp_path: Path
) -> None:
    """The issue follows the number of commits, and ends with the series back where it was."""
    write(tmp_path / "results", SLOWER)
    alerts()
    write(tmp_path / "results", [1.2] * 2, first=40)
    assert alerts()[0] == f"updated: #1 {TITLE}"
    assert "(12 commits)" in github.state.issues[0]["body"]
    write(tmp_path / "results", [1.0] * 10, first=42)
    assert alerts() == [f"closed: #1 {TITLE}", NONE]
    issue = github.state.issues[0]
    assert (issue["state"], issue["state_reason"]) == ("closed", "completed")
    assert issue["body"].endswith("**Recovered:** every series of this issue is back where it was.")
    assert alerts() == [NONE]
    assert len(github.state.issues) == 1


def test_an_issue_that_a_person_has_closed_stays_closed(
    alerts: Callable[..., list[str]], github: GitHub, tmp_path: Path
) -> None:
    """That regression is how it is now; another one opens another issue."""
    write(tmp_path / "results", SLOWER)
    alerts()
    github.state.issues[0] |= {"state": "closed", "state_reason": "not_planned"}
    assert alerts() == [LEFT]
    write(tmp_path / "results", [1.5] * 12, first=40)
    assert alerts()[0] == f"opened: #2 {TITLE}"
    assert [item["state"] for item in github.state.issues] == ["closed", "open"]
    rows = [line for line in github.state.issues[1]["body"].splitlines() if line.startswith("| `int8")]
    assert [stores.commit(40) in row for row in rows] == [True]


def test_an_issue_is_opened_again_where_its_regression_comes_back(
    alerts: Callable[..., list[str]], github: GitHub, tmp_path: Path
) -> None:
    """It was closed as recovered, and the results say otherwise now."""
    write(tmp_path / "results", SLOWER)
    alerts()
    body = github.state.issues[0]["body"] + "\n\n**Recovered:** every series of this issue is back where it was."
    github.state.issues[0] |= {"state": "closed", "body": body}
    assert alerts()[0] == f"reopened: #1 {TITLE}"
    assert "Recovered" not in github.state.issues[0]["body"]


@pytest.mark.parametrize(("points", "opened"), [(1, 0), (2, 0), (3, 0), (4, 1), (5, 1)])
def test_no_single_run_raises_an_alert(
    alerts: Callable[..., list[str]], github: GitHub, tmp_path: Path, points: int, opened: int
) -> None:
    """A step is confirmed by further runs: four commits agree."""
    write(tmp_path / "results", [1.0] * 30 + [1.2] * points)
    alerts()
    assert len(github.state.issues) == opened


def test_a_machine_that_became_slower_is_no_regression(
    alerts: Callable[..., list[str]], github: GitHub, tmp_path: Path
) -> None:
    """Its control moved with the same commit."""
    write(tmp_path / "results", SLOWER, control=SLOWER)
    assert alerts() == [NONE]


@pytest.mark.parametrize("name", ["control.Null.time_forward", "control.MachinePeak.track_matrix_product_peak"])
def test_what_is_no_control_of_the_machine_silences_nothing(
    alerts: Callable[..., list[str]], github: GitHub, tmp_path: Path, name: str
) -> None:
    """Our harness became slower together with a cell: a change of ours may do that."""
    write(tmp_path / "results", SLOWER, also=(name,))
    alerts()
    assert TITLE in [issue["title"] for issue in github.state.issues]


def test_a_control_raises_no_alert_itself(tmp_path: Path) -> None:
    """The null backend is no control: its harness is ours."""
    write(tmp_path / "results", [1.0] * len(SLOWER), control=SLOWER)
    history = read.read(tmp_path / "results")
    assert regressions.find(history, of_history.find(history)) == {}
    write(tmp_path / "results", SLOWER, also=("control.Null.time_forward",))
    history = read.read(tmp_path / "results")
    assert set(regressions.find(history, of_history.find(history))) == {NAME, "control.Null.time_forward"}


def test_a_series_that_came_back_and_further_is_no_regression(alerts: Callable[..., list[str]], tmp_path: Path) -> None:
    """What counts is the present level against the one before the step."""
    write(tmp_path / "results", [1.0] * 20 + [1.2] * 10 + [0.8] * 10)
    assert alerts() == [NONE]


def test_a_jump_in_a_short_series_raises_no_alert(alerts: Callable[..., list[str]], tmp_path: Path) -> None:
    """The site shows it; ten points are not beyond doubt."""
    write(tmp_path / "results", [1.0] * 5 + [2.0] * 5)
    history = read.read(tmp_path / "results")
    assert [len(some) for some in of_history.find(history).values() if some] == [1]
    assert alerts() == [NONE]


def test_a_gain_is_no_regression(alerts: Callable[..., list[str]], github: GitHub, tmp_path: Path) -> None:
    """Directions are those of the metrics."""
    write(tmp_path / "results", [1.2] * 30 + [1.0] * 10)
    assert alerts() == [NONE]


def test_issues_of_others_are_left_alone(alerts: Callable[..., list[str]], github: GitHub, tmp_path: Path) -> None:
    """Somebody else's issue with our marker, and ours without it."""
    write(tmp_path / "results", SLOWER)
    alerts()
    ours = github.state.issues[0]["body"]
    github.state.issues.clear()
    github.state.issue("mallory", "x", ours, ["performance-regression"])
    github.state.issue(ACTIONS, "x", f"quoting\n{ours}", ["performance-regression"])
    assert alerts()[0] == f"opened: #3 {TITLE}"
    assert [item["edits"] for item in github.state.issues] == [0, 0, 0]


def test_what_came_with_it_is_named_and_another_machine_is_none(tmp_path: Path) -> None:
    """The libraries that changed in the range; with another CPU there is no regression to tell."""
    write(tmp_path / "results", SLOWER)
    for versions, cpu, expected in (
        ("2026.4.1", "Some CPU", "openvino 2026.2.1 → 2026.4.1"),
        ("2026.2.1", "Other", None),
    ):
        for number in range(40):
            new = number >= 30
            stores.write_evidence(
                tmp_path / 'results', number, "virtualenv-py3.11", {},
                versions={"openvino": versions if new else "2026.2.1"},
                host={**stores.HOST, "cpu": {**stores.HOST["cpu"], "model": cpu if new else "Some CPU"}},
            )  # fmt: skip
        history = read.read(tmp_path / "results")
        found = regressions.find(history, of_history.find(history))
        assert [item.libraries for item in found.get(NAME, [])] == ([] if expected is None else [expected])


def test_a_dry_run_prints_what_would_be_said(alerts: Callable[..., list[str]], github: GitHub, tmp_path: Path) -> None:
    """Nobody is asked."""
    write(tmp_path / "results", SLOWER)
    lines = alerts("--dry-run")
    assert lines[0] == TITLE
    assert github.requests == []
