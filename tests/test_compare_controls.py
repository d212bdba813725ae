"""Which benchmarks tell a slow machine from slow code: one definition for `pr` and `compare`."""

from __future__ import annotations

import pytest

from machmeter.compare.controls import is_control


@pytest.mark.parametrize(
    ("benchmark", "control"),
    [
        ("control.Machine.time_matrix_product", True),
        ("control.Null.time_forward", False),  # the harness: a change may make it slower
        ("control.Machine.track_anything", False),
        ("control.MachinePeak.time_anything", False),
        ("cpu.openvino.ResNet50.time_forward", False),
        ("time_alone", False),
    ],
)
def test_only_the_machine_is_a_control(benchmark: str, control: bool) -> None:
    assert is_control(benchmark) is control
