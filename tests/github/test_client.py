"""What the client does when GitHub fails: waits as told, repeats within bounds, never comments twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.github_calls import MARKER, Call, comment
from helpers.github_server import ACTIONS, Fault, GitHub, State


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda state: state.pulls.clear(), 32, "pull request 7 of o/r: GitHub answers 404"),
        (lambda state: state.pulls["7"].update(state="closed"), 35, "pull request 7 is closed: nothing is posted"),
        (lambda state: setattr(state, "rights", "read"), 31, "needs 'pull-requests: write'"),
        (lambda state: setattr(state, "token", "other"), 31, "GITHUB_TOKEN is not valid"),
    ],
    ids=["unknown", "closed", "no rights", "bad token"],
)
def test_what_cannot_be_posted_is_kept(
    call: Call, state: State, files: dict[str, Path], change: Callable[[State], None], code: int, words: str
) -> None:
    """One line, an exit code of its own, and the comment in a file beside the measurements."""
    change(state)
    said = comment(call, files["xeon-1"])
    kept = files["xeon-1"].parent / "comment.md"
    assert said.code == code
    assert words in said.err
    assert said.err.count("\n") == 1
    assert said.out == f"the comment is kept in {kept}\n"
    assert kept.read_text().startswith(f"{MARKER}\n### Machmeter on `xeon-1`")
    assert files["xeon-1"].exists()
    assert state.comments == []


def test_errors_of_the_server_are_waited_out(
    call: Call, github: GitHub, state: State, files: dict[str, Path], pauses: list[float]
) -> None:
    """What only reads, and what may be done twice, is asked again; each wait is longer."""
    state.comment(7, ACTIONS, f"{MARKER}\nold")
    github.faults += [
        Fault(method="GET", path="/comments", status=502),
        Fault(method="GET", path="/comments", status=503),
    ]
    github.faults += [Fault(method="PATCH", path="/comments", status=500, after=True)]
    assert comment(call, files["gpu-1"]).code == 0
    assert len(state.comments) == 1
    assert state.comments[0]["body"].startswith(f"{MARKER}\n### Machmeter on `gpu-1`")
    assert pauses == sorted(pauses)
    assert 0 < len(pauses) <= 3


@pytest.mark.parametrize("drop", [False, True], ids=["502", "connection lost"])
def test_a_comment_whose_answer_was_lost_is_not_made_twice(
    call: Call, github: GitHub, state: State, files: dict[str, Path], drop: bool
) -> None:
    """GitHub had made the comment and the answer went wrong: it is looked for before anybody makes another."""
    github.faults.append(Fault(method="POST", path="/comments", status=502, after=True, drop=drop))
    said = comment(call, files["gpu-1"])
    assert (said.code, len(state.comments)) == (0, 1)
    assert github.asked("POST") == [("POST", "/repos/o/r/issues/7/comments")]


def test_a_comment_that_was_not_made_is_made_again(
    call: Call, github: GitHub, state: State, files: dict[str, Path]
) -> None:
    """The server failed before it did anything."""
    github.faults.append(Fault(method="POST", path="/comments", status=503))
    assert (comment(call, files["gpu-1"]).code, len(state.comments)) == (0, 1)


@pytest.mark.parametrize(("drop", "words"), [(False, "502"), (True, "does not answer")])
def test_attempts_are_bounded(
    call: Call, github: GitHub, state: State, files: dict[str, Path], drop: bool, words: str
) -> None:
    """A server that stays broken is asked five times; then the comment is in a file."""
    github.faults += [Fault(method="GET", path="/comments", status=502, drop=drop) for _ in range(50)]
    said = comment(call, files["gpu-1"])
    assert said.code == 34
    assert words in said.err
    assert len([path for _, path in github.asked("GET") if "/comments" in path]) == 5
    assert (files["gpu-1"].parent / "comment.md").exists()


def told(headers: dict[str, str] | float) -> dict[str, str]:
    """Return `headers`, or those of a limit that is lifted so many seconds from now, not from when tests were found."""
    if isinstance(headers, dict):
        return headers
    return {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time() + headers))}


SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."


PRIMARY = "API rate limit exceeded for installation ID 1."


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("status", "message", "headers", "least", "most"),
    [
        (403, SECONDARY, {"Retry-After": "7"}, 7, 7),
        (429, SECONDARY, {"Retry-After": "7"}, 7, 7),
        (403, SECONDARY, {}, 60, 60),
        (403, PRIMARY, 90.0, 60, 92),
        (429, PRIMARY, 90.0, 60, 92),
    ],
    ids=["403 retry-after", "429 retry-after", "403 secondary", "403 primary", "429 primary"],
)
def test_a_rate_limit_is_waited_for_as_github_asks(
    call: Call, github: GitHub, state: State, files: dict[str, Path], pauses: list[float], method: str, status: int,
    message: str, headers: dict[str, str] | float, least: float, most: float,
) -> None:  # fmt: skip
    """What was refused for its rate was not done: even a new comment is asked for again."""
    github.faults.append(Fault(method=method, path="/comments", status=status, message=message, headers=told(headers)))
    assert (comment(call, files["gpu-1"]).code, len(state.comments)) == (0, 1)
    assert len(pauses) == 1
    assert least <= pauses[0] <= most


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("headers", [{"Retry-After": "3600"}, 3000.0], ids=["retry-after", "reset"])
def test_a_rate_limit_that_lasts_too_long_is_said_at_once(
    call: Call,
    github: GitHub,
    files: dict[str, Path],
    pauses: list[float],
    status: int,
    headers: dict[str, str] | float,
) -> None:
    """Nobody waits for an hour on a rented machine."""
    github.faults.append(Fault(method="GET", path="/comments", status=status, message=PRIMARY, headers=told(headers)))
    said = comment(call, files["gpu-1"])
    assert (said.code, pauses) == (33, [])
    assert "rate limit is used up" in said.err


def test_a_network_that_is_not_there_is_one_line(
    call: Call, monkeypatch: pytest.MonkeyPatch, files: dict[str, Path]
) -> None:
    """Nobody listens at the address."""
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:9")
    said = comment(call, files["gpu-1"])
    assert said.code == 34
    assert said.err == (
        "machmeter: pull request 7 of o/r: GitHub does not answer (Connection refused): run this step again\n"
    )


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("GITHUB_TOKEN", "", "GITHUB_TOKEN is not set"),
        ("GITHUB_API_URL", "http://example.org", "is not an https address"),
    ],
)
def test_the_environment_is_checked(
    call: Call, monkeypatch: pytest.MonkeyPatch, files: dict[str, Path], variable: str, value: str, words: str
) -> None:
    """A token never travels in the open."""
    monkeypatch.setenv(variable, value)
    said = comment(call, files["gpu-1"])
    assert said.code == 9
    assert words in said.err


def test_a_dry_run_without_a_token_asks_nobody(
    call: Call, monkeypatch: pytest.MonkeyPatch, github: GitHub, files: dict[str, Path], tmp_path: Path
) -> None:
    """The comment is printed and kept where it was asked for."""
    monkeypatch.delenv("GITHUB_TOKEN")
    kept = tmp_path / "there" / "text.md"
    said = comment(call, files["gpu-1"], more=("--dry-run", "--keep", kept, "--link", "https://example.org/c"))
    assert said.out == kept.read_text()
    assert "[All numbers](https://example.org/c)" in said.out
    assert github.requests == []


def test_a_dry_run_with_a_token_asks_what_the_head_is_now_and_writes_nothing(
    call: Call, github: GitHub, state: State, files: dict[str, Path]
) -> None:
    """It shows what would be written; where GitHub does not tell the head, that is said beside."""
    state.pulls["7"]["head"] = "d" * 40
    said = comment(call, files["gpu-1"], more=("--dry-run",))
    assert "**The head has moved.**" in said.out
    assert [method for method, _, _ in github.requests] == ["GET"]
    state.pulls.clear()
    said = comment(call, files["gpu-1"], more=("--dry-run",))
    assert (said.code, said.out[: len(MARKER)]) == (0, MARKER)
    assert said.err.startswith("machmeter: whether the head has moved is not known: pull request 7 of o/r")
