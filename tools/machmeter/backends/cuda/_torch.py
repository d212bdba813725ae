"""What the torch backends of a GPU share: the session, proof of its precision, and the program without machmeter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter.backends import _snippet
from machmeter.backends import _torch as on_cpu
from machmeter.backends.cuda import _peak, _session
from machmeter.workload import shared_artifacts
from machmeter.workload.artifacts import Artifact
from machmeter.workload.manifest import Details
from machmeter.workload.models import Model
from machmeter.workload.read_back import Effective

# Operators of torch that multiply, as its dispatcher names them.
_COMPUTE = (
    "convolution", "_convolution", "conv2d", "cudnn_convolution", "linear", "mm", "addmm", "bmm", "baddbmm", "_int_mm",
    "scaled_dot_product_attention",
)  # fmt: skip
_ATTENTION = ("_scaled_dot_product", "_efficient_attention", "_flash_attention")


class CudaTorchSession(_session.GpuSession):
    """A torch module on the GPU: in float16 as a whole, or in float32 with bf16 autocast or TF32 as they are told."""

    def __init__(
        self,
        module: Any,
        model: Model,
        precision: str,
        *,
        batch: int,
        channels_last: bool,
        peak: _peak.Peak,
        details: Details | None = None,
        wrap: Callable[[Any], Any] = lambda module: module,
    ) -> None:
        super().__init__(batch=batch, peak=peak, details=details or {})
        torch = self._torch
        self.channels_last = channels_last
        self._precision, self._shape = precision, model.input_shape
        _peak.set_tf32(precision == "tf32")
        with _session.memory_told():
            self._module = placed_module(module, precision, channels_last)
        self._forward = wrap(self._module)
        self._type = torch.float16 if precision == "fp16" else torch.float32

    def _enqueue(self, placed: Any) -> Any:
        torch = self._torch
        with torch.autocast("cuda", torch.bfloat16, enabled=self._precision == "bf16"):
            return self._forward(placed.to(self._type)).float()

    def effective(self) -> Effective:
        """Count the multiplications that torch is given for one batch, by type, and try whether float32 is rounded.

        A compiled module is counted before it is compiled: the compiler fuses, and does not change these types.
        """
        torch = self._torch
        example = self.place(on_cpu.example_batch(self._shape, self._batch, self.channels_last))
        autocast = torch.autocast("cuda", torch.bfloat16, enabled=self._precision == "bf16")
        with torch.no_grad(), torch.cuda.stream(self._stream):
            rounded = rounds_float32("cuda")
            with autocast:
                counted = multiplications(lambda: self._module(example.to(self._type)))
        self._stream.synchronize()
        return self.read_back(
            with_tf32(counted, rounded),
            float32_rounded_to_tf32=rounded,
            autocast="bfloat16" if self._precision == "bf16" else None,
        )

    def compilations(self) -> int:
        """Return how many graphs dynamo has compiled in this process."""
        return on_cpu.compiled_graphs()


def placed_module(module: Any, precision: str, channels_last: bool, device: str = "cuda") -> Any:
    """Return `module` on `device`, its weights in float16 for "fp16", in the memory order that is asked for."""
    import torch

    module = module.to(device)
    if precision == "fp16":
        module = module.half()
    return module.to(memory_format=torch.channels_last) if channels_last else module


def multiplications(call: Callable[[], Any]) -> dict[str, int]:
    """Return how many multiplying operators torch executes in `call()`, by the type of what they multiply."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    names = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.int8: "int8"}
    found: Counter[str] = Counter()

    class Counting(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = function.overloadpacket.__name__
            if name in _COMPUTE or name.startswith(_ATTENTION):
                tensors = [item for item in args if isinstance(item, torch.Tensor)]
                kind = tensors[-1].dtype  # of addmm the bias comes first; of a convolution its bias is last
                found[names.get(kind, str(kind))] += 1
            return function(*args, **(kwargs or {}))

    with Counting():
        call()
    return dict(found)


def rounds_float32(device: str) -> dict[str, bool]:
    """Return whether products and convolutions of float32 on `device` round their inputs to fewer bits.

    1 + 2^-12 is a float32 that TF32, with ten bits of fraction, cannot hold; it is multiplied by the unit matrix.
    """
    import torch

    size, value = 256, 1.0 + 2.0**-12
    unit = torch.eye(size, device=device)
    # A reduced product must be noticed whatever algorithm a size selects, so the size is that of a real layer.
    product = torch.full((size, size), value, device=device) @ unit
    images = torch.full((1, size, 8, 8), value, device=device)
    convolved = torch.nn.functional.conv2d(images, unit.reshape(size, size, 1, 1))
    kept = {"product": product.float() == value, "convolution": convolved.float() == value}
    return {name: not bool(found.all()) for name, found in kept.items()}


def with_tf32(compute: Mapping[str, int], rounded: Mapping[str, bool]) -> dict[str, int]:
    """Return `compute` with float32 called what it is: tf32 where either kind of operator rounds it."""
    if not any(rounded.values()):
        return dict(compute)
    return {"tf32" if name == "fp32" else name: count for name, count in compute.items()}


def module(model: Model, weights: Artifact) -> Any:
    """Return the module of `model`, still in host memory."""
    return shared_artifacts.module(model, weights)


def example(model: Model, batch: int) -> NDArray[np.float32]:
    """Return zeros of the shape of one batch, channels_last."""
    return on_cpu.example_batch(model.input_shape, batch, channels_last=True)


def snippet(
    model: Model,
    weights: Artifact,
    precision: str,
    *,
    batch: int,
    channels_last: bool,
    then: Iterable[str] = (),
) -> str:
    """Return a program that builds the module of `model` on the GPU; the lines `then` may change `network`."""
    setup = [
        f"torch.backends.cuda.matmul.allow_tf32 = {precision == 'tf32'}",
        f"torch.backends.cudnn.allow_tf32 = {precision == 'tf32'}",
        f"network = {model.code}",
        'network.load_state_dict(torch.load(WEIGHTS, map_location="cpu", weights_only=True))',
        f'network = network.eval().requires_grad_(False).to("cuda"){".half()" if precision == "fp16" else ""}',
    ]
    images = 'torch.from_numpy(batch).to("cuda")'
    if channels_last:
        setup.append("network = network.to(memory_format=torch.channels_last)")
        images += ".contiguous(memory_format=torch.channels_last)"
    if precision == "fp16":
        images += ".half()"
    contexts = "torch.inference_mode()" + (', torch.autocast("cuda", torch.bfloat16)' if precision == "bf16" else "")
    return _snippet.program(
        model,
        batch=batch,
        imports=["torch", model.code.partition(".")[0]],
        constants=[f"WEIGHTS = {_snippet.literal(str(weights.path('weights.pt').resolve()))}"],
        setup=[*setup, *then],
        run=[f"with {contexts}:", f"    return network({images}).float().cpu().numpy()"],
    )
