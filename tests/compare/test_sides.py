"""What a side of a comparison is, read from asv's results and from evidence; and which file a name means."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from helpers import evidence
from helpers.asv_files import write_catalogue
from helpers.stores import HOST, commit, foreign, write_result
from machmeter.compare import judge, sides
from machmeter.compare.documents import Side
from machmeter.errors import SideUnknown
from machmeter.pull_request import plan
from machmeter.workload import names

START = 1_796_000_000.0
NAN = float("nan")


def write_evidence(
    results: Path, number: int, cells: dict[str, list[dict[str, Any]]], *, environment: str = "env", **run: Any
) -> None:
    """Write the evidence of one run: `cells` maps a cell to the records of its processes."""
    told = {"host": HOST, "versions": {"numpy": "2.4.6"}, **run}
    numbered = {cell: {f"p{place}": record for place, record in enumerate(some)} for cell, some in cells.items()}
    evidence.write(results, numbered, commit=commit(number), machine="box", environment=environment, **told)


def timing(when: float, seconds: float, **more: Any) -> dict[str, Any]:
    return {
        "benchmark": "time_forward",
        "status": "ok",
        "order": 1,
        "started_at": START + when,
        "median_seconds": seconds,
        "samples": 3,
        "sample_seconds": [seconds] * 3,
        "disturbed_share": 0.02,
        **more,
    }


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of two commits that were measured in turn, eight times: the second is 10 % slower."""
    results = tmp_path / "results"
    for number, level in ((1, 0.010), (2, 0.011)):
        write_result(
            results,
            number,
            {
                "cpu.openvino.ResNet50.time_forward": ([["'int8'"], ["1", "8"]], [level, NAN]),
                "cpu.openvino.ResNet50.track_top1_agreement": ([["'int8'"], ["1", "8"]], [0.8, NAN]),
                "control.Machine.time_matrix_product": ([], [0.1]),
            },
            environment="env",
        )
        wobble = (1.000, 1.004, 0.997, 1.002, 0.999, 1.003, 0.998, 1.001)
        places = [20 * round_ + 10 * ((round_ % 2 == 0) == (number == 2)) for round_ in range(8)]
        write_evidence(
            results,
            number,
            {
                "cpu.openvino.ResNet50(int8, 1)": [
                    timing(place, level * factor) for place, factor in zip(places, wobble, strict=True)
                ],
                "cpu.openvino.ResNet50(int8, 8)": [
                    {
                        "benchmark": "peakmem_forward",
                        "status": "n/a",
                        "reason": "no AMX",
                        "started_at": START,
                        "order": 1,
                    }
                ],
            },
        )
    write_catalogue(results, {"cpu.openvino.ResNet50.track_top1_agreement": {"type": "track", "unit": "fraction"}})
    return results


def rows(side: Side) -> dict[tuple[str, str], Any]:
    return {(row.cell, row.metric): row for row in side.rows}


def test_processes_come_from_the_evidence(store: Path) -> None:
    """Each with its median, its samples and its disturbance; what is n/a has the reason."""
    side = sides.read_side(store, "box", commit(1))
    found = rows(side)
    first = found["cpu.openvino.ResNet50(int8, 1)", "time_forward"]
    assert [process.value for process in first.processes[:3]] == [0.010, 0.01004, 0.00997]
    assert (first.processes[0].samples, first.processes[0].disturbed) == (3, 0.02)
    assert (first.unit, first.better, first.version) == ("seconds", "lower", "1")
    other = found["cpu.openvino.ResNet50(int8, 8)", "time_forward"]
    assert (other.status, other.reason, other.processes) == ("n/a", "no AMX", [])
    assert found["cpu.openvino.ResNet50(int8, 1)", "track_top1_agreement"].better == "higher"
    assert [key for key, row in found.items() if row.control] == [("control.Machine", "time_matrix_product")]
    assert (side.commit, side.environment, side.stack) == (commit(1), "env", "cpu")
    assert side.host["CPU"] == "Some CPU"
    assert side.versions == {"numpy": "2.4.6"}


@pytest.mark.parametrize(
    ("benchmark", "control"),
    [
        ("control.Machine.time_matrix_product", True),
        ("control.Null.time_forward", False),
        ("control.MachinePeak.track_memory_bandwidth", False),
        ("cpu.openvino.ResNet50.time_forward", False),
        ("control.Machine.track_anything", False),
        ("control.MachinePeak.time_anything", False),
        ("mycontrol.Machine.time_x", False),
        ("time_alone", False),
    ],
)
def test_one_definition_of_a_control(benchmark: str, control: bool) -> None:
    """The null backend measures our harness, which a change may slow down; `machmeter pr` says the same."""
    assert names.is_control(benchmark) is control
    listed = {name: {"type": "time", "params": [], "unit": "seconds"} for name in (benchmark, "a.time_x")}
    chosen = plan.items(listed, [".", "MachinePeak"])
    assert {item.name: item.control for item in chosen.values()} == {benchmark: control, "a.time_x": False}


@pytest.mark.parametrize("others", [{}, {"cpu.X.time_forward": ([], [NAN])}], ids=["none", "not run"])
def test_controls_alone_are_what_is_asked_for(tmp_path: Path, others: dict[str, Any]) -> None:
    """Results of controls only, as when a machine is tried: they are compared, and the reason says what is missing."""
    for number in (1, 2):
        values = {"control.Machine.time_matrix_product": ([], [0.1 * number]), **others}
        write_result(tmp_path / "results", number, values, environment="env")
    found = judge.compare(sides.read(tmp_path / "results", "box", commit(1), commit(2)))
    assert [(item.cell, item.verdict, item.words) for item in found.findings] == [
        ("control.Machine", "not judged", "samples of one process: at least 6 rounds are needed")
    ]


def test_controls_beside_what_only_one_side_has_are_told(store: Path) -> None:
    """They are not judged, and a note says why nothing is."""
    write_result(store, 3, {"control.Machine.time_matrix_product": ([], [0.1])}, environment="env")
    found = judge.compare(sides.read(store, "box", commit(1), commit(3)))
    assert (found.findings, found.result) == ([], "could not judge")
    assert found.notes == [
        "there is nothing to compare but 1 control: what measures the machine says nothing of a change"
    ]


def test_two_commits_measured_in_turn_are_judged_by_rounds(store: Path) -> None:
    """The order in time tells that they were measured in turn, and which process came first."""
    told = sides.read(store, "box", commit(1), commit(2))
    assert (told.interleaved, told.rounds) == (True, 8)
    found = judge.compare(told)
    (finding,) = [item for item in found.findings if item.metric == "time_forward"]
    assert (finding.verdict, finding.pairs, round(finding.ratio or 0.0, 2)) == ("regression", 8, 1.1)


def test_two_commits_measured_in_blocks_are_not(store: Path) -> None:
    """J2: 10 % may be the machine."""
    late = [timing(1000 + place, 0.011) for place in range(8)]
    write_evidence(store, 2, {"cpu.openvino.ResNet50(int8, 1)": late})
    told = sides.read(store, "box", commit(1), commit(2))
    assert told.interleaved is False
    assert "regression" not in {item.verdict for item in judge.compare(told).findings}


def test_a_run_under_other_conditions_does_not_count(store: Path) -> None:
    """Only what the newest run of a commit shares its machine and libraries with is one side."""
    path = store.parent / "evidence" / "box" / f"{commit(1)[:8]}-env.json"
    content = json.loads(path.read_text())
    content["runs"]["older"] = {
        "started": "2025-01-01T00:00:00Z",
        "host": {**HOST, "thread_budget": 1},
        "versions": {"numpy": "2.4.6"},
        "cells": {"cpu.openvino.ResNet50(int8, 1)": {"x": timing(-100, 9.0)}},
    }
    path.write_text(json.dumps(content))
    found = rows(sides.read_side(store, "box", commit(1)))["cpu.openvino.ResNet50(int8, 1)", "time_forward"]
    assert len(found.processes) == 8


def test_a_failure_has_its_reason(store: Path) -> None:
    """Of the newest record that tells one; a process that died without a word is found out."""
    write_result(store, 3, {"cpu.openvino.ResNet50.time_forward": ([["'int8'"], ["1"]], [None])}, environment="env")
    died = {**timing(0, 1.0), "status": "running", "pid": 4_000_000, "process": "gone", "trace": "/nonexistent"}
    write_evidence(store, 3, {"cpu.openvino.ResNet50(int8, 1)": [died]})
    (row,) = sides.read_side(store, "box", commit(3)).rows
    assert row.status == "failed"
    assert row.reason.startswith("killed (signal 9), most likely by the kernel for lack of memory")


def test_any_asv_project_has_one_process_a_side(tmp_path: Path) -> None:
    """No evidence: timings are told and not judged, and asv's own failures are failures."""
    foreign(tmp_path / "results")
    found = judge.compare(sides.read(tmp_path / "results", "box", commit(30), commit(38)))
    assert [(item.kind, item.cell, item.metric) for item in found.lone] == [("failed", "suite.Time", "time_sort")]
    words = {item.words for item in found.findings}
    assert words == {
        "samples of one process: at least 6 rounds are needed",
        "measured once a side: at least 6 times are needed to tell a change from scatter",
    }
    assert found.result == "regression"


def test_a_number_that_is_too_large_is_none(tmp_path: Path) -> None:
    """It would be no number in strict JSON."""
    write_result(tmp_path / "results", 1, {"m.track_x": ([], [1.5e308])})
    write_catalogue(tmp_path / "results", {"m.track_x": {"type": "track", "unit": "min"}})
    (found,) = sides.read_side(tmp_path / "results", "box", commit(1)).rows
    assert (found.status, found.processes) == ("failed", [])


def test_evidence_that_cannot_be_read_is_none(store: Path) -> None:
    """asv's one number is left."""
    (store.parent / "evidence" / "box" / f"{commit(1)[:8]}-env.json").write_text('{"schema": 1, "runs": {"r": 3}}')
    found = rows(sides.read_side(store, "box", commit(1)))["cpu.openvino.ResNet50(int8, 1)", "time_forward"]
    assert [process.value for process in found.processes] == [0.010]


# ------------------------------------------------------------------ which file a name means


def test_a_result_file_is_a_side(store: Path) -> None:
    """Wherever it lies, with the evidence beside its results folder."""
    path = store / "box" / f"{commit(2)[:8]}-env.json"
    side = sides.read_side(store, "nobody", str(path))
    assert side.commit == commit(2)
    assert len(side.rows[0].processes) == 8


def test_two_machines_are_not_comparable(store: Path) -> None:
    """Two files of two machines: no percentage, and the reason."""
    other = write_result(store, 2, {"m.time_x": ([], [1.0])}, machine="other", environment="env")
    told = sides.read(store, "box", commit(1), str(other))
    found = judge.compare(told)
    assert found.incomparable == ["machine differs: box and other"]
    assert found.result == "could not judge"


def test_an_environment_is_its_newest_commit(store: Path) -> None:
    """By asv's own name of it."""
    assert sides.read_side(store, "box", "env").commit == commit(2)


def test_versions_are_of_the_newest_commit_that_has_both(store: Path) -> None:
    """Otherwise the code would be compared as well; what the sweep was told is the pin."""
    for number, version in ((1, "2025.0.0"), (1, "2026.1.0"), (2, "2026.1.0")):
        environment = f"virtualenv-py3.11-openvino{version}"
        write_result(store, number, {"m.time_x": ([], [1.0])}, environment=environment)
        told = {"library": "openvino", "version": version}
        write_evidence(store, number, {}, environment=environment, swept=told, versions={"openvino": version})
    told = sides.read(store, "box", "openvino==2025.0.0", "openvino==2026.1.0")
    assert (told.base.commit, told.head.commit) == (commit(1), commit(1))
    assert (told.base.pins, told.head.pins) == ({"openvino": "2025.0.0"}, {"openvino": "2026.1.0"})
    assert judge.compare(told).incomparable == []


def test_branches_and_pins_are_git_s(tmp_path: Path, store: Path) -> None:
    """A branch is the commit it points to; the pins are those of that commit."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.example", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q", "-b", "main")
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "cpu.txt").write_text("# pins\nOpenVINO==2026.4.1  # runtime\nnumpy==2.4.6\n")
    git("add", "requirements")
    git("commit", "-q", "-m", "pins")
    git("branch", "change")
    name = git("rev-parse", "HEAD")
    (old,) = (store / "box").glob(f"{commit(2)[:8]}-*.json")
    old.write_text(old.read_text().replace(commit(2), name))
    side = sides.read_side(store, "box", "change")
    assert side.commit == name
    assert side.pins == {"openvino": "2026.4.1", "numpy": "2.4.6"}


@pytest.mark.parametrize(
    ("machine", "which", "environment", "words"),
    [
        ("box", "nothing", None, "there are no results of 'nothing' on box: name a commit, branch or tag"),
        ("box", "--help", None, "there are no results of '--help' on box"),
        ("box", "openvino==1", None, "there are no results of 'openvino==1' on box"),
        ("box", "0000", None, "'0000' could be several commits"),
        ("box", commit(1), "other", "in the environment other on box"),
        ("nobody", commit(1), None, "there are no results of the machine nobody"),
        ("box", "benchmarks.json", None, "is not an asv result file"),
    ],
)
def test_what_cannot_be_found_is_told(
    store: Path, monkeypatch: pytest.MonkeyPatch, machine: str, which: str, environment: str | None, words: str
) -> None:
    """One line that says what to name."""
    monkeypatch.chdir(store)
    with pytest.raises(SideUnknown, match=words.replace("(", r"\(")):
        sides.read_side(store, machine, which, environment=environment)


def test_several_environments_need_a_choice(store: Path) -> None:
    """The short name is enough; of two commits the environment that both have is meant."""
    write_result(store, 2, {"m.time_x": ([], [1.0])}, environment="virtualenv-py3.11-STACKipex")
    with pytest.raises(SideUnknown, match=r"several environments \(env, STACKipex\): choose one with --environment"):
        sides.read_side(store, "box", commit(2))
    assert sides.read_side(store, "box", commit(2), environment="STACKipex").rows[0].cell == "m"
    assert sides.read(store, "box", commit(1), commit(2)).head.environment == "env"


@pytest.mark.parametrize(
    ("content", "words"),
    [("", "is not an asv result file"), ('{"commit_hash": "a", ', "is not valid JSON"), ("[]", "is not an asv")],
)
def test_a_file_that_is_no_result_is_told(tmp_path: Path, content: str, words: str) -> None:
    """Empty, half-written, something else."""
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(SideUnknown, match=words):
        sides.read_side(tmp_path, "box", str(path))


def test_a_store_from_the_results_branch_has_the_same_sides(store: Path) -> None:
    """There each file's name ends in a hash, and a commit that was measured again has a further file."""
    expected = sides.read_side(store, "box", commit(1))
    for path in [*store.glob("box/0*.json"), *store.parent.glob("evidence/box/*.json")]:
        path.rename(path.with_name(f"{path.stem}.0123456789abcdef.json"))
    assert sides.read_side(store, "box", commit(1)) == expected
    again = {"control.Machine.time_matrix_product": ([], [0.2])}
    path = write_result(store, 1, again, environment="env", file=f"{commit(1)[:8]}-env.fedcba9876543210.json")
    content = json.loads(path.read_text())
    for row in content["results"].values():
        row[3] += 1000
    path.write_text(json.dumps(content))
    before, after = rows(expected), rows(sides.read_side(store, "box", commit(1)))
    control = ("control.Machine", "time_matrix_product")
    assert [process.value for process in after.pop(control).processes] == [0.2]
    before.pop(control)
    assert after == before
