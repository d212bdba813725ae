"""Tables in a narrow terminal: whole columns are left out and named, no row is wrapped, and a file has all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import stores
from helpers.project import ROOT
from machmeter.text import table_width

COLUMNS = [
    ("name", lambda row: row, False),
    ("speed", lambda row: "1.0", True),
    ("memory", lambda row: "100", True),
    ("× first", lambda row: "1.00", True),
]


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (0, []),
        (25, []),  # 4 + 5 + 6 + 7, and three gaps
        (24, ["memory"]),
        (18, ["memory"]),
        (17, ["memory", "× first"]),
        (5, ["memory", "× first"]),  # what is not spare stays
    ],
)
def test_no_more_is_left_out_than_must_be(width: int, left_out: list[str]) -> None:
    kept, gone = table_width.fit(COLUMNS, ["a", "abcd"], width, ("offline", "memory", "× first"))
    assert gone == left_out
    assert [title for title, _, _ in kept] == [title for title, _, _ in COLUMNS if title not in left_out]


def test_what_is_left_out_is_said() -> None:
    assert table_width.told(["p95 ms", "% peak"]) == [
        "no room here for p95 ms, % peak: a wider terminal and --json have all"
    ]
    assert table_width.told([]) == []


@pytest.mark.parametrize(
    ("command", "first"),
    [
        (("show", "--machine", "box"), "backend"),
        (("versions", "--machine", "box"), "version"),
        (("ladder", "ResNet50", "--show"), "rung"),
    ],
)
def test_tables_keep_to_the_width_of_the_terminal(tmp_path: Path, command: tuple[str, ...], first: str) -> None:
    stores.own(tmp_path / "results")
    (tmp_path / "asv.conf.json").write_bytes((ROOT / "asv.conf.json").read_bytes())
    (tmp_path / ".asv-machine.json").write_text(json.dumps({"box": {"machine": "box"}, "version": 1}))

    def shown(columns: str) -> tuple[list[str], list[str]]:
        """Return header and first two rows of the first table, and the notes, in a terminal so wide (or a file)."""
        done = subprocess.run(
            [sys.executable, "-c", "from machmeter.cli import main; main()", *command, "--project", str(tmp_path)],
            env={**os.environ, "COLUMNS": columns, "HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        lines = done.stdout.splitlines()
        begin = next(number for number, line in enumerate(lines) if line.startswith(f"{first} "))
        return lines[begin : begin + 3], [line for line in lines if line.startswith("note: no room here for ")]

    rows, notes = shown("")
    assert max(map(len, rows)) > 60
    assert ("peak MB" in rows[0], notes) == (True, [])
    rows, (note,) = shown("60")
    assert max(map(len, rows)) <= 60
    assert ("images/s" in rows[0], "top-1" in rows[0], "peak MB" in rows[0]) == (True, True, False)
    assert "peak MB" in note
