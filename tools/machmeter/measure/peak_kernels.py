"""What may be the fastest matrix product of this machine, by precision, and why there is none."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from machmeter.machine import host

Call = Callable[[], Any]


def _plain(size: int, precision: str) -> Call:
    """Return torch's own product: MKL or oneDNN, as torch sees fit."""
    import torch

    if precision == "int8":
        left, right = _integers(size)
        return lambda: torch._int_mm(left, right)
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    left, right = (torch.randn(size, size).to(kind) for _ in range(2))
    product = torch.empty(size, size, dtype=kind)
    return lambda: torch.mm(left, right, out=product)


def _prepacked(size: int, precision: str) -> Call:
    """Return oneDNN's linear layer with weights that were reordered before: what compiled models call."""
    import torch

    if precision == "int8":
        left, right = _integers(size)
        packed = torch.ops.onednn.qlinear_prepack(right, [size, size])
        scales, zeros = torch.full((size,), 0.01), torch.zeros(size, dtype=torch.int64)
        scale, zero = torch.tensor(0.01), torch.tensor(0)
        return lambda: torch.ops.onednn.qlinear_pointwise(
            left, scale, zero, packed, scales, zeros, None, 100.0, 0, torch.uint8, "none", [], ""
        )
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    left, right = (torch.randn(size, size).to(kind) for _ in range(2))
    weights = torch.ops.mkldnn._reorder_linear_weight(right, size)
    return lambda: torch.ops.mkldnn._linear_pointwise(left, weights, None, "none", [], "")


def _integers(size: int) -> tuple[Any, Any]:
    """Return an unsigned and a signed matrix: the pair that VNNI multiplies."""
    import torch

    left = torch.randint(0, 255, (size, size), dtype=torch.uint8)
    return left, torch.randint(-127, 127, (size, size), dtype=torch.int8)


def kernels(precision: str) -> dict[str, Callable[[int, str], Call]]:
    """Return what may be the fastest product in `precision`, by name; each makes a call for a size."""
    # Tried and no faster here: ONNX Runtime's MatMul and MatMulInteger, convolutions of 1 x 1, NumPy's OpenBLAS.
    plain = "torch._int_mm" if precision == "int8" else "torch.mm"
    return {plain: _plain, "oneDNN linear, prepacked": _prepacked}


def unsupported(precision: str) -> str | None:
    """Return why this machine or environment has no peak in `precision`, or None."""
    if importlib.util.find_spec("torch") is None:
        return "not installed: torch"
    if precision == "bf16" and not host.cpu().has_bf16:
        return "this CPU has no bf16 instructions"
    if precision == "int8" and not host.cpu().has_int8:
        return "this CPU has no int8 dot products"
    return None
