"""The ONNX networks that ONNX Runtime and TensorRT run on a GPU, all from the model's one export; made on the CPU."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from machmeter.backends import _onnx_quantization
from machmeter.workload import shared_artifacts
from machmeter.workload.artifacts import Artifact, Recipe, Store
from machmeter.workload.manifest import Details
from machmeter.workload.models import Model

FILE = "model.onnx"
HALF_VERSION = 1
QDQ_VERSION = 1

# ONNX operators that multiply.
MULTIPLYING = ("Conv", "ConvTranspose", "Gemm", "MatMul")


def network(model: Model, precision: str, store: Store) -> Artifact:
    """Return the network of `model` whose own types say `precision`: fp32, fp16, or int8 between Q and DQ nodes."""
    exported = shared_artifacts.onnx(model, store)
    if precision == "fp16":
        return _half(model, exported, store)
    if precision == "int8":
        return _quantized(model, exported, store)
    return exported


def _half(model: Model, exported: Artifact, store: Store) -> Artifact:
    """Return the export with every tensor but input and output in float16."""
    recipe = Recipe(
        kind="onnx-fp16",
        identity=shared_artifacts.identity(model, recipe=HALF_VERSION),
        packages=("onnxruntime", "onnx"),
        parents=(exported,),
    )

    def build(folder: Path) -> Details:
        import onnx
        from onnxruntime.transformers.float16 import convert_float_to_float16

        loaded = onnx.load(exported.path(FILE))
        onnx.save(convert_float_to_float16(loaded, keep_io_types=True, disable_shape_infer=False), folder / FILE)
        return {"weights": "float16", "inputs_and_outputs": "float32"}

    return store.obtain(recipe, build)


def _quantized(model: Model, exported: Artifact, store: Store) -> Artifact:
    """Return the export with explicit quantization as TensorRT takes it.

    Zero points are 0 for weights and activations alike, weights are per channel, and biases stay float32: TensorRT
    has no other int8. ONNX Runtime's recipe for the CPU (unsigned activations) is another network.
    """
    calibration = shared_artifacts.reference(model, store).calibration
    operators = _onnx_quantization.static_operators(model) or ["Conv", "MatMul", "Gemm", "Add"]
    recipe = Recipe(
        kind="onnx-qdq",
        identity=shared_artifacts.identity(model, recipe=QDQ_VERSION, operators=operators),
        packages=("onnxruntime", "onnx"),
        parents=(exported,),
    )

    def build(folder: Path) -> Details:
        from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

        with tempfile.TemporaryDirectory() as scratch:
            quantize_static(
                _onnx_quantization.optimized(exported, Path(scratch)),
                folder / FILE,
                _onnx_quantization.photographs(np.load(calibration)),
                quant_format=QuantFormat.QDQ,
                activation_type=QuantType.QInt8,
                weight_type=QuantType.QInt8,
                per_channel=True,
                op_types_to_quantize=operators,
                extra_options={"ActivationSymmetric": True, "WeightSymmetric": True, "QuantizeBias": False},
            )
        return {
            "quantized_operators": operators,
            "quantization": "static, QDQ, int8 with zero points of 0, weights per channel, min-max calibration",
        }

    return store.obtain(recipe, build)


def types(path: Path) -> dict[str, int]:
    """Return how many multiplying nodes the network at `path` has, by the type of what they multiply.

    int8 are those whose inputs come from DequantizeLinear: a runtime that takes explicit quantization runs them in
    int8. Weights decide for the others.
    """
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    made_by = {output: node for node in graph.node for output in node.output}
    stored = {item.name: item.data_type for item in graph.initializer}
    names = {onnx.TensorProto.FLOAT: "fp32", onnx.TensorProto.FLOAT16: "fp16", onnx.TensorProto.BFLOAT16: "bf16"}
    known = {item.name: item.type.tensor_type.elem_type for item in (*graph.value_info, *graph.input)}
    found: Counter[str] = Counter()
    for node in graph.node:
        if node.op_type not in MULTIPLYING:
            continue
        sources = [made_by.get(name) for name in node.input[:2]]
        if all(source is not None and source.op_type == "DequantizeLinear" for source in sources):
            found["int8"] += 1
            continue
        kind = next((stored.get(name) or known.get(name) for name in reversed(node.input[:2]) if name), None)
        found[names.get(kind, "unknown" if kind is None else str(kind))] += 1
    return dict(found)


def problems(path: Path) -> list[str]:
    """Return what TensorRT would refuse of the quantization in the network at `path`.

    Its rules: zero points of 0, int8 and no unsigned type, no quantized bias.
    """
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    stored = {item.name: item for item in graph.initializer}
    found = []
    for node in graph.node:
        if node.op_type not in ("QuantizeLinear", "DequantizeLinear") or len(node.input) < 3:
            continue
        zero = stored.get(node.input[2])
        if zero is None:
            found.append(f"{node.name}: its zero point is not a constant")
        elif zero.data_type != onnx.TensorProto.INT8:
            found.append(f"{node.name}: {onnx.TensorProto.DataType.Name(zero.data_type)}, TensorRT takes INT8 alone")
        elif np.any(numpy_helper.to_array(zero)):
            found.append(f"{node.name}: a zero point that is not 0")
    return found
