"""What is measured is called the same by asv, in the evidence and by those who read it."""

from __future__ import annotations

from pathlib import Path

import pytest

import machmeter
from machmeter.workload import names


def test_rungs_peaks_and_offline_cells() -> None:
    """These names are in the evidence of everybody who has measured: they do not change."""
    assert names.rung_key("ResNet50", "batch-8") == "tuning.ResNet50(batch-8)"
    assert names.peak_key("memory") == "control.MachinePeak(memory)"
    assert names.offline_key("cpu.openvino.ResNet50(int8, 8)") == "offline.openvino.ResNet50(int8, 8)"


@pytest.mark.parametrize(
    ("key", "rung"),
    [
        (names.rung_key("ResNet50", "batch-8"), ("ResNet50", "batch-8")),
        ("cpu.eager.ResNet50(fp32, 1)", None),
        ("tuning.ResNet50", None),
        ("mytuning.ResNet50(eager)", None),
        ("", None),
    ],
)
def test_a_rung_is_known_by_its_name(key: str, rung: tuple[str, str] | None) -> None:
    assert names.parse_rung(key) == rung


@pytest.mark.parametrize(
    ("cell", "metric", "name"),
    [
        ("cpu.eager.ResNet50(fp32, 1)", "time_forward", "cpu.eager.ResNet50(fp32, 1)"),
        ("cpu.eager.ResNet50(fp32, 1)", "track_throughput_offline", "offline.eager.ResNet50(fp32, 1)"),
        ("control.Null(fp32, 1)", "time_forward", "control.null.ResNet50(fp32, 1)"),
    ],
)
def test_what_asv_measured_is_found_in_the_evidence(cell: str, metric: str, name: str) -> None:
    assert names.in_evidence(cell, metric) == name


@pytest.mark.parametrize("prefix", ["tuning.", "control.", "offline."])
def test_no_other_module_spells_these_names(prefix: str) -> None:
    package = Path(machmeter.__file__).parent
    spelled = (f'"{prefix}', f"'{prefix}", f"^{prefix[:-1]}\\.")
    users = {path.name for path in package.rglob("*.py") if any(word in path.read_text() for word in spelled)}
    assert users <= {"names.py"}
