"""Pulling: what others measured comes, what is here stays, and the newest value counts."""

from __future__ import annotations

import json
from pathlib import Path

from helpers import asv_files
from helpers import git_remotes as branches
from helpers.git_remotes import Project
from helpers.results_branch import STEM, pushed, put, sorted_files
from machmeter.history.read import read
from machmeter.store import evidence
from machmeter.store import values as cell_values
from machmeter.store.columns import OK


def test_the_first_run_has_nothing_to_pull(project: Project) -> None:
    assert project.command("pull", "--if-any") == (
        0,
        "'origin' has no branch 'results' yet: 'machmeter results push' makes it\n",
    )


def test_a_pull_brings_what_others_measured_and_keeps_what_is_here(project: Project, other: Project) -> None:
    other.measure(1, value=1.0)
    other.measure(2, "there", benchmarks=("time_there",))
    pushed(other)
    project.measure(1, value=2.0, started=1_700_000_100_000)
    mine = (project.results / f"here/{STEM}.json").read_bytes()
    code, output = project.command("pull")
    assert code == 0, output
    assert (project.results / f"here/{STEM}.json").read_bytes() == mine
    assert len(list(project.results.glob(f"here/{STEM}*.json"))) == 2
    assert (project.results / "there/machine.json").is_file()
    assert "gained 1 benchmark\n" in output
    assert sorted(json.loads((project.results / "benchmarks.json").read_text())) == ["time_a", "time_there", "version"]
    assert project.command("pull")[1].startswith("pulled 0 files")
    assert project.command("verify", "--folder", str(project.folder))[0] == 0


def test_what_was_pushed_from_here_is_not_pulled_again(project: Project) -> None:
    project.measure(1, run="r1")
    project.measure(1, run="r2")
    pushed(project)
    before = sorted_files(project.folder)
    assert project.command("pull")[1] == "pulled 0 files from the branch results of origin; 3 were here\n"
    assert sorted_files(project.folder) == before


def test_a_pulled_store_can_be_pushed_again(project: Project, other: Project) -> None:
    other.measure(1)
    pushed(other)
    assert project.command("pull")[0] == 0
    assert pushed(project).startswith("nothing to push")


def test_a_machine_whose_note_differs_keeps_the_local_one(project: Project, other: Project) -> None:
    other.measure(1)
    pushed(other)
    project.measure(1)
    note = project.results / "here/machine.json"
    note.write_text(note.read_text().replace("Some CPU", "Other CPU"))
    code, output = project.command("pull")
    assert (code, f"kept: {note} differs from that of the branch" in output) == (0, True)
    assert "Other CPU" in note.read_text()


def test_a_pull_leaves_out_what_is_damaged_and_brings_the_rest(project: Project, other: Project, remote: Path) -> None:
    other.measure(1)
    other.measure(2)
    pushed(other)
    damaged = next(path for path in branches.runs(remote) if path.startswith(f"results/here/{STEM}"))
    put(other, remote, damaged, "{")
    code, output = project.command("pull")
    assert (code, f"{damaged} on the branch was changed" in output) == (37, True)
    assert not (project.folder / damaged).exists()
    assert len(list(project.results.glob("here/*-env.*.json"))) == 1


def test_a_pull_into_another_folder(project: Project, tmp_path: Path) -> None:
    project.measure(1)
    pushed(project)
    code, output = project.command("pull", "--output", str(tmp_path / "out"))
    assert (code, output) == (0, "pulled 4 files from the branch results of origin\n")
    assert len(list((tmp_path / "out").rglob("*.json"))) == 4


def test_the_newest_value_of_each_benchmark_counts(tmp_path: Path) -> None:
    """Two files of one commit: which of them is newer differs from benchmark to benchmark."""
    early, late = 1_700_000_000_000, 1_700_000_900_000
    one = {"b.time_a": asv_files.result([1.0], started=late), "b.time_b": asv_files.result([1.0], started=early)}
    two = {"b.time_a": asv_files.result([2.0], started=early), "b.time_b": asv_files.result([2.0], started=late + 1)}
    asv_files.write(tmp_path, 1, one, file=f"{STEM}.0000000000000001.json")
    asv_files.write(tmp_path, 1, two, file=f"{STEM}.0000000000000002.json")
    history = read(tmp_path)
    values = {series.benchmark.name: series.value.tolist() for series in history.series}
    assert values == {"b.time_a": [1.0], "b.time_b": [2.0]}
    assert len(history.runs) == 1
    (file,), _ = cell_values.read_all(tmp_path)
    assert {name: value.number for (name, _), value in file.values.items()} == {"b.time_a": 1.0, "b.time_b": 2.0}


def test_states_of_one_growing_file_are_no_competing_measurements(tmp_path: Path) -> None:
    """asv's second file repeats the first: only what was measured again gave way to something newer."""
    same = asv_files.result([1.0], started=1_700_000_000_000)
    again = asv_files.result([3.0], started=1_700_000_900_000)
    asv_files.write(tmp_path, 1, {"time_a": same, "time_b": same}, file=f"{STEM}.0000000000000001.json")
    asv_files.write(tmp_path, 1, {"time_a": same, "time_b": again}, file=f"{STEM}.0000000000000002.json")
    history = read(tmp_path)
    assert [(item.path, item.reason) for item in history.left_out] == [
        (f"here/{STEM}.0000000000000001.json", "1 results: another file has newer ones of this commit")
    ]


def test_a_newer_failure_counts_and_what_was_skipped_does_not(tmp_path: Path) -> None:
    early, late = 1_700_000_000_000, 1_700_000_900_000
    first = {"time_a": asv_files.result([1.0], started=early), "time_b": asv_files.result([1.0], started=early)}
    second = {
        "time_a": asv_files.result([None], started=late),
        "time_b": asv_files.result([float("nan")], started=late),
    }
    asv_files.write(tmp_path, 1, first, file=f"{STEM}.0000000000000002.json")
    asv_files.write(tmp_path, 1, second, file=f"{STEM}.0000000000000001.json")
    series = {item.benchmark.name: item for item in read(tmp_path).series}
    assert series["time_a"].state.tolist() != [OK]
    assert (series["time_b"].state.tolist(), series["time_b"].value.tolist()) == ([OK], [1.0])
    (file,), _ = cell_values.read_all(tmp_path)
    assert {name: value.number for (name, _), value in file.values.items()} == {"time_a": None, "time_b": 1.0}


def test_evidence_in_several_files_is_read_as_one(project: Project) -> None:
    """A growing file with two runs, and beside it a pulled file with one of them and one with a third."""
    for run in ("r1", "r2"):
        project.measure(1, run=run)
    folder = project.evidence / "here"
    whole = json.loads((folder / f"{STEM}.json").read_text())
    one = {**whole, "runs": {"r1": whole["runs"]["r1"]}}
    third = {**whole, "runs": {"r3": whole["runs"]["r1"]}}
    for number, content in enumerate((one, third)):
        (folder / f"{STEM}.{number:016x}.json").write_text(json.dumps(content))
    (file,), notes = evidence.read_all(folder)
    assert (sorted(file.runs), notes) == (["r1", "r2", "r3"], [])


def test_what_was_pulled_counts_as_measured(project: Project) -> None:
    """A sweep asks for the runs at one commit in one environment; another's name may begin like it."""
    folder = project.evidence / "here"
    project.measure(1, run="r1")
    project.measure(2, run="r9")
    whole = json.loads((folder / f"{STEM}.json").read_text())
    similar = {**whole, "environment": "env.1", "runs": {"r3": whole["runs"]["r1"]}}
    pulled = {**whole, "runs": {"r2": whole["runs"]["r1"]}}
    (folder / f"{STEM}.0123456789abcdef.json").write_text(json.dumps(pulled))
    (folder / f"{STEM}.1.json").write_text(json.dumps(similar))
    assert sorted(evidence.runs_at(folder / f"{STEM}.json")) == ["r1", "r2"]
    (folder / f"{STEM}.json").unlink()
    assert sorted(evidence.runs_at(folder / f"{STEM}.json")) == ["r2"]


def test_of_two_states_of_one_run_the_later_is_read(project: Project) -> None:
    project.measure(1, run="r1")
    folder = project.evidence / "here"
    whole = json.loads((folder / f"{STEM}.json").read_text())
    early = json.loads(json.dumps(whole))
    early["runs"]["r1"]["cells"] = {}
    (folder / f"{STEM}.ffffffffffffffff.json").write_text(json.dumps(early))
    (file,), _ = evidence.read_all(folder)
    assert list(file.runs["r1"].cells) == ["a"]
