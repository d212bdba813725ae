"""The table of a ladder: gains, gaps, disturbed and redefined rungs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helpers import evidence
from helpers.ladders import record
from machmeter import recommend
from machmeter.tables import ladder_table
from machmeter.tables.cells_table import Table
from machmeter.workload import launch
from machmeter.workload.launch import Launch
from machmeter.workload.rungs import Rung


def write(folder: Path, environment: str, cells: dict[str, dict[str, Any]], cpu: str = "Xeon") -> None:
    """Write the evidence of rungs on one machine."""
    rungs = evidence.single({f"tuning.ResNet50({name})": found for name, found in cells.items()})
    host = {"cpu": {"model": cpu}, "thread_budget": 2}
    versions = {"torch": environment}
    evidence.write(folder / "results", rungs, machine="box", environment=environment, host=host, versions=versions)


STEPS = [
    Rung(name="first", title="first", on=None, adds={"backend": "eager", "precision": "fp32", "batch": 1}),
    Rung(name="second", title="second", on="first"),
    Rung(name="third", title="third", on="second"),
]


def test_gains_over_the_rung_below_and_over_the_first(tmp_path: Path) -> None:
    write(tmp_path, "cpu", {"first": record(20.0), "second": record(50.0), "third": record(40.0)})
    rows = ladder_table.build(tmp_path / "results", "box", "ResNet50", STEPS).rows
    assert [(row.times_below, row.times_first, row.slower) for row in rows] == [
        (None, 1.0, False),
        (2.5, 2.5, False),
        (0.8, 2.0, True),
    ]


def test_a_missing_rung_below_gives_no_ratio(tmp_path: Path) -> None:
    write(tmp_path, "cpu", {"first": record(20.0), "second": record(None, reason="no"), "third": record(40.0)})
    rows = ladder_table.build(tmp_path / "results", "box", "ResNet50", STEPS).rows
    assert [(row.status, row.times_below, row.times_first) for row in rows] == [
        ("ok", None, 1.0),
        ("n/a", None, None),
        ("ok", None, 2.0),
    ]


def test_what_one_stack_lacks_does_not_hide_what_another_measured(tmp_path: Path) -> None:
    write(tmp_path, "ipex", {"second": record(50.0)})
    write(tmp_path, "cpu", {"first": record(20.0), "second": record(None, reason="no IPEX", started_at=2.0)})
    rows = ladder_table.build(tmp_path / "results", "box", "ResNet50", STEPS).rows
    assert (rows[1].status, rows[1].images_per_second, rows[1].torch) == ("ok", 50.0, "ipex")


def test_a_rung_can_be_recommended_with_the_command_that_starts_it(tmp_path: Path) -> None:
    """A faster rung wins over cells, and the command names what its processes were really given."""
    worker = {
        "proof": {
            "huge_page_bytes": 1,
            "memory_binding": {"bound": False},
            "cpus": [0],
            "variables": {
                "LD_PRELOAD": "/lib/libtcmalloc.so.4",
                "THP_MEM_ALLOC_ENABLE": "1",
                "NUMPY_MADVISE_HUGEPAGE": "0",
            },
        },
        "threads": 1,
        "artifact": {"kind": "weights", "key": "k"},
    }
    settings = {
        "backend": "eager",
        "precision": "bf16",
        "options": {"layout": "channels_last"},
        "batch": 8,
        "allocator": "tcmalloc",
        "huge_pages": True,
        "launcher": "run_cpu",
        "instances": 2,
    }
    second = {**worker, "proof": {**worker["proof"], "cpus": [1]}}
    write(
        tmp_path, "cpu", {"first": record(20.0), "second": record(50.0, settings=settings, instances=[worker, second])}
    )
    steps = [STEPS[0], Rung(name="second", title="second", on="first", adds=settings)]
    built = ladder_table.build(tmp_path / "results", "box", "ResNet50", steps)
    empty = Table(machine="box", host=None, rows=(), notes=())
    best = recommend.judge(recommend.measured(empty, built), []).recommended
    assert (best.name, best.images_per_second, best.threads) == ("rung second (eager bf16) batch 8", 50.0, 1)
    assert best.launch == (
        "LD_PRELOAD=/lib/libtcmalloc.so.4 THP_MEM_ALLOC_ENABLE=1 NUMPY_MADVISE_HUGEPAGE=0 "
        "python -m torch.backends.xeon.run_cpu --ninstances 2 --ncores-per-instance 1 --core-list 0,1 "
        "--use-default-allocator program.py"
    )


def test_instances_without_a_launcher_are_bound_by_taskset() -> None:
    assert launch.shell(Launch(instances=2), [[0], [1]], {}) == (
        "taskset -c 0 python program.py & taskset -c 1 python program.py"
    )
    assert launch.shell(Launch(), [[0, 1]], {}) == ""


def test_a_disturbed_rung_has_no_gain_and_gives_none(tmp_path: Path) -> None:
    """A busy machine must not make the next step look twenty times faster."""
    write(tmp_path, "cpu", {"first": record(20.0), "second": record(2.0, disturbed_share=0.78), "third": record(40.0)})
    rows = ladder_table.build(tmp_path / "results", "box", "ResNet50", STEPS).rows
    assert [(row.images_per_second, row.times_below, row.times_first, row.slower) for row in rows] == [
        (20.0, None, 1.0, False),
        (2.0, None, None, False),
        (40.0, None, 2.0, False),
    ]
    assert rows[1].reason == "disturbed: other programs had 78 % of the CPUs while it was timed"


def test_a_newer_disturbed_measurement_does_not_replace_an_undisturbed_one(tmp_path: Path) -> None:
    write(tmp_path, "a", {"first": record(20.0, disturbed_share=0.01)})
    write(tmp_path, "b", {"first": record(2.0, disturbed_share=0.78, started_at=9.0)})
    assert ladder_table.build(tmp_path / "results", "box", "ResNet50", STEPS).rows[0].images_per_second == 20.0


def test_a_rung_that_was_defined_anew_was_not_measured_yet(tmp_path: Path) -> None:
    write(tmp_path, "cpu", {"first": record(20.0)})
    anew = [Rung(name="first", title="first", on=None, adds={"backend": "eager", "precision": "fp32", "batch": 32})]
    assert ladder_table.build(tmp_path / "results", "box", "ResNet50", anew).rows[0].status == "not run"


def test_rungs_of_different_cpus_are_not_compared_without_a_word(tmp_path: Path) -> None:
    write(tmp_path, "a", {"first": record(20.0)}, cpu="Xeon")
    write(tmp_path, "b", {"second": record(50.0)}, cpu="EPYC")
    (note,) = ladder_table.build(tmp_path / "results", "box", "ResNet50", STEPS).notes
    assert "different CPU models" in note
