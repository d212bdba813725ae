"""The generated store that the site is measured on."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from machmeter.history.read import read
from machmeter.store.columns import FAILED, OK, SKIPPED

sys.path.insert(0, str(Path(__file__).parents[2] / "tools/experiments"))
import generate_store


def test_it_has_everything_that_real_stores_have_and_is_always_the_same(tmp_path: Path) -> None:
    for name in ("first", "again"):
        generate_store.generate(tmp_path / name, files=20, benchmarks=60, seed=3)
    paths = sorted(path.relative_to(tmp_path / "first") for path in (tmp_path / "first").rglob("*.json"))
    assert len(paths) == 22
    for path in paths:
        assert (tmp_path / "first" / path).read_bytes() == (tmp_path / "again" / path).read_bytes()
    text = "".join((tmp_path / "first" / path).read_text() for path in paths)
    assert all(word in text for word in ("NaN", "-Infinity", "null"))
    history = read(tmp_path / "first")
    assert (history.files, len(history.environments), history.left_out) == (20, 2, ())
    assert max(len(item.params) for item in history.series) == 5
    assert max(len(item.versions) for item in history.benchmarks) >= 2
    assert {OK, FAILED, SKIPPED} == set(np.unique(np.concatenate([item.state for item in history.series])).tolist())
    described = json.loads((tmp_path / "first" / "benchmarks.json").read_text())
    assert len(described) == 61
