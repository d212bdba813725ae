"""Rungs on a real model."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from machmeter import backends
from machmeter.machine import host
from machmeter.measure import instances, rung_configuration, starting
from machmeter.measure.instances import Done
from machmeter.workload import fidelity, models, rungs
from machmeter.workload import precision as precision_labels
from machmeter.workload.cells import Cell

pytestmark = pytest.mark.quiet


@pytest.fixture
def resnet18(store_variable: Path) -> Any:
    known = rungs.load()

    def climb(name: str) -> Done:
        found = rung_configuration.configuration(known[name], known, "ResNet18")
        if reason := (
            starting.unsupported(found.launch)
            or backends.unsupported(found.backend, models.get("ResNet18"), found.cell.precision, **found.cell.options)
        ):
            pytest.skip(reason)
        return instances.run(dataclasses.replace(found, seconds=1.0))

    return climb


@pytest.mark.models
@pytest.mark.parametrize("name", ["tcmalloc", "huge-pages", "two-instances", "onnxruntime", "openvino-int8"])
def test_rungs_on_a_real_model(name: str, resnet18: Any) -> None:
    """What was asked for is proved by `instances.run`; here, that the answers are right and the speed is one."""
    done = resnet18(name)
    assert done.images_per_second > 1
    assert (
        fidelity.shortfall(
            fidelity.Fidelity(
                top1_agreement=done.facts()["track_top1_agreement"], sqnr_db=done.facts()["track_sqnr"], images=64
            ),
            "int8" if name == "openvino-int8" else "fp32" if name == "onnxruntime" else "bf16",
        )
        is None
    )
    if name == "huge-pages":
        assert (done.workers[0].proof.huge_page_bytes or 0) > 10e6


@pytest.mark.models
def test_openvino_says_which_precision_it_chose(resnet18: Any) -> None:
    """M10: left alone it takes bf16 where the CPU has it, and the row says so."""
    (worker,) = resnet18("openvino").workers
    assert worker.precision == ("bf16" if host.cpu().has_bf16 else "fp32")


@pytest.mark.models
@pytest.mark.usefixtures("store_variable")
@pytest.mark.parametrize(
    ("name", "options", "in_flight"),
    [("openvino", {}, "requests"), ("onnxruntime", {}, "sessions"), ("eager", {"layout": "channels_last"}, None)],
)
def test_offline_throughput(name: str, options: dict[str, str], in_flight: str | None) -> None:
    """Requests side by side: the runtime's own where it has them, instances where it has not."""
    cell = Cell(device="cpu", backend=name, model="ResNet18", precision="fp32", batch=8, options=options)
    found = instances.offline(backends.get(name), cell)
    done = instances.run(dataclasses.replace(found, seconds=1.0))
    budget = host.thread_budget()
    assert done.facts()["track_top1_agreement"] >= 0.98
    if in_flight:
        assert len(done.workers) == 1
        assert done.workers[0].effective.settings[in_flight] >= budget
        assert done.workers[0].effective.threads == budget
    else:
        assert len(done.workers) == budget
    assert done.images_per_second > 1


@pytest.mark.parametrize(
    ("compute", "precision"),
    [
        ({"fp32": 1, "bf16": 52}, "bf16"),
        ({"fp32": 50, "bf16": 3}, "fp32"),
        ({"int8": 3, "fp32": 50}, "int8"),
        ({}, "fp32"),
    ],
)
def test_the_precision_a_runtime_chose(compute: dict[str, int], precision: str) -> None:
    assert precision_labels.dominant(compute) == precision


def test_ipex_names_the_stack_it_needs() -> None:
    """M24: a library that is missing or too new is n/a, with what to do."""
    reason = backends.unsupported(backends.get("ipex"), models.get("ResNet50"), "bf16", mode="eager")
    if "ipex" not in str(reason):
        pytest.skip("this is the stack ipex")
    assert "IPEX ended with 2.8.0, which needs torch 2.8" in str(reason)
    assert "machmeter run --stack ipex" in str(reason)
