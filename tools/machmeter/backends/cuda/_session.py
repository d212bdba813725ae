"""What every session on a GPU does alike: place a batch, run it to its end, tell what the GPU did.

torch is the allocator, the stream and the clock of all of them: ONNX Runtime and TensorRT work on its memory and
its stream. Inputs and answers are float32 for every backend; a conversion to a lower precision is part of the call.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter.backends.base import DeviceFacts, Effective
from machmeter.errors import CellFailed, Unsupported
from machmeter.json_shape import JsonValue, decode, encode
from machmeter.machine import gpu, nvml
from machmeter.workload.artifacts import Details, Recipe, Store

# How far a correct call may be ahead of operations / peak. Winograd's convolution multiplies less than the plain
# algorithm (2.25 to 4 times less in the 3 x 3 layers, which are under half of a residual network), and a GPU's
# clock is not the same in two moments.
HEADROOM = {"convolutional": 1.6, "transformer": 1.15}

PEAK_SIZES = (4096, 8192)  # rows and columns of the product that the peak is measured with
PEAK_CALLS = 20
PEAK_VERSION = 1


@functools.cache
def ready() -> tuple[gpu.Gpu, tuple[nvml.GpuState, ...]]:
    """Return the GPU and its states before this process used it.

    Raises Unsupported where there is none, CellFailed where others are using it.
    """
    found = gpu.find()
    if isinstance(found, str):
        raise Unsupported(found)
    states = nvml.look(found.bus)
    if problem := nvml.busy(states):
        raise CellFailed(problem)
    import torch

    if not torch.cuda.is_available():
        raise Unsupported(f"this torch ({torch.__version__}) cannot use the {found.name}")
    if reason := no_kernels(torch.cuda.get_arch_list(), found.capability):
        raise Unsupported(f"torch {torch.__version__} has no kernels for the {found.name}: {reason}")
    return found, states


def no_kernels(built_for: list[str], capability: tuple[int, int]) -> str | None:
    """Return why kernels `built_for` architectures ("sm_80", "compute_90") cannot run on `capability`, or None.

    A binary runs on its own generation from its minor version on; "compute" is PTX, which any newer GPU compiles.
    """
    for item in built_for:
        kind, _, digits = item.partition("_")
        number = "".join(character for character in digits if character.isdigit())
        if not number:
            continue
        built = (int(number[:-1]), int(number[-1]))
        if kind == "compute" and built <= capability:
            return None
        if kind == "sm" and built[0] == capability[0] and built[1] <= capability[1]:
            return None
    return f"it is {capability[0]}.{capability[1]} and they are for {', '.join(built_for) or 'nothing'}"


@contextlib.contextmanager
def memory_told() -> Iterator[None]:
    """Give an error for lack of device memory the peak of that memory, which is what its reader wants to know."""
    try:
        yield
    except Exception as error:
        _tell_memory(error)
        raise


def _tell_memory(error: Exception) -> None:
    if "out of memory" in str(error).lower():
        import torch

        error.peak_bytes = torch.cuda.max_memory_reserved() or None  # type: ignore[attr-defined]


@dataclass(frozen=True, kw_only=True)
class Peak:
    """The measured rate of a large matrix product, by which a call is judged.

    Where torch cannot multiply in a precision, the rate is None and `how` says why: nothing can be called impossible.
    """

    operations_per_second: float | None = None
    how: str | None = None


Counts = Mapping[str, int] | None


class GpuSession:
    """A session on the GPU. A backend's own says in `_enqueue` how a batch is run."""

    channels_last = False

    def __init__(self, *, batch: int, peak: Peak, details: Details) -> None:
        import torch

        self._torch = torch
        self._gpu, self._before = ready()
        self._peak, self._details, self._batch = peak, details, batch
        self._used_before = self._before[0].memory_used_bytes
        self._most_used: tuple[int | None, str] = (None, "")
        self._stream = torch.cuda.Stream()
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self._answers: Any = None
        torch.cuda.reset_peak_memory_stats()

    def _enqueue(self, placed: Any) -> Any:
        """Put the work on one batch on the session's stream, and return where its answers will be."""
        raise NotImplementedError

    def place(self, batch: NDArray[np.float32]) -> Any:
        """Return a copy of `batch` (N x C x H x W, float32) in device memory, complete."""
        torch = self._torch
        with memory_told(), torch.cuda.stream(self._stream):
            layout = torch.channels_last if self.channels_last else torch.contiguous_format
            placed = torch.from_numpy(batch).to("cuda").contiguous(memory_format=layout)
        self._stream.synchronize()
        return placed

    def run(self, placed: Any) -> None:
        """Run a placed batch; return when the GPU has finished."""
        torch = self._torch
        try:
            with torch.inference_mode(), torch.cuda.stream(self._stream):
                self._events[0].record(self._stream)
                self._answers = self._enqueue(placed)
                self._events[1].record(self._stream)
                self._stream.synchronize()
        except Exception as error:
            _tell_memory(error)
            raise

    def __call__(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Place `batch`, run it, and return N x classes in host memory."""
        self.run(self.place(batch))
        answers: NDArray[np.float32] = self._answers.float().cpu().numpy()
        return answers

    def pending(self) -> bool:
        """Return whether any work is left on the session's stream or the default one."""
        torch = self._torch
        return not (self._stream.query() and torch.cuda.default_stream().query())

    def device_seconds(self) -> float | None:
        """Return the time between the two events around the last run."""
        return float(self._events[0].elapsed_time(self._events[1])) / 1e3

    def least_seconds(self, operations: float, precision: str, family: str) -> float:
        """Return `operations` over the measured peak, with headroom for algorithms that multiply less."""
        rate = self._peak.operations_per_second
        return operations / (rate * HEADROOM[family]) if rate else 0.0

    def state(self) -> nvml.GpuState:
        """Return what NVML tells of the GPU now."""
        return nvml.snapshot(self._gpu.bus)

    def evidence(self) -> DeviceFacts:
        """Return the GPU, the peak it is judged by, its state before, and the memory of this process."""
        used, source = self._memory()
        if used is not None and used >= (self._most_used[0] or 0):
            self._most_used = used, source
        elif self._most_used[0] is None:
            self._most_used = None, source
        return DeviceFacts(
            **self._gpu.identity(),
            cuda_of_driver=self._gpu.cuda,
            bus=self._gpu.bus,
            memory_bytes=self._gpu.memory_bytes,
            before=self._before,
            peak_rate=self._peak.operations_per_second,
            peak_rate_of=self._peak.how,
            peak_bytes=self._most_used[0],
            peak_bytes_from=self._most_used[1],
            torch_peak_bytes=int(self._torch.cuda.max_memory_reserved()),
        )

    def _memory(self) -> tuple[int | None, str]:
        """Return the device memory of this process, and who told it.

        The runtimes keep what they have once allocated, so that what is there after a call was there during it.
        """
        state = self.state()
        return device_memory(
            own=nvml.own_memory(state),
            used=state.memory_used_bytes,
            used_before=self._used_before,
            torch_reserved=int(self._torch.cuda.max_memory_reserved()),
        )

    def told(
        self, compute: Mapping[str, int], *, kernels: Counts = None, operators: Counts = None, **settings: JsonValue
    ) -> Effective:
        """Return what a backend's `effective` found, and what every backend says beside it."""
        return Effective(
            compute=compute,
            kernels=kernels,
            operators=operators,
            threads=self._torch.get_num_threads(),
            layout="channels_last" if self.channels_last else "contiguous",
            settings={
                "device": "cuda",
                "inputs": "float32, resident on the GPU",
                "torch": self._torch.__version__,
                "cuda": self._torch.version.cuda,
                **self._details,
                **settings,
            },
        )

    def compilations(self) -> int:
        """Return 0: nothing is compiled once it is loaded."""
        return 0


def device_memory(
    *, own: int | None, used: int | None, used_before: int | None, torch_reserved: int
) -> tuple[int | None, str]:
    """Return the device memory of this process in bytes and where the number is from.

    In a container NVML may not show this process, or not its memory. Then what the GPU has in use more than before
    counts; without that, what torch reserved, which is all only where torch alone allocates: None stands for it.
    """
    if own is not None:
        return own, "NVML, this process"
    if used is not None and used_before is not None and used > used_before:
        return used - used_before, "NVML, in use more than before this process"
    return None, f"NVML tells neither this process's memory nor the GPU's; torch reserved {torch_reserved} bytes"


# ---------------------------------------------------------------------- the measured peak


def peak(store: Store, precision: str) -> Peak:
    """Return the rate of a large matrix product in `precision` on this GPU.

    It is measured once per GPU, driver and torch, and kept in the store.
    """
    recipe = Recipe(
        kind="gpu-peak",
        identity={**identity(), "precision": kind(precision), "recipe": PEAK_VERSION},
        packages=("torch",),
        given=True,
    )
    return decode(Peak, store.obtain(recipe, lambda folder: encode(_measure_peak(kind(precision)))).details)


def kind(precision: str) -> str:
    """Return the precision of the product that bounds `precision`: dynamic int8 multiplies in int8 as well."""
    return precision.removesuffix("-dynamic")


def _measure_peak(precision: str) -> Peak:
    ready()
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


def identity() -> dict[str, str]:
    """Return what an artifact depends on that is compiled for this GPU: the GPU and its driver."""
    found = gpu.find()
    if isinstance(found, str):
        raise Unsupported(found)
    return {**found.identity(), "driver": nvml.snapshot(found.bus).driver or f"for CUDA {found.cuda}"}
