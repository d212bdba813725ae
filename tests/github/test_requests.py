"""Who may start a measurement of which commit, by a comment or a dispatch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.github_calls import SHA, Call, comment
from helpers.github_server import GitHub, State


def event(path: Path, body: str, *, action: str = "created", pull: bool = True, login: str = "ann") -> Path:
    issue = {"number": 7, "title": "x", **({"pull_request": {"url": "..."}} if pull else {})}
    content = {"action": action, "issue": issue, "comment": {"id": 1, "body": body, "user": {"login": login, "id": 3}},
               "repository": {"full_name": "o/r", "id": 1}}  # fmt: skip
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def outputs(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "outputs"
    monkeypatch.setenv("GITHUB_OUTPUT", str(path))
    return path


def test_a_maintainer_starts_a_measurement_of_a_full_hash(
    call: Call, state: State, tmp_path: Path, outputs: Path
) -> None:
    """The head of the pull request, or another of its commits; a hash may be written in capitals."""
    state.permissions["ann"] = "write"
    state.pulls["7"]["commits"] = ["c" * 40, SHA]
    for sha, written in ((SHA, SHA), ("c" * 40, "c" * 40), (SHA, SHA.upper())):
        outputs.unlink(missing_ok=True)
        said = call("command", "--event", event(tmp_path / "event.json", f"/benchmark {written}\r\n"))
        assert (said.code, outputs.read_text()) == (0, f"run=true\npull_request=7\nsha={sha}\n")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"body": "nice work"}, "asks for nothing"),
        ({"body": f"> /benchmark {SHA}"}, "asks for nothing"),
        ({"body": f"/benchmark {SHA}", "pull": False}, "asks for nothing"),
        ({"body": f"/benchmark {SHA}", "action": "edited"}, "asks for nothing"),
        ({"body": "/benchmark a1b2c3d4"}, "the full hash"),
        ({"body": f"/benchmark {SHA} --token"}, "the full hash"),
        ({"body": f"/benchmark {SHA}\nrun=true"}, "the full hash"),
        ({"body": f"/benchmark {'e' * 40}"}, "eeeeeeee is no commit of pull request 7"),
        ({"body": f"/benchmark {SHA}", "login": "reader"}, "reader may not write"),
        ({"body": f"/benchmark {SHA}", "login": "stranger"}, "stranger may not write"),
        ({"body": f"/benchmark {SHA}", "login": "../../x"}, "may not write"),
    ],
)
def test_any_other_comment_starts_nothing(
    call: Call, state: State, tmp_path: Path, outputs: Path, facts: dict[str, Any], words: str
) -> None:
    """The step succeeds, so that strangers cannot make the workflow fail, and says why it does nothing."""
    state.permissions |= {"ann": "write", "reader": "read"}
    said = call("command", "--event", event(tmp_path / "event.json", **facts))
    assert said.code == 0
    assert outputs.read_text() == "run=false\npull_request=\nsha=\n"
    assert words in said.out


@pytest.mark.parametrize(
    ("sha", "code", "words"),
    [
        (SHA, 0, "run=true"),
        (SHA.upper(), 0, f"sha={SHA}"),
        ("main", 9, "is not the full hash"),
        ("e" * 40, 35, f"its head is {SHA}"),
        (f"{SHA}\n", 9, "is not the full hash"),
    ],
)
def test_a_dispatch_is_checked_alike(call: Call, outputs: Path, sha: str, code: int, words: str) -> None:
    """Whoever dispatches may write; what they typed may be wrong."""
    said = call("command", "--repository", "o/r", "--pull-request", 7, "--sha", sha)
    assert said.code == code
    assert words in said.out + said.err


@pytest.mark.parametrize("sha", ["abc", "x;y", f"{SHA}\n"])
def test_a_hash_that_is_none_has_one_exit_code(call: Call, files: dict[str, Path], sha: str) -> None:
    """Whichever command it was given."""
    asked = call("command", "--repository", "o/r", "--pull-request", 7, "--sha", sha)
    said = comment(call, files["gpu-1"], sha=sha)
    assert (asked.code, said.code) == (9, 9)
    assert asked.err == said.err


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("nice work", None),
        ("/benchmark abcdef12", "**Nothing is measured:** `write '/benchmark' and the full hash of the commit"),
        (f"/benchmark {'e' * 40}", "**Nothing is measured:** `eeeeeeee is no commit of pull request 7"),
        (f"/benchmark {SHA}", f"Measuring `{SHA}` of pull request 7.\n"),
    ],
)
def test_the_summary_of_the_run_says_what_became_of_a_comment(
    call: Call, monkeypatch: pytest.MonkeyPatch, state: State, tmp_path: Path, body: str, words: str | None
) -> None:
    """Where nobody has asked for anything it says nothing."""
    written = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(written))
    state.permissions["ann"] = "write"
    assert call("command", "--event", event(tmp_path / "event.json", body)).code == 0
    assert written.exists() == (words is not None)
    assert words is None or written.read_text().startswith(words)


def test_the_summary_of_the_run_says_why_a_dispatch_failed(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same words as on the terminal."""
    written = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(written))
    call("command", "--repository", "o/r", "--pull-request", 7, "--sha", "main")
    assert written.read_text().startswith("**Nothing is measured:** `'main' is not the full hash of a commit")


@pytest.mark.parametrize(("permission", "code"), [("admin", 0), ("write", 0), ("read", 35), ("none", 35)])
def test_the_permission_of_a_user_is_told_by_the_exit_code(
    call: Call, state: State, permission: str, code: int
) -> None:
    """Nothing but the permission counts."""
    state.permissions["ann"] = permission
    assert call("permission", "--repository", "o/r", "--login", "ann").code == code


def test_the_stand_in_notices_what_does_not_fit_the_description(github: GitHub) -> None:
    """A request without a body is refused, and so is an answer without its fields."""
    check = github.described.check
    path = "/repos/o/r/issues/7/comments"
    assert check("POST", path, b'{"body": "x"}') is None
    assert "'body' is a required property" in str(check("POST", path, b"{}"))
    assert "'id' is a required property" in str(check("POST", path, b'{"body": "x"}', 201, b"{}"))
