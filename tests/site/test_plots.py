"""How values, names, plots and lines are written."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

from helpers import stores
from machmeter.changes.judge import Change as Judged
from machmeter.history import naming
from machmeter.history.read import read
from machmeter.site import build, history_plot, svg
from machmeter.text import numbers


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (0.0372, "seconds", "37.20 ms"),
        (1.2e-7, "seconds", "120.0 ns"),
        (0.0, "seconds", "0 ns"),
        (245_400_000, "bytes", "245.4 MB"),
        (0.796875, "fraction", "0.797"),
        (219.34, "images/s", "219.3 images/s"),
        (1.022e12, "operations/s", "1.022 Top/s"),
        (-12.5, "dB", "-12.50 dB"),
        (None, "seconds", "–"),
        (math.nan, "seconds", "–"),
        (1e300, "points", "1.000e+300 points"),
    ],
)
def test_values_are_written_with_their_unit(number: float | None, unit: str, text: str) -> None:
    assert numbers.value(number, unit) == text


def test_file_names_are_the_name_where_that_is_safe() -> None:
    assert naming.pages(["ResNet50", "resnet50", "a/b", "index", "ViTB16"]) == {
        "ResNet50": naming.anchor("ResNet50"),
        "resnet50": naming.anchor("resnet50"),
        "a/b": naming.anchor("a/b"),
        "index": naming.anchor("index"),
        "ViTB16": "ViTB16",
    }
    assert re.fullmatch(r"a-b-[0-9a-f]{8}", naming.anchor("a/b"))


def test_a_series_is_thinned_to_the_ends_of_every_pixel() -> None:
    x, y = np.arange(1000) / 10, np.arange(1000) % 7.0
    across, down = history_plot.thin(x, y, 100)
    assert len(across) == len(down) == 200
    assert (down.min(), down.max()) == (0.0, 6.0)
    assert [len(column) for column in history_plot.thin(x[:50], y[:50], 100)] == [50, 50]


def test_thinning_keeps_the_gaps_of_a_series() -> None:
    x, y = np.arange(12) / 4, np.array([1.0, 3, 2, np.nan, 2, 1, 3, 2, np.nan, np.nan, 5, 5])
    across, down = history_plot.thin(x, y, 3)
    assert across.tolist()[:2] == [0.0, 0.25]
    assert [str(value) for value in down] == ["1.0", "3.0", "nan", "1.0", "3.0", "nan", "5.0"]


def test_a_long_line_is_drawn_in_whole_pixels_with_its_gaps() -> None:
    y = np.array([10.4] * 61)
    y[[0, 2]] = np.nan
    assert svg.line(np.arange(61.0), y).startswith("M1 10M3 10l1 0l1 0")
    assert svg.line(np.arange(61.0), y).count("l1 0") == 57
    assert svg.line(np.arange(3.0), y[1:4]) == "M0 10.4M2 10.4"


def test_the_changes_of_a_series_are_those_that_were_judged(tmp_path: Path) -> None:
    stores.foreign(tmp_path / "results", 6)
    history = read(tmp_path / "results")
    series = history.series[0]
    judged = Judged(
        index=3,
        last_before=2,
        before=1.0,
        after=2.0,
        p=0.0,
        verdict="regression",
        ratio=2.0,
        importance=2.0,
        words="+100.0 %",
    )
    (change,) = build.shown(history, {series.key: [judged]})
    assert (change.point, change.previous, change.size, change.words) == (3, 2, math.log(2.0), "+100.0 %")


def test_days_below_a_plot_do_not_overlap() -> None:
    days = [(float(at), f"2026-01-{at + 1:02}") for at in range(28)]
    line = history_plot.Curve(x=np.arange(28.0), y=np.ones(28))
    drawn = str(history_plot.history([line], unit="s", label="", dates=days))
    labels = re.findall(r'<text x="([\d.]+)" y="310"( text-anchor="middle")?>2026', drawn)
    assert len(labels) >= 6
    ends = [(float(x) - 36, float(x) + 36) if centred else (float(x), float(x) + 72) for x, centred in labels]
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(ends))
