"""The other runtimes of a GPU without one: proofs of precision and of where it ran, and the script that tries them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.project import ROOT
from machmeter import errors
from machmeter.backends.cuda import _networks, onnxruntime
from machmeter.workload import fidelity, models, shared_artifacts
from machmeter.workload.artifacts import Store


@pytest.mark.models
@pytest.mark.usefixtures("store_variable")
@pytest.mark.parametrize(("precision", "least_db"), [("fp32", 100.0), ("fp16", 40.0), ("int8", 10.0)])
def test_the_networks_say_their_precision_and_keep_the_answers(precision: str, least_db: float) -> None:
    """The same ONNX for ONNX Runtime and TensorRT; ONNX Runtime's CPU provider computes it here."""
    import onnxruntime as runtime

    model, store = models.get("ResNet18"), Store()
    path = _networks.network(model, precision, store).path("model.onnx")
    assert _networks.types(path) == {precision: 21}
    assert _networks.problems(path) == []
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    reference = shared_artifacts.reference(model, store)
    images = np.load(reference.evaluation)
    outputs = np.concatenate([session.run(None, {"input": part})[0] for part in np.split(images, 8)])
    assert outputs.dtype == np.float32  # inputs and answers are float32 whatever is inside
    found = fidelity.compare(outputs, reference.logits)
    assert found.sqnr_db > least_db
    assert fidelity.shortfall(found, precision) is None


@pytest.mark.models
@pytest.mark.usefixtures("store_variable")
def test_the_cpus_quantization_is_not_tensorrts() -> None:
    """ONNX Runtime's own recipe has unsigned activations, which TensorRT refuses: it is noticed before it is built."""
    from machmeter.backends.onnxruntime import BACKEND

    quantized = BACKEND.prepare(models.get("ResNet18"), "int8", Store(), batch=1)
    assert any("UINT8, TensorRT takes INT8 alone" in item for item in _networks.problems(quantized.path("model.onnx")))


@pytest.mark.models
@pytest.mark.usefixtures("store_variable")
def test_torch_on_a_gpu_counts_what_it_multiplies() -> None:
    """The counter that proves the labels of cuda.eager and cuda.inductor, on the CPU's tensors."""
    import torch

    from machmeter.backends.cuda import _torch

    model = models.get("ResNet18")
    module = shared_artifacts.module(model, shared_artifacts.weights(model, Store()))
    images = torch.zeros(1, *model.input_shape)
    with torch.no_grad():
        assert _torch.multiplications(lambda: module(images)) == {"fp32": 21}
        with torch.autocast("cpu", torch.bfloat16):
            assert _torch.multiplications(lambda: module(images)) == {"bf16": 21}
        half = _torch.placed_module(module, "fp16", True, "cpu")
        assert _torch.multiplications(lambda: half(images.half())) == {"fp16": 21}


@pytest.mark.models
def test_a_float32_that_is_rounded_is_noticed() -> None:
    """M10 for TF32: 1 + 2^-12 does not survive; bf16 autocast stands in for it on a CPU."""
    import torch

    from machmeter.backends.cuda import _torch

    assert _torch.rounds_float32("cpu") == {"product": False, "convolution": False}
    with torch.autocast("cpu", torch.bfloat16):
        assert _torch.rounds_float32("cpu") == {"product": True, "convolution": True}
    assert _torch.with_tf32({"fp32": 54}, {"product": False, "convolution": True}) == {"tf32": 54}
    assert _torch.with_tf32({"fp32": 54}, {"product": False, "convolution": False}) == {"fp32": 54}
    assert _torch.with_tf32({"bf16": 54}, {"product": True, "convolution": True}) == {"bf16": 54}


def node(name: str, provider: str, kind: str = "float") -> dict[str, Any]:
    return {"op_name": name, "provider": f"{provider}ExecutionProvider", "input_type_shape": [{kind: [1, 3]}]}


def test_what_ran_on_the_cuda_provider_is_counted_by_type() -> None:
    nodes = [node("Conv", "CUDA", "float16")] * 53 + [node("Gemm", "CUDA", "float16"), node("Cast", "CPU")]
    assert onnxruntime.executed(nodes, {}).compute == {"fp16": 54}


def test_an_operator_that_fell_back_to_the_cpu_fails_the_cell() -> None:
    """M11, for a part of the network: the provider is CUDA and yet the CPU multiplies."""
    with pytest.raises(errors.CellFailed, match="fell back to the CPU for 2 Conv of 3 multiplying operators"):
        onnxruntime.executed([node("Conv", "CPU"), node("Conv", "CPU"), node("Gemm", "CUDA")], {})


def test_inside_an_engine_the_given_network_counts_and_must_be_whole() -> None:
    engine = node("TRTKernel_graph_main_1", "Tensorrt")
    found = onnxruntime.executed([engine], {"int8": 53, "fp32": 1})
    assert found.compute == {"int8": 53, "fp32": 1}
    assert found.proved_by == "the network that TensorRT was given"
    with pytest.raises(errors.CellFailed, match="TensorRT took only a part"):
        onnxruntime.executed([engine, node("Conv", "CUDA")], {"int8": 53})


def test_providers_are_told_not_to_round_and_tensorrt_to_keep_its_engine_apart() -> None:
    ((name, told),) = onnxruntime.providers("cuda", "fp32", 1234, "")
    assert (name, told["use_tf32"], told["user_compute_stream"]) == ("CUDAExecutionProvider", "0", "1234")
    first, second = onnxruntime.providers("tensorrt", "int8", None, "/store/engines")
    assert (first[0], first[1]["trt_int8_enable"], first[1]["trt_engine_cache_path"]) == (
        "TensorrtExecutionProvider",
        "1",
        "/store/engines",
    )
    assert second[0] == "CUDAExecutionProvider"
    assert onnxruntime.providers("tensorrt", "fp16", None, "")[0][1]["trt_int8_enable"] == "0"


@pytest.mark.parametrize(
    ("got", "reason"),
    [
        (["CUDAExecutionProvider", "CPUExecutionProvider"], None),
        (["CPUExecutionProvider"], "asked for CUDAExecutionProvider and got CPUExecutionProvider"),
        ([], "asked for CUDAExecutionProvider and got none"),
    ],
)
def test_a_provider_that_falls_back_is_told(got: list[str], reason: str | None) -> None:
    found = onnxruntime.fell_back("CUDAExecutionProvider", got)
    assert found is reason is None or str(found).startswith(str(reason))


FALLBACK = """
import sys
sys.path.insert(0, sys.argv[1])
import onnxruntime
assert onnxruntime.__file__.startswith(sys.argv[1]), onnxruntime.__file__
assert "CUDAExecutionProvider" in onnxruntime.get_available_providers()  # it says it could
import onnx
from onnx import TensorProto, helper
image = helper.make_tensor_value_info("input", TensorProto.FLOAT, ["batch", 3, 8, 8])
logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3, 8, 8])
graph = helper.make_graph([helper.make_node("Relu", ["input"], ["logits"])], "g", [image], [logits])
network = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
onnx.save(network, sys.argv[2])
silent = onnxruntime.InferenceSession(sys.argv[2], providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
print("by itself:", silent.get_providers())
from pathlib import Path
from machmeter.backends.cuda import onnxruntime as ours
from machmeter.errors import CellFailed
try:
    ours.open_session(Path(sys.argv[2]), ours.session_options(1), ours.providers("cuda", "fp32", None, ""))
except CellFailed as error:
    print("ours:", error)
"""


@pytest.mark.network
def test_the_gpu_build_of_onnx_runtime_does_not_pass_a_cpu_off_as_a_gpu(tmp_path: Path) -> None:
    """M11 with the real onnxruntime-gpu (256 MB): without a GPU it runs on the CPU by itself; ours fails the cell."""
    from machmeter.machine import gpu

    if gpu.no_driver() is None:
        pytest.skip("this machine has an NVIDIA driver")
    (pin,) = (line for line in (ROOT / "requirements/cuda.txt").read_text().splitlines() if "onnxruntime-gpu" in line)
    target = tmp_path / "packages"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), pin]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    run = [sys.executable, "-c", FALLBACK, str(target), str(tmp_path / "relu.onnx")]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    by_itself, ours = (line for line in done.stdout.splitlines() if line.startswith(("by itself:", "ours:")))
    assert by_itself == "by itself: ['CPUExecutionProvider']"
    assert ours.startswith("ours: asked for CUDAExecutionProvider and got CPUExecutionProvider")


BARE = """
import sys
for name in ("torchvision", "timm", "torchao", "onnx", "onnxruntime", "sklearn", "PIL", "threadpoolctl", "typer",
             "rich", "msgspec", "asv", "asv_runner", "scipy", "pynvml", "tensorrt", "packaging", "jinja2"):
    sys.modules[name] = None  # not installed
"""


def test_the_script_needs_torch_and_numpy_alone_and_says_when_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from machmeter.machine import gpu

    if gpu.no_driver() is None:
        pytest.skip("this machine has an NVIDIA driver")
    program = (
        f"{BARE}\nimport runpy; runpy.run_path({str(ROOT / 'tools/experiments/try_gpu.py')!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "")
    assert "nothing was checked: there is no GPU" in done.stdout


@pytest.mark.models
def test_the_script_measures_its_stand_in_where_no_model_can_be_built(tmp_path: Path) -> None:
    """The whole way of a cell through the script, on the CPU's eager backend."""
    program = f"""{BARE}
sys.path.insert(0, {str(ROOT / "tools/experiments")!r})
import importlib.metadata
missing = importlib.metadata.PackageNotFoundError
real = importlib.metadata.version
def version(name):
    if name in ("scikit-learn", "pillow"):
        raise missing(name)
    return real(name)
importlib.metadata.version = version
import try_gpu
from machmeter import backends
from machmeter.backends import grid
print(try_gpu.replace_what_is_missing())
model = try_gpu.choose_model(None)
backend = backends.get("eager")
cell = next(grid.all_cells(backend, model))
found = try_gpu.measure(backend, model, cell)
print(try_gpu.line(found))
assert found["status"] == "ok", found
assert found["record"]["fidelity"]["top1_agreement"] == 1.0
"""
    import os

    variables = {**os.environ, "MACHMETER_STORE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=variables)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout
    assert "cpu.eager.StandIn(fp32, contiguous, 1)" in done.stdout


@pytest.mark.models
def test_tf32_is_allowed_for_tf32_alone_and_what_was_set_before_comes_back() -> None:
    """torch's own switches, which it has without a GPU too; cuDNN's is on by default."""
    import torch

    from machmeter.backends.cuda import _peak

    def allowed() -> tuple[bool, bool]:
        return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32

    before = allowed()
    for precision, wanted in (("tf32", (True, True)), ("fp32", (False, False)), ("fp16", (False, False))):
        with _peak.matmul_precision(precision):
            assert allowed() == wanted
        assert allowed() == before
