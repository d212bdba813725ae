"""When a ratio of two sides means nothing, and which libraries are named beside the numbers."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.measurements import BASE, SAME, measured, row
from machmeter.compare import judge
from machmeter.compare.documents import Comparison, Difference
from machmeter.history import environment_changes
from machmeter.machine.host import Cpu, HostFacts, Limits

HOST = {
    "CPU": "Intel Xeon 6980P",
    "CPU features": "amx_int8 avx2",
    "thread budget": "4",
    "memory limit": "8000000000 bytes",
    "kernel": "6.1",
}


def compared(base: dict[str, Any], head: dict[str, Any]) -> Comparison:
    slower = [1.2 * value for value in SAME]
    return judge.compare(measured([row(BASE)], [row(slower, side="head")], of_base=base, of_head=head))


@pytest.mark.parametrize(
    ("fact", "other"),
    [
        ("CPU", "AMD EPYC 9965"),
        ("CPU features", "avx2"),
        ("thread budget", "8"),
        ("memory limit", "4000000000 bytes"),
        ("driver", "580.1"),
        ("GPU", "H200"),
        ("machine", "other"),
    ],
)
def test_another_machine_is_not_comparable(fact: str, other: str) -> None:
    """J5: no percentage is told, and the result is neither good nor bad."""
    base = {"host": {"driver": "570.2", "GPU": "L4", "machine": "box", **HOST}}
    found = compared(base, {"host": {**base["host"], fact: other}})
    assert found.incomparable == [f"{fact} differs: {base['host'][fact]} and {other}"]
    assert (found.result, found.findings, found.shift) == ("could not judge", [], None)


def test_another_kernel_is_comparable() -> None:
    """It is a fact of the machine that may change between two nights."""
    assert compared({"host": HOST}, {"host": {**HOST, "kernel": "6.12"}}).incomparable == []


def test_what_only_one_side_knows_is_no_difference() -> None:
    """Results without evidence know little."""
    assert compared({"host": HOST}, {}).incomparable == []


def test_facts_of_the_evidence_become_facts_of_a_side() -> None:
    """Under the names by which the site shows them, all as text."""
    host = HostFacts(
        cpu=Cpu(model="Some CPU", physical_cores=2, features=("avx2", "amx_int8")),
        limits=Limits(cpu_quota=1.5, memory_bytes=8_000_000_000),
        thread_budget=1,
        kernel="6.1",
    )
    assert environment_changes.recorded(host) == {
        "CPU": "Some CPU",
        "physical cores": "2",
        "thread budget": "1",
        "CPU quota": "1.5",
        "kernel": "6.1",
        "CPU features": "amx_int8 avx2",
        "memory limit": "8000000000 bytes",
    }
    assert environment_changes.recorded(HostFacts()) == {}


def sides(base: dict[str, str], head: dict[str, str], pins: tuple[dict[str, str], dict[str, str]]) -> Comparison:
    return compared({"versions": base, "pins": pins[0]}, {"versions": head, "pins": pins[1]})


def test_a_pin_that_the_change_moves_is_what_is_compared() -> None:
    """It is named first; what came along with it, and what is no library of the models, does not matter."""
    found = sides(
        {"openvino": "2026.2", "numpy": "2.3", "telemetry": "1", "pip": "25"},
        {"openvino": "2026.4", "numpy": "2.3", "telemetry": "2", "pip": "26"},
        ({"openvino": "2026.2", "numpy": "2.3"}, {"openvino": "2026.4", "numpy": "2.3"}),
    )
    assert found.incomparable == []
    assert found.result == "regression"
    assert found.packages == [
        Difference(name="openvino", base="2026.2", head="2026.4", pinned=True),
        Difference(name="telemetry", base="1", head="2", pinned=False),
    ]


@pytest.mark.parametrize("changed", [False, True])
def test_a_pinned_library_that_differs_though_its_pin_does_not_is_not_comparable(changed: bool) -> None:
    """Whatever else the change moves: what is installed is not what was asked for."""
    pins = {"numpy": "2.3", "torch": "2.14"}
    found = sides(
        {"numpy": "2.3", "torch": "2.14"},
        {"numpy": "2.4", "torch": "2.15" if changed else "2.14"},
        (pins, {**pins, "torch": "2.15"} if changed else pins),
    )
    assert found.incomparable == ["libraries differ that the change does not pin: numpy 2.3 and 2.4"]
    assert found.result == "could not judge"


def test_a_library_without_a_pin_that_differs_without_any_reason_is_not_comparable() -> None:
    """No pin changed, so nothing in the change explains it."""
    pins = {"torch": "2.14"}
    found = sides({"torch": "2.14", "numpy": "2.3"}, {"torch": "2.14", "numpy": "2.4"}, (pins, pins))
    assert found.incomparable == ["libraries differ that the change does not pin: numpy 2.3 and 2.4"]


def test_where_no_pins_are_known_differences_are_only_listed() -> None:
    """Any asv project."""
    found = sides({"numpy": "2.3"}, {"numpy": "2.4"}, ({}, {}))
    assert found.incomparable == []
    assert found.packages == [Difference(name="numpy", base="2.3", head="2.4")]
