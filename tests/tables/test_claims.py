"""Published claims, judged by what was measured: a claim of which a number is missing is not judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from machmeter import errors
from machmeter.tables import claims
from machmeter.tables.cells_table import Row
from machmeter.tables.claims import Claim, Side
from machmeter.tables.ladder_table import LadderRow

FAST, SLOW = Side(backend="cuda.tensorrt", precision="fp16"), Side(backend="cuda.eager", precision="fp16")


def rows(side: Side, speeds: dict[int, float], options: str = "", **changes: str) -> list[Row]:
    named = {"model": "ResNet50", "backend": side.backend, "precision": side.precision, "options": options}
    return [
        Row(**(named | {"status": "ok"} | changes), batch=batch, images_per_second=speed)  # type: ignore[arg-type]
        for batch, speed in speeds.items()
    ]


def answer(kind: str, of: dict[int, float], over: dict[int, float] | None = None) -> tuple[str, str]:
    claim = Claim(
        name="x", text="", source="", kind=kind, of=FAST, over=SLOW if over is not None else None, batches=(1, 8, 32)
    )
    (found,) = claims.judge([claim], "ResNet50", rows(FAST, of) + rows(SLOW, over or {}))
    return found.holds, found.here


FLAT = {1: 100.0, 8: 100.0, 32: 100.0}


@pytest.mark.parametrize(
    ("kind", "of", "holds"),
    [
        ("faster", {1: 200, 8: 300, 32: 400}, "yes"),
        ("faster", {1: 200, 8: 105, 32: 400}, "no"),  # within noise at batch 8
        ("slower", {1: 50, 8: 60, 32: 80}, "yes"),
        ("slower", {1: 50, 8: 60, 32: 95}, "no"),
        ("alike", {1: 95, 8: 100, 32: 109}, "yes"),
        ("alike", {1: 95, 8: 100, 32: 120}, "no"),
        ("lead-grows", {1: 200, 8: 300, 32: 400}, "yes"),
        ("lead-grows", {1: 200, 8: 400, 32: 300}, "no"),  # it falls back
        ("lead-grows", {1: 200, 8: 205, 32: 210}, "no"),  # no more than noise
        ("lead-grows", {1: 200, 8: 195, 32: 300}, "yes"),  # a dip within noise
    ],
)
def test_comparisons(kind: str, of: dict[int, float], holds: str) -> None:
    assert answer(kind, of, FLAT)[0] == holds


def test_scaling_is_of_the_side_itself() -> None:
    assert answer("scales", {1: 100, 8: 400, 32: 900}) == (
        "yes",
        "batch 1: 100 images/s; batch 8: 400 images/s; batch 32: 900 images/s",
    )
    assert answer("scales", {1: 100, 8: 100, 32: 101})[0] == "no"


def test_the_numbers_are_shown() -> None:
    assert answer("faster", {1: 200, 8: 300, 32: 400}, FLAT)[1] == (
        "batch 1: 2.00 × (200 to 100 images/s); batch 8: 3.00 × (300 to 100 images/s); "
        "batch 32: 4.00 × (400 to 100 images/s)"
    )


def test_a_missing_number_is_named_and_nothing_is_invented() -> None:
    claim = Claim(name="x", text="", source="", kind="faster", of=FAST, over=SLOW, batches=(1, 8))
    found = rows(FAST, {1: 200.0}) + rows(FAST, {8: 1.0}, status="n/a", reason="no NVIDIA driver")
    (only,) = claims.judge([claim], "ResNet50", found + rows(SLOW, {1: 100.0}))
    assert only.holds == "cannot say"
    assert only.missing == ("cuda.tensorrt fp16 batch 8 (n/a: no NVIDIA driver)", "cuda.eager fp16 batch 8")
    assert only.here == "batch 1: 2.00 × (200 to 100 images/s)"


def test_a_side_stands_for_its_fastest_cell_of_this_model() -> None:
    claim = Claim(name="x", text="", source="", kind="faster", of=FAST, over=SLOW, batches=(1,))
    slow = rows(SLOW, {1: 100.0}, options="contiguous") + rows(SLOW, {1: 300.0}, options="channels_last")
    other = rows(FAST, {1: 9000.0}, model="ViTB16")
    (found,) = claims.judge([claim], "ResNet50", [*rows(FAST, {1: 200.0}), *slow, *other])
    assert (found.holds, found.here) == ("no", "batch 1: 0.67 × (200 to 300 images/s)")


def rung(name: str, speed: float, on: str | None, times: float | None, status: str = "ok") -> LadderRow:
    return LadderRow(rung=name, title=name, on=on, status=status, images_per_second=speed, times_below=times)  # type: ignore[arg-type]


def test_the_ladder_is_judged_by_its_fastest_rung_and_its_steps() -> None:
    total, steps, _ = (claim for claim in claims.load() if claim.kind.startswith("ladder"))
    ladder = [
        rung("eager", 22.8, None, None),
        rung("batch-8", 20.0, "eager", 0.88),
        rung("int8", 482.0, "batch-8", 24.1),
    ]
    first, second = claims.judge([total, steps], "ResNet50", [], ladder)
    assert (first.holds, first.here) == ("yes", "22.8 to 482.0 images/s (int8), 21.1 times, over 3 rungs")
    assert (second.holds, second.here) == ("no", "1 of 2 steps gain; slower: batch-8 0.88 ×")
    short = claims.judge([total], "ResNet50", [], [*ladder[:2], rung("int8", 200.0, "batch-8", 10.0)])
    assert short[0].holds == "no"
    for unclimbed in ([], ladder[:1], [rung("eager", 0.0, None, None, "failed"), ladder[1]]):
        assert claims.judge([total], "ResNet50", [], unclimbed)[0].missing == ("the ladder (machmeter ladder)",)


def test_our_claims_are_data_that_can_be_read() -> None:
    known = claims.load()
    assert [claim.kind for claim in known] == [
        "faster", "lead-grows", "faster", "slower", "scales", "alike", "ladder", "ladder-steps",
        "ladder",
    ]  # fmt: skip
    assert all(claim.text and claim.source for claim in known)
    assert [claim.name for claim in known if claim.models != ("ResNet50",)] == ["ladder-total-vit"]
    assert [found.claim.name for found in claims.judge(known, "ViTB16", [])] == ["ladder-total-vit"]
    assert claims.judge(known, "EfficientNetLite0", []) == ()  # nobody claimed anything of that model


@pytest.mark.parametrize(
    "text",
    [
        "[x]\ntext=''\nsource=''\nkind='better'\n",
        "[x]\ntext=''\nsource=''\nkind='faster'\nbatches=[1]\nof={backend='a',precision='b'}\n",
        "[x]\ntext=''\nsource=''\nkind='ladder'\n",
        "[x]\nunknown=1\n",
        "[x",
    ],
)
def test_a_file_that_holds_no_claims_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(text)
    with pytest.raises(errors.BadSetting, match="is not a file of claims"):
        claims.load(path)


def test_claims_about_a_gpu_are_not_for_a_machine_without_one() -> None:
    known = claims.load()
    on_cpu = rows(Side(backend="eager", precision="fp32"), FLAT)
    without = on_cpu + rows(FAST, FLAT, status="n/a", reason="no NVIDIA driver")
    names = {claim.name for claim in claims.about_here(known, without)}
    assert names == {"ladder-total", "ladder-steps", "ladder-total-vit"}
    with_one = on_cpu + rows(FAST, FLAT, status="failed", reason="out of memory")
    assert claims.about_here(known, with_one) == known
