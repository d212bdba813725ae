"""The command line: bad input is one line that says what to do, with its own exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.commands import machmeter
from helpers.project import ROOT
from helpers.tables import write_evidence, write_results
from machmeter import errors
from machmeter.running import asv


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "words"),
    [
        (["bench", "--model", "ResNet5"], {}, 3, "unknown model 'ResNet5': known models are ResNet50, ViTB16"),
        (["show", "--model", "x"], {}, 3, "unknown model 'x'"),
        (["bench", "--backend", "tflite"], {}, 3, "unknown backend 'tflite': known backends are eager"),
        (["bench", "--model", "ResNet18"], {}, 3, "only for tests"),
        (["bench"], {"MACHMETER_STORE": "/dev/null/x"}, 4, "set MACHMETER_STORE to a folder you can write"),
        (["bench", "--device", "tpu"], {}, 3, "unknown device 'tpu': known devices are cpu, cuda"),
        (["bench", "--batch", "7"], {}, 6, "nothing matches: models ResNet50, backends all, batches 7"),
        (["bench", "--filter", "no such cell"], {}, 6, "nothing matches"),
        (["bench", "--filter", "("], {}, 6, "is not a regular expression"),
        (["show", "--machine", "nobody"], {}, 8, "nothing was measured on nobody"),
        (["run", "--stack", "nobody"], {}, 3, "unknown stack 'nobody': known stacks are cpu, cuda, "),
        (["run", "--stack", "minimal", "--python=same"], {}, 9, "--python is set by --stack"),
        (["run", "--stack", "cpu", "--project", "/"], {}, 9, "no asv.conf.json in /"),
        (["sweep", "tensorflow", "2.0"], {}, 3, "cannot sweep 'tensorflow': libraries with versions to sweep are"),
        (["sweep", "openvino", "2025.0.0", "--model", "ResNet18"], {}, 3, "only for tests"),
        (["sweep", "openvino", "2025.0.0", "--backend", "eager"], {}, 3, "openvino is not measured by 'eager'"),
        (["sweep", "openvino", "2025.0.0", "--batch", "7"], {}, 6, "nothing matches: models ResNet50"),
        (["sweep", "openvino", "2025.0.0", "--project", "/"], {}, 9, "no asv.conf.json in /"),
        (["versions", "tensorflow"], {}, 3, "cannot sweep 'tensorflow'"),
        (["versions", "openvino", "--machine", "nobody"], {}, 8, "no sweep of openvino over any model on nobody yet"),
        (["versions", "--project", "/"], {}, 9, "cannot read /asv.conf.json"),
        (["bench", "--backend", "null"], {}, 3, "unknown backend 'null'"),
        (["bench"], {"MACHMETER_WEIGHTS": "imaginary"}, 9, "use 'seeded' or 'pretrained'"),
        (["bench", "--project", "/"], {}, 9, "no asv.conf.json in /"),
        (["show", "--project", "/"], {}, 9, "cannot read /asv.conf.json"),
    ],
)
def test_bad_input(arguments: list[str], variables: dict[str, str], code: int, words: str) -> None:
    project = [] if "--project" in arguments else ["--project", str(ROOT)]
    done = machmeter(*arguments, *project, **variables)
    assert done.returncode == code, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("machmeter: ")
    assert words in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_full_disk_is_told_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from machmeter.running import bench

    monkeypatch.setenv("MACHMETER_STORE", str(tmp_path))
    monkeypatch.setattr(bench, "LEAST_FREE_BYTES", 1 << 62)
    with pytest.raises(errors.DiskFull, match="free some space") as caught:
        bench.check_folders(ROOT)
    assert caught.value.exit_code == 5


@pytest.mark.parametrize("text", ["[]", "{", '{"results_dir": 5}', "null", "// comment"])
def test_a_configuration_that_cannot_be_used_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "asv.conf.json").write_text(text)
    for command in ("show", "bench"):
        done = machmeter(command, "--project", str(tmp_path), MACHMETER_STORE=str(tmp_path / "store"))
        assert done.returncode == 9
        assert len(done.stderr.splitlines()) == 1


def test_results_that_cannot_be_written_are_told_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "asv.conf.json").write_text('{"results_dir": "results"}')
    (tmp_path / "evidence").write_text("a file where a folder must be")
    done = machmeter("bench", "--project", str(tmp_path), MACHMETER_STORE=str(tmp_path / "store"))
    assert done.returncode == 4
    assert "MACHMETER_STORE" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_exit_codes_are_distinct() -> None:
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.MachmeterError)
    ]
    codes = [kind.exit_code for kind in kinds if kind is not errors.MachmeterError]
    assert len(set(codes)) == len(codes) >= 8
    assert not {0, 1, 2, 130} & set(codes)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "asv.conf.json").write_text('{"results_dir": "results"}')
    write_results(
        tmp_path / "results",
        {
            "cpu.eager.ResNet50.time_forward": [[0.4567], [["'fp32'"], ["'contiguous'"], ["8"]], [[0.4567] * 20]],
            "cpu.openvino.ResNet50.time_forward": [[0.0372], [["'int8'"], ["8"]], [[0.0372] * 20]],
            "cpu.openvino.ResNet50.track_top1_agreement": [[0.984375], [["'int8'"], ["8"]], None],
        },
    )
    write_evidence(
        tmp_path / "results",
        {
            "cpu.torchao.ResNet50(int8, 8)": {"status": "n/a", "reason": "not installed: torchao", "order": 1},
            "cpu.inductor.ResNet50(fp32, compile, 8)": {"status": "failed", "reason": "crashed", "order": 2},
        },
        host={"cpu": {"model": "Test CPU", "physical_cores": 2, "features": ["avx2"]}, "thread_budget": 2},
    )
    return tmp_path


def test_show_prints_a_table_with_reasons(project: Path) -> None:
    done = machmeter("show", "--machine", "here", "--project", str(project))
    assert done.returncode == 0, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "openvino int8 8 37.20 37.20 215.1 12.28 – – 0.984 – –" in lines
    assert "eager fp32 contiguous 8 456.70 456.70 17.5 1.00 – – – – –" in lines
    assert "failed inductor fp32 compile batch 8: crashed" in lines
    assert "n/a torchao int8 batch 8: not installed: torchao" in lines


def test_a_narrow_terminal_cuts_no_number(project: Path) -> None:
    done = machmeter("show", "--machine", "here", "--project", str(project), COLUMNS="60")
    assert "215.1" in done.stdout
    assert "…" not in done.stdout


def test_json_has_the_digits_of_the_table(project: Path) -> None:
    text = machmeter("show", "--machine", "here", "--project", str(project)).stdout
    done = machmeter("show", "--machine", "here", "--json", "--project", str(project))
    rows = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))["rows"]
    assert len(rows) == 4
    for row in rows:
        if row["status"] == "ok":
            for name, digits in (("p50_ms", 2), ("p95_ms", 2), ("images_per_second", 1), ("times_eager", 2)):
                assert f"{row[name]:.{digits}f}" in text
                assert round(row[name], digits) == row[name]


def test_nothing_measured_yet(tmp_path: Path) -> None:
    (tmp_path / "asv.conf.json").write_text("{}")
    done = machmeter("show", "--project", str(tmp_path))
    assert done.returncode == 8
    assert "run 'make bench'" in done.stderr


def test_help_names_the_commands() -> None:
    done = machmeter("--help")
    assert done.returncode == 0
    for command in ("bench", "show", "recommend", "peak", "list", "host"):
        assert command in done.stdout


@pytest.mark.parametrize("attribute", ["nonsense", "=5", "repeat="])
def test_an_attribute_that_is_none_is_told(attribute: str, tmp_path: Path) -> None:
    with pytest.raises(errors.BadSetting, match="write NAME=VALUE"):
        asv.here([], tmp_path, {}, None, [attribute])
