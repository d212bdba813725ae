"""Real models through every real runtime: answers, labels, threads, batches, and the faults only they can show."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from helpers.sessions import every_cell, load
from machmeter import backends, errors
from machmeter.machine import host
from machmeter.measure import cell_process
from machmeter.workload import fidelity, inputs, models, shared_artifacts
from machmeter.workload import precision as precision_labels
from machmeter.workload.artifacts import Store

pytestmark = pytest.mark.models

RESNET = models.get("ResNet18")
VIT = models.get("ViTTiny16")
REAL_CPU = host.cpu()


def answers(session: Any, model: models.Model, batch: int) -> tuple[np.ndarray, np.ndarray]:
    reference = shared_artifacts.reference(model, Store())
    images = inputs.Evaluation(path=reference.evaluation, model=model, batch=batch, channels_last=session.channels_last)
    outputs = np.concatenate([np.array(session(images.chunk(number))) for number in range(images.chunks)])
    return outputs[: images.count], reference.logits


@pytest.mark.usefixtures("store_variable")
@pytest.mark.parametrize(("name", "precision", "options"), every_cell())
def test_every_backend_and_precision_is_what_it_says(name: str, precision: str, options: dict[str, str]) -> None:
    """M10, M14: labels read back from the runtime are true, and the answers are the model's."""
    session = load(RESNET, name, precision, 2, options)
    outputs, reference = answers(session, RESNET, 2)
    assert fidelity.shortfall(fidelity.compare(outputs, reference), precision) is None
    effective = session.effective()
    assert precision_labels.falsehood(precision, effective.compute) is None, effective
    assert sum(effective.compute.values()) >= 18
    assert effective.threads == host.thread_budget()


@pytest.mark.usefixtures("store_variable")
@pytest.mark.parametrize("name", ["eager", "inductor", "onnxruntime", "openvino"])
def test_every_backend_obeys_the_thread_budget(name: str) -> None:
    """M7: with a budget of one, the runtime itself says one."""
    options = {option: choices[0] for option, choices in backends.get(name).options.items()}
    session = load(RESNET, name, "fp32", 1, options, threads=1)
    try:
        session(np.zeros((1, *RESNET.input_shape), np.float32))
        assert session.effective().threads == 1
    finally:
        import torch

        torch.set_num_threads(host.thread_budget())


@pytest.mark.usefixtures("store_variable")
@pytest.mark.parametrize("batch", [1, 2, 8])
@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_one_export_serves_every_batch(name: str, batch: int) -> None:
    """M16: a "dynamic" batch that was frozen at export would fail or answer wrongly."""
    session = load(RESNET, name, "fp32", batch, {})
    outputs, reference = answers(session, RESNET, batch)
    assert fidelity.compare(outputs, reference).top1_agreement == 1.0
    exports = list(Store().root.glob("onnx/*/manifest.json"))
    assert len([path for path in exports if "ResNet18" in path.read_text()]) == 1


@pytest.mark.usefixtures("store_variable")
def test_a_true_label_and_a_false_one_on_the_real_runtime() -> None:
    """M10: OpenVINO left to its default computes "fp32" in bf16 where the CPU can; told, it does not."""
    if not host.cpu().has_bf16:
        pytest.skip("this CPU has no bf16")
    import openvino

    from machmeter.backends.openvino import BACKEND, OpenVinoSession

    artifact = BACKEND.prepare(RESNET, "fp32", Store(), batch=1)
    network = openvino.Core().read_model(artifact.path("model.xml"))
    network.reshape([1, *RESNET.input_shape])
    left_alone = OpenVinoSession(openvino.Core().compile_model(network, "CPU"), {})
    assert "labelled fp32" in (precision_labels.falsehood("fp32", left_alone.effective().compute) or "")
    told = BACKEND.load(RESNET, artifact, "fp32", batch=1, threads=1)
    assert precision_labels.falsehood("fp32", told.effective().compute) is None


@pytest.mark.usefixtures("store_variable")
@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_provider_that_falls_back_is_a_failure() -> None:
    """M11: asked for CUDA where there is none, ONNX Runtime warns and computes on the CPU: never a number."""
    import onnxruntime

    from machmeter.backends.onnxruntime import OrtSession

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this ONNX Runtime has a CUDA provider")
    exported = shared_artifacts.onnx(RESNET, Store())
    example = np.zeros((1, *RESNET.input_shape), np.float32)
    with pytest.raises(errors.CellFailed, match="asked for CUDAExecutionProvider and got CPUExecutionProvider"):
        OrtSession(exported.path("model.onnx"), 1, example, {}, provider="CUDAExecutionProvider")


@pytest.mark.usefixtures("store_variable")
def test_a_transformer_is_quantized_with_its_preset() -> None:
    """M15: asserted in what the artifact and the evidence say, and in the answers."""
    session = load(VIT, "openvino", "int8", 8, {})
    effective = session.effective()
    assert (effective.settings["preset"], effective.settings["model_type"]) == ("mixed", "transformer")
    outputs, reference = answers(session, VIT, 8)
    assert fidelity.shortfall(fidelity.compare(outputs, reference), "int8") is None


@pytest.mark.usefixtures("store_variable")
def test_every_static_int8_recipe_keeps_a_transformers_answers() -> None:
    """M14, M15 for ONNX Runtime: quantizing softmax and layer norm too lost half of ViTB16's answers."""
    session = load(VIT, "onnxruntime", "int8", 8, {})
    assert session.effective().settings["quantized_operators"] == ["MatMul", "Gemm", "Conv"]
    outputs, reference = answers(session, VIT, 8)
    assert fidelity.compare(outputs, reference).sqnr_db > 15.0


@pytest.mark.usefixtures("store_variable")
def test_a_new_shape_recompiles_and_is_noticed() -> None:
    """M3: torch.compile meets another batch size than it was warmed up with."""
    session = load(RESNET, "inductor", "fp32", 2, {"mode": "compile"})
    session(np.zeros((2, *RESNET.input_shape), np.float32))
    before = session.compilations()
    session(np.zeros((2, *RESNET.input_shape), np.float32))
    assert session.compilations() == before
    session(np.zeros((3, *RESNET.input_shape), np.float32))
    assert session.compilations() > before


@pytest.mark.usefixtures("store_variable")
def test_reference_answers_differ_between_images() -> None:
    """A model that says the same of every image could not disagree with itself."""
    for model in (RESNET, VIT, models.get("EfficientNetLite0")):
        details = shared_artifacts.reference(model, Store()).artifact.details
        assert details["distinct_top1_classes"] >= 4, model.name


@pytest.mark.usefixtures("store_variable")
def test_operations_are_counted_by_the_library() -> None:
    """ResNet18 has 1.8 billion multiply-adds per image; a multiply-add is two operations."""
    assert shared_artifacts.reference(RESNET, Store()).operations_per_image == pytest.approx(3.64e9, rel=0.02)


@pytest.mark.usefixtures("store_variable")
def test_inputs_are_the_same_every_time() -> None:
    calibration, evaluation = inputs.crops(RESNET)
    assert calibration.shape == evaluation.shape == (64, 3, 224, 224)
    again, _ = inputs.crops(RESNET)
    assert np.array_equal(calibration, again)


def test_calibration_and_evaluation_see_different_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Photographs that are black on the left and white on the right tell which half a crop is from."""
    import sklearn.datasets

    halves = np.zeros((427, 640, 3), np.uint8)
    halves[:, 320:] = 255
    monkeypatch.setattr(sklearn.datasets, "load_sample_images", lambda: SimpleNamespace(images=[halves, halves]))
    calibration, evaluation = inputs.crops(VIT)  # normalised to -1 and 1
    assert np.mean(calibration < -0.99) > 0.98
    assert np.mean(evaluation > 0.99) > 0.98


@pytest.mark.usefixtures("store_variable")
def test_seeded_weights_can_be_made_again(tmp_path: Path) -> None:
    """The same seed gives the same tensors in another store, to the rounding of the settled statistics."""
    import torch

    def tensors(store: Store) -> dict[str, Any]:
        path = shared_artifacts.weights(RESNET, store).path("weights.pt")
        loaded: dict[str, Any] = torch.load(path, weights_only=True)
        return loaded

    first, second = tensors(Store()), tensors(Store(tmp_path))
    assert all(torch.allclose(first[name].float(), second[name].float(), rtol=1e-4, atol=1e-5) for name in first)


def test_pretrained_weights_that_cannot_be_had_are_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """No network: no hub. The message says what to do; nothing falls back to other weights."""
    monkeypatch.setenv("MACHMETER_WEIGHTS", "pretrained")
    monkeypatch.setenv("TORCH_HOME", "/nonexistent/cache")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    with pytest.raises(errors.WeightsUnavailable, match="unset MACHMETER_WEIGHTS"):
        RESNET.build(True)


def test_a_wrong_choice_of_weights_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MACHMETER_WEIGHTS", "imaginary")
    with pytest.raises(errors.BadSetting, match="use 'seeded' or 'pretrained'"):
        RESNET.weights()
    assert models.get("EfficientNetLite0").always_pretrained


# ---------------------------------------------------------------------- sessions that cheat, on a real model


class Cheat:
    """Eager ResNet18 whose session is changed by `cheat`."""

    name, device, version, packages = "cheat", "cpu", 1, ("torch",)
    precisions = ("fp32",)
    options: dict[str, tuple[str, ...]] = {}  # noqa: RUF012
    on_request: tuple[str, ...] = ()
    answers = True
    distributions: tuple[str, ...] = ()
    may_fork = False

    def __init__(self, cheat: Any) -> None:
        self._cheat = cheat

    def unsupported(self, model: models.Model, precision: str, **options: str) -> str | None:
        return None

    def prepare(self, model: models.Model, precision: str, store: Store, *, batch: int, **options: str) -> Any:
        return backends.get("eager").prepare(model, precision, store, batch=batch, layout="contiguous")

    def load(self, model: models.Model, artifact: Any, precision: str, *, batch: int, threads: int, **_: str) -> Any:
        eager = backends.get("eager")
        session = eager.load(model, artifact, precision, batch=batch, threads=threads, layout="contiguous")
        return self._cheat(session)


class ReturnsEarly:
    """Answers rightly and at once, as a session does that starts work on a device and does not wait for it."""

    channels_last = False

    def __init__(self, session: Any) -> None:
        self._session, self._known = session, dict[bytes, Any]()

    def __call__(self, batch: np.ndarray) -> Any:
        key = batch[0, 0, 0, :8].tobytes()
        if key not in self._known:
            self._known[key] = self._session(batch)
        return self._known[key]

    def effective(self) -> Any:
        return self._session.effective()

    def compilations(self) -> int:
        return 0


class AnswersWrongly(ReturnsEarly):
    """Gives another image's answer for most images, as a broken quantization does."""

    def __call__(self, batch: np.ndarray) -> Any:
        return np.roll(self._session(batch), 16, axis=1)


def _measurement(cheat: Any) -> cell_process.Measurement:
    values = ("fp32", 8)
    cell_process._measurement = None
    return cell_process.enter(Cheat(cheat), RESNET, values, 600.0)


@pytest.mark.usefixtures("store_variable")
def test_a_session_that_does_not_wait_for_its_work_is_caught() -> None:
    """M5: 0.03 ms for work that no CPU of this kind does in a millisecond."""
    measurement = _measurement(ReturnsEarly)
    measurement.prepare_timing()
    measurement.forward()
    with pytest.raises(errors.CellFailed, match="returns before its work is done"):
        measurement.check()


@pytest.mark.usefixtures("store_variable")
def test_a_session_that_answers_wrongly_has_no_speed() -> None:
    """M14: the gate fails the cell before anything is timed."""
    with pytest.raises(errors.CellFailed, match="wrong answers: top-1 agreement"):
        _measurement(AnswersWrongly).prepare_timing()


@pytest.mark.usefixtures("store_variable")
def test_a_preparation_time_of_another_machine_is_not_shown_as_this_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store can be copied; the seconds in it cannot."""
    for cpu, known in ((host.cpu().model, True), ("another CPU", False)):
        monkeypatch.setattr(host, "cpu", lambda cpu=cpu: dataclasses.replace(REAL_CPU, model=cpu))
        measurement = _measurement(lambda session: session)
        measurement.survey()
        assert ("track_prepare_time" in measurement.facts) is known


# ---------------------------------------------------------------------- cold and warm


@pytest.mark.usefixtures("store_variable")
def test_a_warm_first_call_is_not_the_cold_preparation() -> None:
    """M4: in a new process, the first call reads the compile cache; preparation keeps its cold time."""
    program = """
import sys, time
import numpy as np
from machmeter import backends
from machmeter.machine import host
from machmeter.workload import models
from machmeter.workload.artifacts import Store
backend, model = backends.get("inductor"), models.get("ResNet18")
artifact = backend.prepare(model, "fp32", Store(), batch=2, mode="compile")
session = backend.load(model, artifact, "fp32", batch=2, threads=host.thread_budget(), mode="compile")
start = time.perf_counter()
session(np.zeros((2, 3, 224, 224), np.float32))
print(artifact.prepare_seconds, time.perf_counter() - start)
"""
    runs = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        runs.append([float(part) for part in done.stdout.split()[-2:]])
    (cold, warm), (cold_again, warm_again) = runs
    assert cold == cold_again
    assert max(warm, warm_again) < cold / 2
