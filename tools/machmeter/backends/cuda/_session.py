"""What every session on a GPU does alike: place a batch, run it to its end, tell what the GPU did.

torch is the allocator, the stream and the clock of all of them: ONNX Runtime and TensorRT work on its memory and
its stream. Inputs and answers are float32 for every backend; a conversion to a lower precision is part of the call.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter.backends.cuda._device import ready
from machmeter.backends.cuda._peak import Peak
from machmeter.json_shape import JsonValue
from machmeter.machine import nvml
from machmeter.workload.manifest import Details
from machmeter.workload.read_back import DeviceFacts, Effective

# How far a correct call may be ahead of operations / peak. Winograd's convolution multiplies less than the plain
# algorithm (2.25 to 4 times less in the 3 x 3 layers, which are under half of a residual network), and a GPU's
# clock is not the same in two moments.
HEADROOM = {"convolutional": 1.6, "transformer": 1.15}


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

    def read_back(
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
