"""The evidence by its one reader: with samples and without, several files as one, and what cannot be read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from machmeter.measure.evidence_shape import EvidenceFile
from machmeter.store import evidence

EXCERPTS = sorted((Path(__file__).parents[1] / "data" / "evidence").glob("*.json"))


@pytest.mark.parametrize("path", EXCERPTS, ids=lambda path: path.stem)
def test_without_samples_all_else_is_the_same(path: Path) -> None:
    whole, lean = evidence.parse(path.read_bytes()), evidence.parse(path.read_bytes(), samples=False)
    assert whole is not None
    assert lean is not None
    sampled = 0
    for name, run in whole.runs.items():
        assert replace(run, cells={}) == replace(lean.runs[name], cells={})
        for cell, processes in run.cells.items():
            for process, record in processes.items():
                found = lean.runs[name].cells[cell][process]
                assert (found.sample_seconds, found.device_sample_seconds, found.call_seconds) == (None, None, None)
                sampled += record.sample_seconds is not None or record.call_seconds is not None
                bare = replace(record, sample_seconds=None, device_sample_seconds=None, call_seconds=None)
                assert found == bare
    assert sampled


@pytest.mark.parametrize("samples", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '{"schema": 1}',
        '{"schema": 2, "runs": {}}',
        '{"schema": 1, "runs": []}',
        '{"schema": 1, "runs": {"r": {"cells": {"c": {"p": 1}}}}}',
        '{"schema": 1, "runs": {"r": {"cells": {"c": {"p": {"status": "odd"}}}}}}',
        "[" * 100_000,
        "\udcff",
    ],
)
def test_what_has_another_shape_is_not_read(text: str, samples: bool) -> None:
    assert evidence.parse(text.encode("utf-8", "surrogateescape"), samples=samples) is None


def content(**records: dict[str, Any]) -> dict[str, Any]:
    run = {"started": "2026", "cells": {"c": records}}
    return {"schema": 1, "machine": "here", "commit": "a" * 40, "environment": "env", "runs": {"r": run}}


def test_parsing_asks_nobody_and_settling_does(tmp_path: Path) -> None:
    """Own caches may keep what was parsed; only what is running is asked for again."""
    told = content(p={"status": "running", "pid": 0, "process": "gone", "trace": str(tmp_path / "none"), "order": 3})
    file = evidence.parse(json.dumps(told).encode())
    assert file is not None
    assert file.runs["r"].cells["c"]["p"].status == "running"
    settled = evidence.settled(file).runs["r"].cells["c"]["p"]
    assert (settled.status, settled.order) == ("failed", 3)
    assert evidence.settled(evidence.settled(file)) == evidence.settled(file)


def test_a_running_process_that_is_not_described_cannot_be_settled(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content(p={"status": "running"})))
    assert evidence.read(path) is None


def test_of_two_states_of_a_run_the_fuller_counts() -> None:
    """More records, or more of them at their end; of equal ones the first."""

    def file(**records: dict[str, Any]) -> EvidenceFile:
        found = evidence.parse(json.dumps(content(**records)).encode())
        assert found is not None
        return found

    running, ended = file(p={"status": "running"}), file(p={"status": "ok"})
    more = file(p={"status": "running"}, q={"status": "running"})
    for files, expected in (
        ((running, ended), ended),
        ((ended, running), ended),
        ((more, ended), more),
        ((ended, file(p={"status": "failed"})), ended),
    ):
        assert [found.runs for found in evidence.join(files)] == [expected.runs]


def test_a_host_is_known_where_something_is_on_record() -> None:
    told = content(p={"status": "ok"})
    assert evidence.host(evidence.parse(json.dumps(told).encode()).runs["r"]) is None  # type: ignore[union-attr]
    told["runs"]["r"]["host"] = {"kernel": "6.1"}
    found = evidence.host(evidence.parse(json.dumps(told).encode()).runs["r"])  # type: ignore[union-attr]
    assert found is not None
    assert found.kernel == "6.1"
