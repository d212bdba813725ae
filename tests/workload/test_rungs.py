"""The ladder as data: what a rung adds, and what is told of a file that makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from machmeter.errors import BadSetting, UnknownName
from machmeter.measure import rung_configuration
from machmeter.workload import rungs
from machmeter.workload.launch import Launch


def write(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.toml").write_text(text)
    monkeypatch.setenv(rungs.VARIABLE, str(tmp_path / "mine.toml"))


def test_every_rung_of_the_project_is_possible_somewhere() -> None:
    known = rungs.load()
    assert list(known)[:5] == ["eager", "batch-8", "channels-last", "bf16", "tcmalloc"]
    for rung in known.values():
        rung_configuration.configuration(rung, known, "ResNet50")


def test_a_rung_keeps_what_is_below_it() -> None:
    known = rungs.load()
    found = rung_configuration.configuration(known["two-instances"], known, "ResNet50")
    assert found.cell.key() == "cpu.eager.ResNet50(bf16, channels_last, 8)"
    assert found.launch == Launch(allocator="tcmalloc", launcher="run_cpu", instances=2)


def test_another_backend_leaves_the_options_of_the_rung_below_behind() -> None:
    known = rungs.load()
    assert rung_configuration.configuration(known["compile"], known, "ViTB16").cell.key() == (
        "cpu.inductor.ViTB16(bf16, compile, 8)"
    )


def test_a_user_combines_rungs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '[mine]\ntitle = "batch 32"\non = "two-instances"\nadds = { batch = 32, huge_pages = true, seconds = 20 }\n'
    write(tmp_path, text, monkeypatch)
    known = rungs.load()
    found = rung_configuration.configuration(known["mine"], known, "ResNet50")
    assert found.cell.batch == 32
    assert found.launch == Launch(allocator="tcmalloc", huge_pages=True, launcher="run_cpu", instances=2)
    assert found.seconds == 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a]\non = 'b'\n", "rung 'a' stands on 'b', which is not a rung"),
        ("[a]\non = 'b'\n[b]\non = 'a'\n", "rung 'a' stands on itself: a on b"),
        ("[a]\nadds = { batch = 8 }\n", "rung 'a' does not say its backend, precision, nor does any below it"),
        ("[a]\nadds = { colour = 'red' }\n", "adds colour: it can add allocator, backend, batch"),
        ("[a]\nwhat = 1\n", "must be a table with `title`, `on` and `adds`"),
        ("['A b']\n", "a name is of small letters, digits and hyphens"),
        ("[a]\non = 'eager'\nadds = { batch = 'many' }\n", "batch is 'many', it must be of type int"),
        ("[a]\non = 'eager'\nadds = { batch = 0 }\n", "batch is 0, it must be 1 or more"),
        ("[a]\non = 'eager'\nadds = { seconds = -1 }\n", "seconds is -1, it must be 1 or more"),
        ("[a\n", "cannot read rungs from"),
    ],
)
def test_a_file_that_makes_no_sense(text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, text, monkeypatch)
    with pytest.raises(BadSetting, match=message):
        rungs.load()


@pytest.mark.parametrize(
    ("adds", "message"),
    [
        ("{ precision = 'int4' }", "eager has no precision 'int4', it has fp32, bf16"),
        ("{ precision = 'default' }", "eager has no precision 'default'"),
        ("{ options = { layout = 'diagonal' } }", "layout is 'diagonal', eager has contiguous, channels_last"),
        (
            "{ backend = 'openvino', options = { layout = 'contiguous' } }",
            "openvino takes no option, and is given the option layout",
        ),
        ("{ instances = 0 }", "rung 'a': instances is 0"),
    ],
)
def test_a_rung_that_no_backend_has(adds: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, f"[a]\non = 'eager'\nadds = {adds}\n", monkeypatch)
    known = rungs.load()
    with pytest.raises(BadSetting, match=message):
        rung_configuration.configuration(known["a"], known, "ResNet50")


def test_unknown_names_are_told_with_the_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownName, match="unknown rung 'nothing': known rungs are eager, batch-8"):
        rungs.get("nothing", rungs.load())
    write(tmp_path, "[a]\non = 'eager'\nadds = { backend = 'caffe' }\n", monkeypatch)
    known = rungs.load()
    with pytest.raises(UnknownName, match="unknown backend 'caffe'"):
        rung_configuration.configuration(known["a"], known, "ResNet50")
