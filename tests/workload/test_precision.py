"""Precision labels are proved from what was executed."""

from __future__ import annotations

import pytest

from machmeter.backends._torch import parse_onednn
from machmeter.workload import precision as precision_labels


@pytest.mark.parametrize(
    ("precision", "compute", "true"),
    [
        ("fp32", {"fp32": 53}, True),
        ("fp32", {}, True),
        ("fp32", {"fp32": 52, "bf16": 1}, False),
        ("fp32", {"int8": 1}, False),
        ("bf16", {"bf16": 54}, True),
        ("bf16", {"fp32": 54}, False),
        ("bf16", {"fp32": 30, "bf16": 24}, False),
        ("bf16", {}, False),
        ("int8", {"int8": 53, "fp32": 1}, True),
        ("int8", {"fp32": 54}, False),
        ("int8", {}, False),
        ("int8-dynamic", {"int8": 2}, True),
        ("int8-dynamic", {"bf16": 2}, False),
    ],
)
def test_labels(precision: str, compute: dict[str, int], true: bool) -> None:
    """M10."""
    assert (precision_labels.falsehood(precision, compute) is None) is true


def test_onednn_lines_are_counted_by_data_type() -> None:
    """Lines as oneDNN 3.12 writes them: reorders multiply nothing, creations are not executions."""
    lines = [
        "onednn_verbose,v1,info,cpu,runtime:OpenMP,nthr:2",
        "onednn_verbose,v1,primitive,exec,cpu,reorder,jit:uni,undef,src:bf16::blocked:acdb::f0 dst:bf16:p::f0,,64x3,0",
        "onednn_verbose,v1,primitive,exec,cpu,convolution,brg_conv_fwd:avx512_core_bf16,forward_training,"
        "src:bf16::blocked:acdb::f0 wei:bf16:ap:blocked:A::f0 dst:bf16::blocked:acdb::f0,,alg:direct,mb2,0.7",
        "onednn_verbose,v1,primitive,exec,cpu,convolution,brg_conv_fwd:avx512_core_vnni,forward_inference,"
        "src:u8::blocked:acdb::f0 wei:s8:ap:blocked:A::f0 dst:u8::blocked:acdb::f0,,alg:direct,mb2,0.7",
        "onednn_verbose,v1,primitive,create:cache_miss,cpu,convolution,brg,undef,src:f32::blocked:a::f0,,,mb2,0.7",
        "onednn_verbose,v1,primitive,exec,cpu,matmul,brg_matmul:avx512_core,undef,src:f32::blocked:ab::f0 wei:f32,2x2",
        "onednn_verbose,v1,primitive,exec,cpu,gemm_api,,undef,src_u8::blocked:ab:f0 wei_s8::blocked:ab:f0,,,8x8,0.7",
    ]
    assert parse_onednn(lines).compute == {"bf16": 1, "int8": 2, "fp32": 1}
