"""What ONNX Runtime's profile of a run on the GPU proves: which provider ran what, and in which types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from machmeter.errors import CellFailed
from machmeter.json_shape import Json

# A node of TensorRT's provider is a whole subgraph, and its name begins like this.
_ENGINE_NODE = "TRTKernel"
_TYPES = {"float": "fp32", "float16": "fp16", "bfloat16": "bf16", "int8": "int8", "uint8": "int8"}
_MULTIPLYING = ("Conv", "FusedConv", "ConvTranspose", "MatMul", "FusedMatMul", "Gemm", "FusedGemm", "Attention")


@dataclass(frozen=True, kw_only=True)
class Profiled:
    """What a profile proves: multiplying operators by type, the most frequent of all, and what proved the types."""

    compute: Mapping[str, int]
    operators: Mapping[str, int]
    proved_by: str


def executed(nodes: Iterable[Json], given: Mapping[str, int]) -> Profiled:
    """Return what the profiled `nodes` prove. Raises CellFailed where the CPU multiplied.

    Inside TensorRT's provider a whole subgraph is one node and its layers are not told: what counts then is
    `given`, the multiplying nodes of the network by type, which a strongly quantized or float16 network forces.
    """
    compute: Counter[str] = Counter()
    operators: Counter[str] = Counter()
    on_cpu: Counter[str] = Counter()
    engines = 0
    for node in nodes:
        name, provider = str(node["op_name"]), str(node["provider"])
        operators[f"{name} ({provider.removesuffix('ExecutionProvider')})"] += 1
        if name.startswith(_ENGINE_NODE):
            engines += 1
        elif name in _MULTIPLYING:
            kinds = [key for item in node["input_type_shape"] or () for key in item]
            compute[_TYPES.get(kinds[0], kinds[0]) if kinds else "unknown"] += 1
            if provider.startswith("CPU"):
                on_cpu[name] += 1
    if on_cpu:
        listed = ", ".join(f"{count} {name}" for name, count in on_cpu.items())
        raise CellFailed(f"fell back to the CPU for {listed} of {sum(compute.values())} multiplying operators")
    if engines:
        if compute:
            raise CellFailed(f"TensorRT took only a part: {dict(compute)} operators ran in the CUDA provider")
        compute.update(given)
    proof = "the network that TensorRT was given" if engines else "the profiled nodes"
    return Profiled(compute=dict(compute), operators=dict(operators.most_common(12)), proved_by=proof)
