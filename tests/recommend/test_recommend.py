"""What is recommended under which limits, and whether the program that comes with it is the measured configuration."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.commands import machmeter
from helpers.sessions import every_cell, load
from helpers.tables import write_evidence, write_results
from machmeter import backends, errors
from machmeter.machine import host
from machmeter.recommend import Candidate, as_text, at_batch, judge, parse, snippet
from machmeter.workload import models, shared_artifacts
from machmeter.workload.artifacts import Recipe, Store


def candidate(name: str, speed: float, **more: Any) -> Candidate:
    backend, precision, *options = name.split()
    facts = {"top1_agreement": 1.0, "sqnr_db": 99.0, "peak_memory_mb": 300.0}
    facts |= {key: more.pop(key) for key in facts if key in more}
    known = {"p50_ms": 8000.0 / speed, "facts": facts} | more
    return Candidate(
        name=f"{name} batch 8", model="ResNet50", backend=backend, precision=precision, options=tuple(options),
        images_per_second=speed, **{"batch": 8, **known},
    )  # fmt: skip


CANDIDATES = [
    candidate("eager fp32 contiguous", 25.0, p95_ms=330.0, peak_memory_mb=1000.0),
    candidate("openvino int8", 200.0, p95_ms=45.0, top1_agreement=0.797, sqnr_db=6.3),
    candidate("openvino bf16", 100.0, p95_ms=90.0, top1_agreement=0.875),
    candidate("openvino fp32", 50.0, p50_ms=160.0),
]


def test_the_fastest_that_keeps_to_every_limit_is_recommended() -> None:
    limits = parse({"agreement": "0.8", "latency": "200ms"})
    verdict = judge(CANDIDATES, limits)
    assert verdict.recommended.name == "openvino bf16 batch 8"
    assert verdict.runner_up is not None
    assert verdict.runner_up.name == "openvino fp32 batch 8"
    assert [(item.limit.kind, item.count, item.fastest and item.fastest.name) for item in verdict.excluded] == [
        ("agreement", 1, "openvino int8 batch 8"),
        ("latency", 1, "eager fp32 contiguous batch 8"),
    ]


def test_the_text_says_what_each_limit_cost_by_name_and_number() -> None:
    limits = parse({"agreement": "0.8", "latency": "200ms"})
    lines = as_text(judge(CANDIDATES, limits), limits, "here", "PROGRAM").splitlines()
    assert lines == [
        "ResNet50 on here, 4 measured configurations, --min-agreement 0.8, --max-latency 200ms",
        "",
        "recommended  openvino bf16 batch 8: 100.0 images/s, p95 90.00 ms, top-1 0.875, SQNR 99.0 dB, 300 MB",
        "runner-up    openvino fp32 batch 8: 50.0 images/s, p50 160.00 ms, top-1 1.000, SQNR 99.0 dB, 300 MB",
        "",
        "--min-agreement 0.8 left out 1 of 4; "
        "the fastest of them: openvino int8 batch 8, 200.0 images/s, top-1 0.797",
        "--max-latency 200ms left out 1 of 4; "
        "the fastest of them: eager fp32 contiguous batch 8, 25.0 images/s, p95 330.00 ms",
        "",
        "PROGRAM",
    ]  # fmt: skip


def test_latency_is_p95_where_there_is_one_and_the_text_says_which() -> None:
    """p50 is within 100 ms for both; p95 of the first is not, and the second has too few samples for one."""
    slow_tail, few_samples = candidate("a fp32", 100.0, p95_ms=130.0), candidate("b fp32", 90.0)
    limits = parse({"latency": "0.1s"})
    verdict = judge([slow_tail, few_samples], limits)
    assert verdict.recommended is few_samples
    assert "note: the limit on latency was applied to p50" in as_text(verdict, limits, "here", "")


def test_without_a_limit_on_agreement_the_text_says_what_that_means() -> None:
    text = as_text(judge(CANDIDATES, []), [], "here", "")
    assert "no limit on agreement was given; the recommended one gives the first class of fp32 eager on 79.7 %" in text


def test_what_was_not_measured_does_not_keep_to_a_limit() -> None:
    unknown = candidate("a fp32", 100.0, top1_agreement=None)
    assert judge([unknown, candidate("b fp32", 50.0)], parse({"agreement": "0.5"})).recommended.backend == "b"
    with pytest.raises(errors.NothingMeets, match="closest by agreement: none, as it was not measured"):
        judge([unknown], parse({"agreement": "0.5"}))


def test_limits_that_nothing_meets_are_one_line_with_what_comes_closest() -> None:
    limits = parse({"agreement": "1", "latency": "1ms", "throughput": "1000", "memory": "100MB"})
    with pytest.raises(errors.NothingMeets) as caught:
        judge(CANDIDATES, limits)
    assert str(caught.value) == (
        "none of 4 measured configurations of ResNet50 meets --min-agreement 1 and --max-latency 1ms and "
        "--min-throughput 1000 and --max-memory 100MB; closest by agreement: openvino fp32 batch 8 (top-1 1.000); "
        "closest by latency: openvino int8 batch 8 (p95 45.00 ms); closest by throughput: openvino int8 batch 8 "
        "(200.0 images/s); closest by memory: openvino int8 batch 8 (300 MB)"
    )


@pytest.mark.parametrize(
    ("kind", "text", "bound"),
    [
        ("latency", "50ms", 50.0),
        ("latency", "0.05 s", 50.0),
        ("latency", "500us", 0.5),
        ("latency", "500µs", 0.5),
        ("memory", "1GB", 1000.0),
        ("memory", "512MiB", 536.870912),
        ("memory", "1.5 GiB", 1610.612736),
        ("agreement", "0.99", 0.99),
        ("throughput", "100", 100.0),
    ],
)
def test_units(kind: Any, text: str, bound: float) -> None:
    (limit,) = parse({kind: text})
    assert limit.bound == pytest.approx(bound)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("latency", "50"), ("latency", "ms"), ("latency", "-5ms"), ("latency", "0ms"), ("latency", "5 min"),
        ("latency", "1.2.3ms"), ("memory", "1"), ("memory", "1Gb"), ("memory", "1TB"), ("agreement", "99"),
        ("agreement", "-0.1"), ("agreement", "nan"), ("agreement", "x"), ("throughput", "0"), ("throughput", "inf"),
        ("throughput", "fast"), ("latency", ""),
    ],
)  # fmt: skip
def test_bad_limits_are_one_clear_line(kind: Any, text: str) -> None:
    with pytest.raises(errors.BadSetting, match=f"^--m\\w+-{kind} is '{text}': give ") as caught:
        parse({kind: text})
    assert len(str(caught.value).splitlines()) == 1


def test_a_batch_that_was_not_measured_is_told() -> None:
    assert len(at_batch(CANDIDATES, 8)) == 4
    with pytest.raises(errors.NothingSelected, match="nothing was measured at batch 7: measured batches are 8"):
        at_batch(CANDIDATES, 7)


# ---------------------------------------------------------------------- the command


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Results of two configurations, of which one has its artifact in the store."""
    (tmp_path / "asv.conf.json").write_text('{"results_dir": "results"}')
    params = [["'fp32'", "'int8'"], ["8"]]
    benchmark = "cpu.onnxruntime.ResNet50"
    write_results(
        tmp_path / "results",
        {
            f"{benchmark}.time_forward": [[0.16, 0.04], params, [[0.16] * 20, [0.04] * 20]],
            f"{benchmark}.track_top1_agreement": [[1.0, 0.75], params, None],
            "cpu.openvino.ResNet50.time_forward": [[None, 0.0001], params, None],
        },
    )
    build = Recipe(kind="onnxruntime", identity={})
    artifact = Store(tmp_path / "store").obtain(build, lambda folder: (folder / "model.onnx").write_text("") and None)
    ok = {"status": "ok", "order": 1, "started_at": 1.0, "threads": 2}
    write_evidence(
        tmp_path / "results",
        {
            f"{benchmark}(fp32, 8)": {**ok, "artifact": {"kind": "onnx", "key": "0" * 20}},
            f"{benchmark}(int8, 8)": {**ok, "artifact": {"kind": "onnxruntime", "key": artifact.key}},
            "cpu.openvino.ResNet50(int8, 8)": {"status": "failed", "reason": "wrong answers", "order": 2},
        },
    )
    return tmp_path


def command(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    options = ("--machine", "here", "--project", str(project))
    return machmeter("recommend", *arguments, *options, MACHMETER_STORE=str(project / "store"))


def test_the_command_prints_the_choice_and_its_program(project: Path) -> None:
    """A failed cell is no candidate, however fast it looked."""
    done = command(project, "resnet50", "--max-latency", "50ms", "--snippet", str(project / "serve.py"))
    assert done.returncode == 0, done.stderr
    assert "recommended  onnxruntime int8 batch 8: 200.0 images/s, p95 40.00 ms, top-1 0.750" in done.stdout
    assert "--max-latency 50ms left out 1 of 2; the fastest of them: onnxruntime fp32 batch 8, 50.0" in done.stdout
    program = (project / "serve.py").read_text()
    assert program.strip() in done.stdout
    assert "machmeter" not in program.replace(str(project), "")
    assert "options.intra_op_num_threads = 2" in program
    assert f"{project}/store/onnxruntime/" in program
    compile(program, "serve.py", "exec")


def test_json_says_the_same(project: Path) -> None:
    done = command(project, "ResNet50", "--min-agreement", "0.5", "--json")
    found = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert (found["recommended"]["name"], found["recommended"]["latency_is"]) == ("onnxruntime int8 batch 8", "p95")
    assert found["runner_up"]["name"] == "onnxruntime fp32 batch 8"
    assert found["excluded"] == [{"limit": "agreement", "count": 0, "fastest": None}]
    assert "InferenceSession" in found["snippet"]


def test_an_artifact_that_is_gone_is_told_in_one_line(project: Path) -> None:
    """The recommendation stands; only where a file was asked for is it an error."""
    arguments = ("ResNet50", "--min-agreement", "0.99")
    done = command(project, *arguments)
    assert done.returncode == 0
    assert "recommended  onnxruntime fp32 batch 8" in done.stdout
    assert done.stdout.splitlines()[-1] == (
        f"no program can be written for onnxruntime fp32 batch 8: {project}/store has no onnx/{'0' * 20}; "
        "set MACHMETER_STORE to the store it was measured with, or measure it again with 'machmeter bench "
        "--model ResNet50 --backend onnxruntime --batch 8'"
    )
    done = command(project, *arguments, "--snippet", str(project / "serve.py"))
    assert done.returncode == 8
    assert len(done.stderr.splitlines()) == 1
    assert not (project / "serve.py").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["ResNet5"], 3, "unknown model 'ResNet5'"),
        (["ResNet50", "--snippet", "/dev/null/x.py"], 4, "cannot write the program under /dev/null/x.py"),
        (["ResNet50", "--batch", "7"], 6, "measured batches are 8"),
        (["ViTB16"], 8, "no configuration of ViTB16 was measured"),
        (["ResNet50", "--max-latency", "50"], 9, "--max-latency is '50': give a number above 0 with s, ms, us or µs"),
        (["ResNet50", "--max-memory", "1Gb"], 9, "with MB, GB, MiB or GiB, such as 1GB"),
        (["ResNet50", "--min-agreement", "99"], 9, "a share of images between 0 and 1, such as 0.99"),
        (["ResNet50", "--min-throughput", "many"], 9, "give images per second"),
        (["ResNet50", "--max-latency", "1ms"], 11, "closest by latency: onnxruntime int8 batch 8 (p95 40.00 ms)"),
    ],
)
def test_bad_input(project: Path, arguments: list[str], code: int, words: str) -> None:
    done = command(project, *arguments)
    assert done.returncode == code, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("machmeter: ")
    assert words in done.stderr


# ---------------------------------------------------------------------- the program, on real models


# Runs a program as a script where machmeter cannot be imported, then once more on given images.
RUN = """
import runpy, sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "machmeter":
            raise ModuleNotFoundError("No module named 'machmeter'", name=name)
sys.meta_path.insert(0, Blocker())
import numpy as np
program, images, target = sys.argv[1:]
namespace = runpy.run_path(program, run_name="__main__")
np.save(target, namespace["run"](np.load(images)))
"""


def same_answers(model: models.Model, name: str, precision: str, options: dict[str, str], scratch: Path) -> None:
    session = load(model, name, precision, 2, options)
    images = np.load(shared_artifacts.reference(model, Store()).evaluation)[:2]
    expected = np.array(session(images))
    artifact = backends.get(name).prepare(model, precision, Store(), batch=2, **options)
    chosen = Candidate(
        name=name, model=model.name, backend=name, precision=precision, options=tuple(options.values()), batch=2,
        images_per_second=1.0, p50_ms=1.0, threads=host.thread_budget(), artifact=f"{artifact.kind}/{artifact.key}",
    )  # fmt: skip
    program = snippet(chosen, Store())
    assert 10 <= len(program.splitlines()) <= 32
    (scratch / "program.py").write_text(program)
    np.save(scratch / "images.npy", images)
    environment = dict(os.environ)
    if artifact.path("compile-cache").is_dir():  # spares the test the compilation, as nothing else does
        cache = shutil.copytree(artifact.path("compile-cache"), scratch / "cache")
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(cache)
    command = [
        sys.executable,
        "-c",
        RUN,
        *(str(scratch / file) for file in ("program.py", "images.npy", "answers.npy")),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "(2, 1000)"
    np.testing.assert_allclose(np.load(scratch / "answers.npy"), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.models
@pytest.mark.usefixtures("store_variable")
@pytest.mark.parametrize(("name", "precision", "options"), every_cell())
def test_the_program_is_the_measured_configuration(
    name: str, precision: str, options: dict[str, str], tmp_path: Path
) -> None:
    same_answers(models.get("ResNet18"), name, precision, options, tmp_path)


@pytest.mark.models
@pytest.mark.usefixtures("store_variable")
@pytest.mark.parametrize("name", ["ViTTiny16", "EfficientNetLite0"])
def test_the_program_builds_models_of_another_library(name: str, tmp_path: Path) -> None:
    same_answers(models.get(name), "eager", "bf16", {"layout": "channels_last"}, tmp_path)


@pytest.mark.models
@pytest.mark.parametrize("model", models.MODELS, ids=lambda model: model.name)
def test_the_code_of_a_model_builds_the_same_network(model: models.Model) -> None:
    import timm
    import torch
    import torchvision

    with torch.device("meta"):
        theirs = eval(model.code, {"timm": timm, "torchvision": torchvision}).state_dict()
        ours = model.build(False).state_dict()
    assert {name: tensor.shape for name, tensor in theirs.items()} == {n: tensor.shape for n, tensor in ours.items()}


def test_the_null_backend_has_no_program() -> None:
    artifact: Any = None
    with pytest.raises(errors.Unsupported, match="computes nothing"):
        backends.get("null").snippet(models.get("ResNet18"), artifact, "fp32", batch=1, threads=1)
