"""The one comment of a pull request: found, made once, kept up to date, whatever the server answers."""

from __future__ import annotations

from pathlib import Path

from helpers.github_calls import MARKER, Call, comment
from helpers.github_server import ACTIONS, GitHub, State


def test_the_first_comparison_makes_a_comment_and_a_regression_is_no_failure(
    call: Call, state: State, files: dict[str, Path]
) -> None:
    """Posting succeeds whatever the verdict."""
    said = comment(call, files["xeon-1"])
    assert (said.code, len(state.comments)) == (0, 1)
    posted = state.comments[0]
    assert posted["author"] == ACTIONS
    assert posted["body"].startswith(f"{MARKER}\n### Machmeter on `xeon-1`: 3 regressions, 1 improvement\n")
    assert said.out == f"created: https://github.com/o/r/pull/7#issuecomment-{posted['id']}\n"


def test_the_same_again_asks_for_nothing_to_be_written(
    call: Call, github: GitHub, state: State, files: dict[str, Path]
) -> None:
    """A run that is repeated changes nothing."""
    comment(call, files["xeon-1"])
    github.requests.clear()
    assert comment(call, files["xeon-1"]).out.startswith("unchanged: ")
    assert [method for method, _, _ in github.requests] == ["GET", "GET"]
    assert state.comments[0]["edits"] == 0


def test_ours_is_found_among_many_pages_by_marker_and_author(
    call: Call, github: GitHub, state: State, files: dict[str, Path]
) -> None:
    """245 comments, of which somebody else's quotes the marker and another of our author's has none."""
    for number in range(45):
        state.comment(7, "ann", f"comment {number}")
    state.comment(7, "mallory", f"{MARKER}\nlook, I am the machmeter")
    state.comment(7, ACTIONS, f"> {MARKER}\nsome other workflow quotes it")
    state.comment(7, ACTIONS, "coverage: 93 %")
    for number in range(200):
        state.comment(7, "ben", f"comment {number}")
    ours = state.comment(7, ACTIONS, f"{MARKER}\nan older comparison")
    said = comment(call, files["gpu-1"])
    assert said.out.startswith("updated: ")
    assert ours["body"].startswith(f"{MARKER}\n### Machmeter on `gpu-1`: no change")
    assert [item["edits"] for item in state.comments if item["edits"]] == [1]
    assert len(state.comments) == 249
    pages = [path for method, path in github.asked("GET") if "/comments" in path]
    assert len(pages) == 3


def test_of_several_comments_of_ours_the_first_stays(call: Call, state: State, files: dict[str, Path]) -> None:
    """Two jobs that did not see each other have commented both."""
    first = state.comment(7, ACTIONS, f"{MARKER}\nfirst")
    state.comment(7, "ann", "what is this?")
    state.comment(7, ACTIONS, f"{MARKER}\nsecond")
    assert comment(call, files["gpu-1"]).out.endswith("(1 older removed)\n")
    assert [(item["id"], item["author"]) for item in state.comments] == [
        (first["id"], ACTIONS), (first["id"] + 1, "ann"),
    ]  # fmt: skip


def test_all_machines_are_in_one_comment_and_what_is_missing_is_named(
    call: Call, state: State, files: dict[str, Path], tmp_path: Path
) -> None:
    """The machine with regressions comes first, then the one without measurements; the step succeeds."""
    files["gpu-1"].unlink()
    said = comment(call, files["gpu-1"], files["xeon-1"])
    assert said.code == 0
    body = state.comments[0]["body"]
    assert body.index("on `xeon-1`: 3 regressions") < body.index("on `gpu-1`: no usable measurements")
    assert "is not there: its run ended without measurements" in body
    assert "no usable measurements of gpu-1" in said.out


def test_measurements_that_cannot_be_used_are_said_and_fail_where_there_are_no_others(
    call: Call, state: State, tmp_path: Path
) -> None:
    """The pull request hears of it, and the step's exit code is 30."""
    file = tmp_path / "box" / "measurements.json"
    file.parent.mkdir()
    file.write_text('{"schema": 1}')
    said = comment(call, file)
    assert said.code == 30
    assert "on `box`: no usable measurements" in state.comments[0]["body"]
    assert said.err == "machmeter: none of the measurements can be used; the comment says why\n"


def test_the_measurements_choose_neither_the_pull_request_nor_the_commit(
    call: Call, state: State, files: dict[str, Path]
) -> None:
    """An artifact of another commit than the one that was to be measured is refused."""
    said = comment(call, files["xeon-1"], sha="c" * 40)
    assert said.code == 30
    assert "they are of the commit a1b2c3d4, and cccccccc was to be measured" in state.comments[0]["body"]


def test_a_head_that_was_pushed_meanwhile_is_said(call: Call, state: State, files: dict[str, Path]) -> None:
    """What was measured is no longer the head of the pull request."""
    state.pulls["7"]["head"] = "d" * 40
    assert comment(call, files["gpu-1"]).code == 0
    moved = "**The head has moved.** This is about `a1b2c3d4`; the head of the pull request is now `dddddddd`."
    assert moved in state.comments[0]["body"]
