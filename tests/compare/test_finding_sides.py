"""Which file a name means: whatever the order of its keys, and with what is damaged named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.asv_files import commit_hash, result, write
from machmeter.compare import sides
from machmeter.errors import SideUnknown


def test_a_file_is_found_by_what_it_says_wherever_it_says_it(tmp_path: Path) -> None:
    """K14: tools that sort keys, or write the results first, leave the commit behind many kilobytes."""
    path = write(tmp_path / "results", 1, {f"m.time_{number}": result([1.0]) for number in range(500)})
    content = json.loads(path.read_bytes())
    path.write_text(json.dumps({"results": content.pop("results"), **content}))
    assert path.read_bytes().index(b"commit_hash") > 4096
    assert sides.read_side(tmp_path / "results", "here", commit_hash(1)).environment == "env"
    assert len(sides.read_side(tmp_path / "results", "here", "env").rows) == 500


def test_a_name_in_the_results_is_none_of_the_file(tmp_path: Path) -> None:
    """A benchmark may well be called after a key."""
    path = write(tmp_path / "results", 1, {"m.time_x": result([1.0], [['"env_name": "other"']])})
    content = json.loads(path.read_bytes())
    path.write_text(json.dumps({"results": content.pop("results"), **content}))
    assert sides.read_side(tmp_path / "results", "here", commit_hash(1)).environment == "env"


def test_damaged_files_are_named_where_nothing_is_found(tmp_path: Path) -> None:
    """What was asked for may be in one of them."""
    write(tmp_path / "results", 1, {"m.time_x": result([1.0])})
    (tmp_path / "results" / "here" / "02020202-env.json").write_text('{"commit_hash": "0202')
    with pytest.raises(SideUnknown, match=r"02020202-env.json is not valid JSON, perhaps half-written"):
        sides.read_side(tmp_path / "results", "here", commit_hash(2))
