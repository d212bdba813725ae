"""The measured peak of the GPU, by which a call is judged: the rate of a large matrix product, by precision."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from machmeter.backends.cuda import _device
from machmeter.json_shape import decode, encode
from machmeter.workload.artifacts import Recipe, Store

PEAK_SIZES = (4096, 8192)  # rows and columns of the product that the peak is measured with
PEAK_CALLS = 20
PEAK_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Peak:
    """The measured rate of a large matrix product, by which a call is judged.

    Where torch cannot multiply in a precision, the rate is None and `how` says why: nothing can be called impossible.
    """

    operations_per_second: float | None = None
    how: str | None = None


def peak(store: Store, precision: str) -> Peak:
    """Return the rate of a large matrix product in `precision` on this GPU.

    It is measured once per GPU, driver and torch, and kept in the store.
    """
    recipe = Recipe(
        kind="gpu-peak",
        identity={**_device.identity(), "precision": kind(precision), "recipe": PEAK_VERSION},
        packages=("torch",),
        given=True,
    )
    return decode(Peak, store.obtain(recipe, lambda folder: encode(_measure_peak(kind(precision)))).details)


def kind(precision: str) -> str:
    """Return the precision of the product that bounds `precision`: dynamic int8 multiplies in int8 as well."""
    return precision.removesuffix("-dynamic")


def _measure_peak(precision: str) -> Peak:
    _device.ready()
    import torch

    best, how, problem = 0.0, "", ""
    for size in PEAK_SIZES:
        try:
            with matmul_precision(precision), torch.inference_mode():
                call = _product(size, precision)
                seconds = min(_timed(call) for _ in range(PEAK_CALLS))
        except RuntimeError as error:
            problem = " ".join(str(error).split())[:160]
            continue
        if (rate := 2.0 * size**3 / seconds) > best:
            best, how = rate, f"{precision} product, {size} x {size}"
    if not best:
        return Peak(how=f"torch cannot multiply {precision} matrices: {problem}")
    return Peak(operations_per_second=best, how=how)


def _product(size: int, precision: str) -> Any:
    import torch

    if precision == "int8":
        left, right = (torch.randint(-127, 127, (size, size), dtype=torch.int8, device="cuda") for _ in range(2))
        right = right.t()  # the order in memory that int8 tensor cores take
        return lambda: torch._int_mm(left, right)
    types = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    left, right = (torch.randn(size, size, device="cuda").to(types[precision]) for _ in range(2))
    product = torch.empty_like(left)
    return lambda: torch.mm(left, right, out=product)


def _timed(call: Any) -> float:
    import torch

    first, second = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    call()
    torch.cuda.synchronize()
    first.record()
    call()
    second.record()
    torch.cuda.synchronize()
    return float(first.elapsed_time(second)) / 1e3


@contextlib.contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Let float32 products and convolutions use TF32 for the precision "tf32" alone, while the block runs."""
    import torch

    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    set_tf32(precision == "tf32")
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before


def set_tf32(allowed: bool) -> None:
    """Let float32 products and convolutions of this process round to TF32, or not. cuDNN does by default."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed
