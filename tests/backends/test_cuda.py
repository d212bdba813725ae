"""The GPU backends up to the device call: decisions, networks, proofs, and ONNX Runtime that must not fall back."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.project import ROOT
from machmeter import errors
from machmeter.backends.cuda import _engine, _networks, onnxruntime, tensorrt
from machmeter.workload import fidelity, models, shared_artifacts
from machmeter.workload.artifacts import Recipe, Store

GPU = {"gpu": "NVIDIA H200", "capability": "9.0", "driver": "580.65.06"}

# ---------------------------------------------------------------------- TensorRT: what it is told


def test_there_is_one_profile_per_batch_range_without_a_gap() -> None:
    found = _engine.profiles((32, 1, 8))
    assert [(item.least, item.best, item.most) for item in found] == [(1, 1, 1), (2, 8, 8), (9, 32, 32)]
    assert [_engine.profile_of(batch, found) for batch in (1, 2, 8, 9, 32)] == [0, 1, 1, 2, 2]
    with pytest.raises(ValueError, match="no profile serves batch 33: the largest is for 32"):
        _engine.profile_of(33, found)
    for batches in ((), (0, 1)):
        with pytest.raises(ValueError, match="batches must be 1 or more"):
            _engine.profiles(batches)


def test_fp32_is_told_not_to_round_to_tf32() -> None:
    """M10: TensorRT's default rounds."""
    assert _engine.settings("fp32", 16 << 30).tf32 is False
    assert _engine.settings("int8", 16 << 30).tf32 is True
    assert _engine.settings("fp16", 16 << 30).workspace_bytes == 4 << 30


@pytest.mark.parametrize(
    ("types", "precision", "problems", "reason"),
    [
        ({"fp16": 53}, "fp16", [], None),
        ({"int8": 53, "fp32": 1}, "int8", [], None),
        ({"fp32": 54}, "int8", [], "the network has no int8 operator: {'fp32': 54}"),
        ({"fp32": 54}, "fp16", [], "the network has no fp16 operator: {'fp32': 54}"),
        ({"int8": 1}, "int8", ["x: UINT8"], "the network's quantization is not TensorRT's: x: UINT8"),
    ],
)
def test_a_network_of_other_types_is_not_built(
    types: dict[str, int], precision: str, problems: list[str], reason: str | None
) -> None:
    assert _engine.refused(types, precision, problems) == reason


@pytest.mark.parametrize(
    ("names", "shapes", "reason"),
    [
        (["input", "logits"], [(-1, 3, 224, 224), (-1, 1000)], None),
        (["input", "logits"], [(2, 3, 224, 224), (2, 1000)], "the batch is frozen at 2"),
        (["input", "logits"], [(-1, 3, 32, 32), (-1, 1000)], "expected images of (3, 224, 224)"),
        (["x", "logits"], [(-1, 3, 224, 224), (-1, 1000)], "expected the tensors input and logits"),
        (["input", "a", "logits"], [(-1, 3, 224, 224)] * 3, "expected the tensors input and logits"),
    ],
)
def test_a_parsed_network_is_that_of_the_model(names: list[str], shapes: Any, reason: str | None) -> None:
    found = _engine.checked_input(names, shapes, (3, 224, 224))
    assert found is reason is None or str(found).startswith(str(reason))


def test_an_engine_is_found_by_gpu_driver_tensorrt_and_profiles(tmp_path: Path) -> None:
    known = _engine.profiles((1, 8))

    def key(gpu: dict[str, str], version: str, profiles: Any) -> str:
        return Recipe(kind="tensorrt", identity=_engine.identity(gpu, version, profiles)).key()

    keys = {
        key(GPU, "10.16.1.11", known),
        key(GPU | {"driver": "590.1"}, "10.16.1.11", known),
        key(GPU | {"gpu": "Tesla T4", "capability": "7.5"}, "10.16.1.11", known),
        key(GPU, "11.4.0.106", known),
        key(GPU, "10.16.1.11", _engine.profiles((1, 32))),
    }
    assert len(keys) == 5
    assert key(GPU, "10.16.1.11", known) == key(dict(GPU), "10.16.1.11", _engine.profiles((8, 1)))
    assert _engine.timing_cache_name(GPU, "10.16.1.11") == "NVIDIA_H200-580.65.06-10.16.1.11.timing"


def layer(kind: str, datatype: str, kernel: str, key: str = "Datatype") -> dict[str, Any]:
    return {"Name": "x", "LayerType": kind, "Inputs": [{"Name": "i", key: datatype}], "TacticName": kernel}


def test_layers_are_counted_as_the_inspector_tells_them() -> None:
    """Written after NVIDIA's documentation of the inspector; no engine of ours was inspected yet."""
    text = json.dumps(
        {
            "Layers": [
                layer("CaskConvolution", "Half", "sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32"),
                layer("CaskConvolution", "Row major Int8 format", "sm80_xmma_fprop_i8", "Format/Datatype"),
                layer("gemm", "Float", "sm80_xmma_gemm_tf32f32_tf32f32_f32"),
                layer("gemm", "Float", "ampere_sgemm_128x64_tn"),
                layer("Reformat", "Half", "0x00000000000003e8"),
                layer("kgen", "BFloat16", "__myl_MulAddXmma_0x123"),
            ]
        }
    )
    found = _engine.parse_layers(text)
    assert found.compute == {"fp16": 1, "int8": 1, "tf32": 1, "fp32": 1, "bf16": 1}
    assert found.count == 6


@pytest.mark.parametrize("text", ['{"Layers": ["conv1", "conv2"]}', '{"Layers": []}', "{}"])
def test_an_engine_without_details_proves_nothing(text: str) -> None:
    with pytest.raises(ValueError, match="no details of its layers"):
        _engine.parse_layers(text)


class Config:
    """A builder's configuration that keeps a timing cache as TensorRT's does."""

    def create_timing_cache(self, content: bytes) -> bytes:
        return content

    def set_timing_cache(self, cache: bytes, ignore_mismatch: bool) -> bool:
        self.cache = cache
        return not ignore_mismatch

    def get_timing_cache(self) -> Any:
        config = self

        class Cache:
            def serialize(self) -> bytes:
                return config.cache + b"+"

        return Cache()


def test_the_timing_cache_grows_and_a_warm_one_is_told(tmp_path: Path) -> None:
    """M4: what was built with a filled cache is not called cold."""
    path = tmp_path / "times" / "x.timing"
    for before, warm in ((b"", False), (b"+", True)):
        with tensorrt._timing_cache(Config(), path) as told:
            assert told is warm
        assert path.read_bytes() == before + b"+"
    with pytest.raises(RuntimeError), tensorrt._timing_cache(Config(), path):
        raise RuntimeError
    assert path.read_bytes() == b"++"


# Every name of TensorRT's API that `tensorrt.py` uses, and where arguments count the C++ function behind the binding.
SOURCE = (ROOT / "tools/machmeter/backends/cuda/tensorrt.py").read_text()
USED = {
    "create_network",
    "parse_from_file",
    "get_error",
    "num_errors",
    "get_input",
    "num_inputs",
    "get_output",
    "num_outputs",
    "desc",
    "create_builder_config",
    "profiling_verbosity",
    "builder_optimization_level",
    "set_memory_pool_limit",
    "set_flag",
    "clear_flag",
    "create_optimization_profile",
    "set_shape",
    "add_optimization_profile",
    "build_serialized_network",
    "create_timing_cache",
    "set_timing_cache",
    "get_timing_cache",
    "serialize",
    "deserialize_cuda_engine",
    "create_execution_context",
    "set_optimization_profile_async",
    "set_input_shape",
    "get_tensor_shape",
    "set_tensor_address",
    "execute_async_v3",
    "create_engine_inspector",
    "execution_context",
    "get_engine_information",
}
MEMBERS = {"STRONGLY_TYPED", "DETAILED", "WORKSPACE", "TF32", "JSON", "ERROR"}
TYPES = {
    "Logger",
    "Builder",
    "OnnxParser",
    "Runtime",
    "NetworkDefinitionCreationFlag",
    "ProfilingVerbosity",
    "MemoryPoolType",
    "BuilderFlag",
    "LayerInformationFormat",
}
SIGNATURES = {
    "opt_profile_set_shape": r"IOptimizationProfile.*basic_string.*Dims64ESH_SH_E_",
    "context_set_optimization_profile_async": r"IExecutionContextEimE_",  # a profile's number and a stream's handle
    "netconfig_create_timing_cache": r"IBuilderConfigERNS_6bufferE",
    "runtime_deserialize_cuda_engine": r"IRuntimeERNS_6bufferE",
}


def test_the_list_of_used_names_is_complete() -> None:
    """A call that is added to the recipe has to be added to the list that is checked."""
    objects = r"(?:builder|definition|parser|config|described|inspector|self\._(?:engine|context|runtime))"
    assert set(re.findall(rf"\b{objects}\.(\w+)", SOURCE)) <= USED
    assert {name for name in USED if not re.search(rf"\.{name}\b", SOURCE)} == set()
    assert set(re.findall(r"\btensorrt\.([A-Z]\w+)", SOURCE)) == TYPES


@pytest.mark.network
@pytest.mark.parametrize("version", ["10.16.1.11", "11.4.0.106"])
def test_every_call_exists_in_the_official_bindings(tmp_path: Path, version: str) -> None:
    """Read as text: the bindings cannot be imported without TensorRT's libraries, which need a GPU's driver."""
    wanted = f"tensorrt-cu13-bindings=={version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(tmp_path), wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/tensorrt.so"))
        content = archive.read(name)
    # The linker lets a text end inside a longer one, so a name is looked for with the zero that ends it.
    missing = [item for item in sorted(USED | MEMBERS | TYPES) if item.encode() + b"\0" not in content]
    assert missing == []
    for function, signature in SIGNATURES.items():
        pattern = re.compile(function.encode() + rb"MUl[^\x00]*?" + signature.encode())
        assert pattern.search(content), function
    assert b"execute_async_v2\0" not in content  # of TensorRT 8: this check can fail


# ---------------------------------------------------------------------- networks, made on the CPU


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


# ---------------------------------------------------------------------- ONNX Runtime


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


# ---------------------------------------------------------------------- the script for a machine with a GPU

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

    from machmeter.backends.cuda import _session

    def allowed() -> tuple[bool, bool]:
        return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32

    before = allowed()
    for precision, wanted in (("tf32", (True, True)), ("fp32", (False, False)), ("fp16", (False, False))):
        with _session.matmul_precision(precision):
            assert allowed() == wanted
        assert allowed() == before
