"""What has no number now, and since when."""

from __future__ import annotations

from pathlib import Path

from helpers.asv_files import result, write
from machmeter.history.missing import missing
from machmeter.history.read import read
from machmeter.store.columns import FAILED


def test_what_has_no_number_is_listed_with_since_when(tmp_path: Path) -> None:
    for number, values in enumerate([(1.0, 1.0, None), (None, 1.0, 1.0), (None, None, 1.0)]):
        write(tmp_path, number, {"m.time_x": result(list(values), [["1", "2", "3"]])})
    found = [(item.series.params, item.state, item.since, item.last_number) for item in missing(read(tmp_path))]
    assert found == [(("1",), FAILED, 1, 0), (("2",), FAILED, 2, 1)]


def test_what_was_given_up_is_not_missing(tmp_path: Path) -> None:
    write(tmp_path, 1, {"m.time_x": result([1.0]), "m.time_gone": result([None])})
    write(tmp_path, 2, {"m.time_x": result([None])})
    assert [item.series.benchmark.name for item in missing(read(tmp_path))] == ["m.time_x"]
