"""What the torch backends (eager, inductor, torchao) share: the session, and reading back what ran."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter.backends import _snippet
from machmeter.workload.artifacts import Artifact
from machmeter.workload.manifest import Details
from machmeter.workload.models import Model
from machmeter.workload.read_back import Effective, Executed

_CACHE_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"  # read by inductor at every compilation

# Primitives of oneDNN that multiply; everything else moves or converts data.
_COMPUTE = ("convolution", "deconvolution", "matmul", "inner_product", "gemm_api")
_EXECUTED = re.compile(
    r"^onednn_verbose,.*?\bexec\b,cpu,(?P<primitive>\w+),(?P<kernel>[^,]*),.*?src[:_](?P<type>\w+?):"
)
_TYPES = {"f32": "fp32", "bf16": "bf16", "f16": "fp16", "s8": "int8", "u8": "int8"}


class TorchSession:
    """A torch callable with its precision context. Inputs and outputs are NumPy arrays over the same memory."""

    def __init__(
        self,
        forward: Callable[[Any], Any],
        *,
        batch: NDArray[np.float32],
        channels_last: bool,
        autocast: bool = False,
        details: Details | None = None,
    ) -> None:
        import torch

        self._torch = torch
        self._forward = forward
        self._example = batch
        self._autocast = autocast
        self._format = torch.channels_last if channels_last else torch.contiguous_format
        self._details = details or {}
        self.channels_last = channels_last

    def __call__(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Run one batch; the input is reordered only where its memory is not in the session's layout."""
        torch = self._torch
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=self._autocast):
            images = torch.from_numpy(batch).contiguous(memory_format=self._format)
            output: NDArray[np.float32] = self._forward(images).float().numpy()
        return output

    def effective(self) -> Effective:
        """Run one batch while oneDNN tells which kernels it executes, and count them by data type."""
        torch = self._torch
        ran = executed(lambda: self(self._example), self._verbose())
        return Effective(
            compute=ran.compute,
            kernels=ran.kernels,
            threads=torch.get_num_threads(),
            layout="channels_last" if self.channels_last else "contiguous",
            settings={
                "autocast": "bfloat16" if self._autocast else None,
                "float32_matmul_precision": torch.get_float32_matmul_precision(),
                **self._details,
            },
        )

    def _verbose(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which the oneDNN that computes says what it executes."""
        return verbose()

    def compilations(self) -> int:
        """Return how many graphs dynamo has compiled in this process."""
        return compiled_graphs()


def compiled_graphs() -> int:
    """Return how many graphs dynamo has compiled in this process."""
    if "torch._dynamo" not in sys.modules:
        return 0
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


def verbose() -> contextlib.AbstractContextManager[Any]:
    """Return a context in which torch's oneDNN says what it executes."""
    import torch

    mkldnn = torch.backends.mkldnn
    context: contextlib.AbstractContextManager[Any] = mkldnn.verbose(mkldnn.VERBOSE_ON)
    return context


def executed(call: Callable[[], Any], telling: contextlib.AbstractContextManager[Any] | None = None) -> Executed:
    """Return what oneDNN executed during `call()`, as `parse_onednn` counts it; `telling` lets it tell."""
    with _captured_stdout() as lines, telling or verbose():
        call()
    return parse_onednn(lines)


def parse_onednn(lines: list[str]) -> Executed:
    """Count what oneDNN's verbose output `lines` say was executed.

    fp32 matrix products that torch gives to another library (MKL) are not listed by oneDNN.
    """
    compute: Counter[str] = Counter()
    kernels: Counter[str] = Counter()
    for line in lines:
        found = _EXECUTED.match(line)
        if found and found["primitive"] in _COMPUTE:
            compute[_TYPES.get(found["type"], found["type"])] += 1
            kernels[f"{found['primitive']} {found['kernel']}".strip()] += 1
    return Executed(compute=dict(compute), kernels=dict(kernels.most_common(8)))


@contextlib.contextmanager
def _captured_stdout() -> Iterator[list[str]]:
    """Collect what native code writes to file descriptor 1 while the block runs."""
    lines: list[str] = []
    sys.stdout.flush()
    saved = os.dup(1)
    with tempfile.TemporaryFile() as target:
        os.dup2(target.fileno(), 1)
        try:
            yield lines
        finally:
            sys.stdout.flush()
            os.dup2(saved, 1)
            os.close(saved)
            target.seek(0)
            lines += target.read().decode("utf-8", "replace").splitlines()


@contextlib.contextmanager
def cold_compiler(cache: Path | None = None) -> Iterator[None]:
    """Let inductor compile from nothing, and leave its compile cache in `cache` (default: nowhere)."""
    import torch

    torch._dynamo.reset()
    with tempfile.TemporaryDirectory(prefix="machmeter-inductor-") as scratch:
        before = os.environ.get(_CACHE_VARIABLE)
        os.environ[_CACHE_VARIABLE] = str(cache or scratch)
        try:
            yield
        finally:
            torch._dynamo.reset()
            if before is None:
                del os.environ[_CACHE_VARIABLE]
            else:
                os.environ[_CACHE_VARIABLE] = before


def warm_compiler(cache: Path | None) -> None:
    """Give this process a private copy of the compile cache `cache`, or an empty one, and no other.

    What other programs of this user compiled must not make a first call faster. What this process compiles
    must not change the artifact.
    """
    private = Path(tempfile.mkdtemp(prefix="machmeter-inductor-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    if cache is not None:
        shutil.copytree(cache, private, dirs_exist_ok=True)
    os.environ[_CACHE_VARIABLE] = str(private)


def set_threads(threads: int) -> None:
    """Give torch's intra-op pool `threads` threads."""
    import torch

    torch.set_num_threads(threads)


def example_batch(shape: tuple[int, int, int], batch: int, channels_last: bool) -> NDArray[np.float32]:
    """Return zeros of the shape and memory order that a session will be called with."""
    channels, height, width = shape
    if channels_last:
        return np.zeros((batch, height, width, channels), np.float32).transpose(0, 3, 1, 2)
    return np.zeros((batch, channels, height, width), np.float32)


def snippet(
    model: Model,
    weights: Artifact,
    *,
    batch: int,
    threads: int,
    channels_last: bool,
    autocast: bool,
    then: Iterable[str] = (),
    imports: Iterable[str] = (),
) -> str:
    """Return a program that builds the module of `model` with `weights`; the lines `then` may change `network`."""
    setup = [
        f"torch.set_num_threads({threads})",
        f"network = {model.code}",
        'network.load_state_dict(torch.load(WEIGHTS, map_location="cpu", weights_only=True))',
        "network = network.eval().requires_grad_(False)",
    ]
    if channels_last:
        setup.append("network = network.to(memory_format=torch.channels_last)")
    return _snippet.program(
        model,
        batch=batch,
        imports=["torch", model.code.partition(".")[0], *imports],
        constants=[f"WEIGHTS = {_snippet.literal(str(weights.path('weights.pt').resolve()))}"],
        setup=[*setup, *then],
        run=snippet_run(channels_last=channels_last, autocast=autocast),
    )


def snippet_run(*, channels_last: bool, autocast: bool) -> list[str]:
    """Return the lines that do what a `TorchSession` does with a batch."""
    images = "torch.from_numpy(batch)"
    if channels_last:  # does nothing to images that already lie in memory like that, which is faster
        images += ".contiguous(memory_format=torch.channels_last)"
    contexts = "torch.inference_mode()" + (', torch.autocast("cpu", torch.bfloat16)' if autocast else "")
    return [f"with {contexts}:", f"    return network({images}).float().numpy()"]
