"""Which copy counts where several files have the same: one rule for history, tables and comparisons."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from helpers.asv_files import commit_hash, result, write
from machmeter.compare import sides
from machmeter.history.read import read
from machmeter.store import copies, values
from machmeter.store.columns import FAILED, OK, SKIPPED

NAN = float("nan")


def test_both_forms_of_the_rule_agree() -> None:
    """Over every pair of states and times."""
    every = list(itertools.product((OK, FAILED, SKIPPED), (1, 2)))
    for first, second in itertools.product(every, every):
        counts = copies.newest(
            np.array([True]), np.array([first[0], second[0]], np.uint8), np.array([first[1], second[1]])
        )
        assert counts is not None
        assert counts.tolist() == [int(copies.claim(*second) >= copies.claim(*first))] * 2


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((1.0, 1), (2.0, 2), 2.0),  # the newer
        ((1.0, 2), (2.0, 1), 1.0),  # wherever it stands
        ((1.0, 1), (2.0, 1), 2.0),  # of equal ones the later file
        ((1.0, 1), (None, 2), None),  # it fails now
        ((1.0, 1), (NAN, 2), 1.0),  # what was only skipped hides nothing
        ((None, 1), (NAN, 2), None),
    ],
)
def test_history_tables_and_comparisons_take_the_same_copy(
    tmp_path: Path, first: tuple[float | None, int], second: tuple[float | None, int], expected: float | None
) -> None:
    """Two files of one commit and environment, as the results branch has them."""
    results = tmp_path / "results"
    for number, (value, minute) in enumerate((first, second)):
        rows = {"m.time_a": result([value], started=1_700_000_000_000 + 60_000 * minute)}
        write(results, 1, rows, file=f"{commit_hash(1)[:8]}-env.000000000000000{number}.json")
    (series,) = read(results).series
    (file,), _ = values.read_all(results)
    (row,) = sides.read_side(results, "here", commit_hash(1)).rows
    (value,) = file.values.values()
    in_history = float(series.value[0]) if series.state[0] == OK else None
    in_comparison = row.processes[0].value if row.status == "ok" else None
    assert (in_history, value.number, in_comparison) == (expected, expected, expected)
