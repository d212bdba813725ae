"""asv's notes beside its results: of benchmarks and of machines, whatever is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from machmeter.store import asv_notes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, {}),
        ('{"machine": "box", "num_cpu": 2, "version": 1}', {"machine": "box", "num_cpu": "2"}),
        ("[]", None),
        ('{"machine": ', None),
        ("[" * 100_000, None),
    ],
)
def test_a_note_of_a_machine(tmp_path: Path, text: str | None, expected: dict[str, str] | None) -> None:
    (tmp_path / "box").mkdir()
    if text is not None:
        (tmp_path / "box" / "machine.json").write_text(text)
    assert asv_notes.machine(tmp_path, "box") == expected


def test_a_list_of_benchmarks_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    (tmp_path / "benchmarks.json").write_text(
        '{"a": {"type": "time", "unit": 3, "param_names": 5}, "b": 1, "version": 2}'
    )
    assert asv_notes.benchmarks(tmp_path) == (
        {"a": asv_notes.Described(kind="time")},
        ["b: is no description of a benchmark"],
    )
    (tmp_path / "benchmarks.json").write_text("[]")
    assert asv_notes.benchmarks(tmp_path) == ({}, ["is no object: units and parameter names are guessed"])


@pytest.mark.parametrize("text", [None, "[]", "{", "[" * 100_000])
def test_what_asv_says_in_full_is_nothing_where_nobody_can_read_it(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "benchmarks.json").write_text(text)
    assert asv_notes.in_full(tmp_path) == {}
    (tmp_path / "benchmarks.json").write_text('{"a": {"name": "a", "code": "x"}, "version": 2}')
    assert asv_notes.in_full(tmp_path) == {"a": {"name": "a", "code": "x"}}
