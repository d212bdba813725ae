"""The shape of the evidence is that of the real files: excerpts of a run on a Xeon with AMX, their lists cut to three.

A latency, a survey and answers on every backend, the ladder with its instances, a sweep, the machine's peaks, one n/a.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from machmeter import json_shape
from machmeter.machine import nvml
from machmeter.measure.evidence_shape import EvidenceFile, Record
from machmeter.workload.read_back import DeviceFacts

EXCERPTS = sorted((Path(__file__).parents[1] / "data" / "evidence").glob("*.json"))


@pytest.mark.parametrize("path", EXCERPTS, ids=lambda path: path.stem)
def test_every_field_of_a_real_file_has_its_place(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    file = json_shape.decode(EvidenceFile, json.loads(text))
    assert json.dumps(json_shape.encode(file), indent=1, sort_keys=True, allow_nan=False) == text


@pytest.mark.parametrize("path", EXCERPTS, ids=lambda path: path.stem)
def test_the_fast_reader_finds_the_same(path: Path) -> None:
    file = msgspec.json.decode(path.read_bytes(), type=EvidenceFile)
    slow = json_shape.decode(EvidenceFile, json.loads(path.read_bytes()))
    for name, run in slow.runs.items():
        assert (file.runs[name].host, file.runs[name].swept, file.runs[name].versions) == (
            run.host,
            run.swept,
            run.versions,
        )
        for cell, processes in run.cells.items():
            for process, record in processes.items():
                read = file.runs[name].cells[cell][process]
                assert (read.status, read.facts, read.fidelity, read.sample_seconds, read.artifact) == (
                    record.status,
                    record.facts,
                    record.fidelity,
                    record.sample_seconds,
                    record.artifact,
                )


def test_what_an_older_file_lacks_has_its_default() -> None:
    file = json_shape.decode(EvidenceFile, {"schema": 1, "runs": {"r": {"cells": {"c": {"p": {"status": "ok"}}}}}})
    (record,) = file.runs["r"].cells["c"].values()
    assert (record.status, record.order, record.facts, record.disturbed_share) == ("ok", 0, None, None)
    assert (file.stack, file.runs["r"].swept, file.runs["r"].host.cpu.model) == (None, None, "")


def test_what_a_gpu_was_doing_has_its_place() -> None:
    """No file of a run on a GPU is among the excerpts: its fields are held to what NVML is asked for."""
    state = dict.fromkeys(nvml._QUESTIONS) | {"at": 5.0, "missing": {"driver": "no"}}
    state |= {"clock_reasons": ["idle"], "processes": [{"pid": 7, "memory_bytes": 1}]}
    device = json_shape.encode(DeviceFacts(gpu="NVIDIA H200")) | {"before": [state]}
    told = {"device": device, "device_states": [state], "device_sample_seconds": [0.5], "device_median_seconds": 0.5}
    written = json_shape.encode(json_shape.decode(Record, told))
    assert {name: written[name] for name in told} == told
