"""asv's files by the one reader: whole, cell by cell, and at a look."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from helpers.asv_files import result, write
from machmeter.store import asv_files, values
from machmeter.store.columns import FAILED, OK, SKIPPED, UNREADABLE

NAN = float("nan")


def content(tmp_path: Path, **changed: Any) -> dict[str, Any]:
    rows = {"m.time_a": result([1.0, NAN], [["'x'", "'y'"]], high=[float("inf"), None]), "m.time_b": result([2.0])}
    found: dict[str, Any] = json.loads(write(tmp_path, 1, rows, **changed).read_bytes())
    return found


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("environment", ["env", "NaN-Infinity", "a null b", 'quoted "NaN" \\', "größer"])
def test_a_look_says_what_a_whole_reading_says(tmp_path: Path, environment: str, backwards: bool) -> None:
    """In whatever order the keys stand, also behind megabytes of results, and whatever the names hold."""
    told = content(tmp_path, environment=environment, requirements={"numpy": None, "x": "1"}, env_vars={"STACK": "cpu"})
    ordered = dict(reversed(told.items())) if backwards else told
    for text in (json.dumps(ordered), json.dumps(ordered, ensure_ascii=False, indent=1)):
        seen = asv_files.look(text.encode(), "here/x.json")
        (header,) = asv_files.parse(text.encode(), "here/x.json").headers
        assert seen == dataclasses.replace(header, problems=())
        assert (seen.environment, seen.machine, dict(seen.variables)) == (environment, "here", {"STACK": "cpu"})


@pytest.mark.parametrize(
    "changed",
    [
        {"version": 1},
        {"version": 3},
        {"version": True},
        {"commit_hash": ""},
        {"commit_hash": None},
        {"result_columns": None},
        {"result_columns": ["params"]},
        {"results": None},
        {"results": []},
        {"results": 1},
    ],
)
def test_a_look_refuses_what_a_whole_reading_refuses(tmp_path: Path, changed: dict[str, Any]) -> None:
    """With the same words."""
    text = json.dumps({**content(tmp_path), **changed}).encode()
    with pytest.raises(asv_files.Unusable) as whole:
        asv_files.parse(text, "here/x.json")
    with pytest.raises(asv_files.Unusable) as look:
        asv_files.look(text, "here/x.json")
    assert str(look.value) == str(whole.value)


@pytest.mark.parametrize("text", [b"", b" ", b"[]", b"null", b'{"version": 2, "results": {"a', b"\xff", b"[" * 100_000])
def test_a_look_says_what_is_no_result(text: bytes) -> None:
    """Empty, half-written, something else."""
    with pytest.raises(asv_files.Unusable) as whole:
        asv_files.parse(text, "x.json")
    with pytest.raises(asv_files.Unusable) as look:
        asv_files.look(text, "x.json")
    assert str(look.value) == str(whole.value)


def test_odd_facts_are_read_alike(tmp_path: Path) -> None:
    """What asv never writes is no reason to fail: a date that is a text, parameters that are none."""
    for changed in ({"date": "x"}, {"params": 3}, {"env_name": 5}, {"python": None}, {"date": NAN}, {"date": 10**400}):
        text = json.dumps({**content(tmp_path), **changed}).encode()
        (header,) = asv_files.parse(text, "here/x.json").headers
        assert asv_files.look(text, "here/x.json") == header


def test_cells_have_their_samples(tmp_path: Path) -> None:
    """Each with what it is, when it began and ended; what cannot be read is no number and is named."""
    row = result([1.0, None, NAN, float("inf")], [["'a'", "b", "1", "2"]], started=5_000)
    columns = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b"]
    columns += ["stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples"]
    path = write(tmp_path, 1, {"m.time_a": [*row, [[0.9, 1.1], None, None, "x"]]}, result_columns=columns)
    file = values.parse(path.read_bytes(), tmp_path, f"here/{path.name}")
    assert [(key[1], value.state, value.number, value.samples) for key, value in file.values.items()] == [
        (("a",), OK, 1.0, (0.9, 1.1)),
        (("b",), FAILED, None, ()),
        (("1",), SKIPPED, None, ()),
        (("2",), UNREADABLE, None, ()),
    ]
    assert {(value.started, value.ended) for value in file.values.values()} == {(5.0, 6.0)}
    assert [key[1] for key, _ in file.tried] == [("a",), ("b",), ("2",)]
    assert file.problems == ("m.time_a: Infinity is no finite number",)


def test_the_files_of_one_machine(tmp_path: Path) -> None:
    """By what they say, not by their folder; what is damaged is named, of whatever machine."""
    write(tmp_path, 1, {"a": result([1.0])}, machine="one")
    write(tmp_path, 2, {"a": result([2.0])}, machine="one", folder="two")
    write(tmp_path, 3, {"a": result([3.0])}, machine="two")
    (tmp_path / "two" / "half.json").write_text('{"version": 2')
    files, unreadable = values.read_all(tmp_path, "one")
    assert sorted(value.number or 0.0 for file in files for value in file.values.values()) == [1.0, 2.0]
    assert [item.path.name for item in unreadable] == ["half.json"]
