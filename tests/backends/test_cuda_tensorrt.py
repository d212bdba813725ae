"""TensorRT's recipe without a GPU: profiles, engines and networks, held to its official bindings."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from helpers.project import ROOT
from machmeter.backends.cuda import _engine, tensorrt
from machmeter.workload.artifacts import Recipe

GPU = {"gpu": "NVIDIA H200", "capability": "9.0", "driver": "580.65.06"}


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
