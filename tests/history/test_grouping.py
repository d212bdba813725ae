"""Commits, environments, machines, versions and names: what belongs to one series and in which order."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from helpers.asv_files import DAY, result, write
from helpers.histories import GOOD, NAN
from machmeter.history.read import read


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=n", "-c", "user.email=n@example.invalid", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def make_repository(folder: Path, commits: int, date: int = 1_600_000_000) -> list[str]:
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    stream = "".join(
        f"commit refs/heads/main\nmark :{number}\ncommitter n <n@example.invalid> {date + number} +0000\ndata 1\nx\n"
        for number in range(1, commits + 1)
    )
    subprocess.run(["git", "-C", str(folder), "fast-import", "--quiet"], input=stream.encode(), check=True)
    return git(folder, "rev-list", "--reverse", "main").split()


def test_the_repository_orders_commits_and_unknown_ones_stand_by_their_date(tmp_path: Path) -> None:
    """R3, R12: dates that contradict git's order do not matter; a commit that is gone is shown and counted."""
    first, second, third = make_repository(tmp_path / "repository", 3)
    git(tmp_path / "repository", "tag", "v1", second)
    results = tmp_path / "results"
    start = 1_600_000_000_000
    for name, day in ((first, 5), (second, 2), (third, 9), ("e" * 40, 7), ("d" * 40, 20)):
        write(results, name, GOOD, date=start + day * DAY)
    history = read(results, git=tmp_path / "repository")
    assert [commit.hash for commit in history.commits] == [first, second, "e" * 40, third, "d" * 40]
    assert [commit.orphan for commit in history.commits] == [False, False, True, False, True]
    assert [commit.position for commit in history.commits] == [0, 1, None, 2, None]
    assert [commit.tags for commit in history.commits] == [(), ("v1",), (), (), ()]
    assert (history.orphans, history.has_repository) == (2, True)


def test_tags_take_one_call_of_git_however_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R15: 400 tags."""
    commits = make_repository(tmp_path / "repository", 400)
    lines = "".join(f"create refs/tags/v{number:03} {name}\n" for number, name in enumerate(commits))
    subprocess.run(
        ["git", "-C", str(tmp_path / "repository"), "update-ref", "--stdin"], input=lines.encode(), check=True
    )
    write(tmp_path / "results", commits[7], GOOD)
    calls = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *given, **named: (calls.append(given), run(*given, **named))[1])
    history = read(tmp_path / "results", git=tmp_path / "repository")
    assert history.commits[0].tags == ("v007",)
    assert len(calls) == 1


def test_without_a_usable_repository_dates_decide(tmp_path: Path) -> None:
    write(tmp_path / "results", 1, GOOD)
    (tmp_path / "empty").mkdir()
    history = read(tmp_path / "results", git=tmp_path / "absent")
    assert (history.orphans, history.has_repository) == (0, False)


def test_environments_that_asv_writes_alike_are_kept_apart(tmp_path: Path) -> None:
    """R5: "a/b" and "a?b" have one name and one file in asv; names over 128 characters have a file of their hash."""
    long = "virtualenv-py3.11-" + "-".join(f"package{number}" for number in range(20))
    write(tmp_path, 1, GOOD, environment="env-x_y", env_vars={"FLAGS": "x/y"})
    write(tmp_path, 2, GOOD, environment="env-x_y", env_vars={"FLAGS": "x?y"})
    write(tmp_path, 3, GOOD, environment=long, file="03030303-env-0123456789abcdef0123456789abcdef.json")
    write(tmp_path, 3, GOOD, environment=long + "2", file="03030303-env-1123456789abcdef0123456789abcdef.json")
    history = read(tmp_path)
    assert len(history.series) == 4
    assert len({item.key for item in history.series}) == 4
    assert len({item.slug for item in history.environments}) == 4
    labels = [item.label for item in history.environments]
    assert {"FLAGS x/y", "FLAGS x?y", long, long + "2"} == set(labels)
    assert all(set(item.slug) <= set(SAFE) and len(item.slug) <= 70 for item in history.environments)


SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"


@pytest.mark.parametrize(
    "name", ["../../etc", "<img src=x onerror=1>", "a/b?c#d", "..", "Ünïcode", "", "CON", "x" * 300]
)
def test_any_name_makes_a_safe_file_name_of_its_own(tmp_path: Path, name: str) -> None:
    """R5, R13."""
    write(tmp_path, 1, {f"{name}.time_x": result([1.0, 2.0], [[repr(name), "'other'"]])}, machine=name, folder="f")
    write(tmp_path, 1, {f"{name}.time_x": result([1.0])}, machine=name + "_", folder="g", environment=name)
    history = read(tmp_path)
    slugs = [item.slug for some in (history.machines, history.environments, history.benchmarks) for item in some]
    assert len(set(slugs)) == 5
    for slug in slugs:
        assert set(slug) <= set(SAFE)
        assert slug.strip(".")


def test_parameters_that_read_alike_are_all_kept(tmp_path: Path) -> None:
    write(tmp_path, 1, {"m.time_x": result([1.0, 2.0, 3.0], [["<f>", "<f>", "'<f>'"]])})
    assert [(item.params, item.value.tolist()) for item in read(tmp_path).series] == [
        (("<f>",), [1.0]),
        (("<f> #2",), [2.0]),
        (("'<f>'",), [3.0]),
    ]


def test_two_machines_with_one_name_are_two(tmp_path: Path) -> None:
    write(tmp_path, 1, GOOD, machine="same", folder="a")
    write(tmp_path, 1, GOOD, machine="same", folder="b")
    history = read(tmp_path)
    assert [(item.name, item.folder) for item in history.machines] == [("same", "a"), ("same", "b")]
    assert len({item.slug for item in history.machines}) == 2
    assert len(history.series) == 2


def test_a_machine_is_known_by_what_there_is_of_it(tmp_path: Path) -> None:
    """R6: without machine.json by the files' own facts, and without those by its folder."""
    write(tmp_path, 1, GOOD, machine="noted")
    (tmp_path / "noted" / "machine.json").write_text('{"machine": "noted", "cpu": "Noted CPU", "version": 1}')
    write(tmp_path, 1, GOOD, machine="bare", params={})
    write(tmp_path, 1, GOOD, machine="broken", params={"machine": "broken", "ram": "5"})
    (tmp_path / "broken" / "machine.json").write_text("[]")
    history = read(tmp_path)
    assert {item.name: dict(item.facts) for item in history.machines} == {
        "bare": {},
        "broken": {"ram": "5"},
        "noted": {"cpu": "Noted CPU", "os": "Linux 1"},
    }
    assert [(item.path, item.reason) for item in history.left_out] == [
        ("broken/machine.json", "is not asv's note of a machine")
    ]


def test_points_of_older_versions_are_kept_and_marked(tmp_path: Path) -> None:
    """R14."""
    for number, version in ((1, "old"), (2, "old"), (3, "new")):
        write(tmp_path, number, {"m.time_x": result([1.0 * number], version=version)})
    (series,) = read(tmp_path).series
    assert series.benchmark.versions == ("old", "new")
    assert series.version.tolist() == [0, 0, 1]
    assert series.older.tolist() == [True, True, False]
    described = {"m.time_x": {"name": "m.time_x", "version": "next"}, "version": 2}
    (tmp_path / "benchmarks.json").write_text(json.dumps(described))
    (series,) = read(tmp_path).series
    assert series.benchmark.versions == ("old", "new", "next")
    assert series.older.tolist() == [True, True, True]


def test_the_newer_of_two_files_of_one_commit_counts(tmp_path: Path) -> None:
    params = [["1", "2"]]
    write(tmp_path, 1, {"m.time_x": result([1.0, 2.0], params, started=1000)}, file="a.json")
    write(tmp_path, 1, {"m.time_x": result([3.0, NAN], params, started=2000)}, file="0.json")
    history = read(tmp_path)
    assert [item.value.tolist() for item in history.series] == [[3.0], [2.0]]
    assert {(item.path, item.reason) for item in history.left_out} == {
        ("here/0.json", "1 results: another file has newer ones of this commit"),
        ("here/a.json", "1 results: another file has newer ones of this commit"),
    }
