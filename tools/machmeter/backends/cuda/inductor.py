"""PyTorch inductor on the GPU: `torch.compile` with CUDA graphs, as it comes and with its kernels searched for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from machmeter.backends import _aot
from machmeter.backends import _torch as on_cpu
from machmeter.backends.cuda import BATCHES, _device, _peak, _torch
from machmeter.errors import NoResults
from machmeter.workload import shared_artifacts
from machmeter.workload.artifacts import Artifact, Recipe, Store
from machmeter.workload.models import Model

CACHE = "compile-cache"

# Modes of torch.compile. Both record CUDA graphs, so that a call launches one graph and not hundreds of kernels.
MODES = {"default": "reduce-overhead", "max-autotune": "max-autotune"}


class CudaInductor:
    """Compiled for one batch size, channels_last.

    Option `mode`: `default` takes inductor's own choices, `max-autotune` lets it time several kernels for each
    product and convolution and keep the fastest. int8-dynamic is torchao's, of linear layers only.
    """

    name = "inductor"
    device = "cuda"
    version = 1
    stack = "cuda"
    packages = ("torch", "triton")
    distributions = ("torch", "torchvision", "timm", "triton")
    may_fork = False
    precisions = ("fp32", "fp16", "bf16", "int8-dynamic")
    batches = BATCHES
    options = {"mode": tuple(MODES)}  # noqa: RUF012 - read-only by contract
    on_request: tuple[str, ...] = ("max-autotune",)
    answers = True

    def unsupported(self, model: Model, precision: str, **options: str) -> str | None:
        """Return a reason where a library or a C++ compiler is missing, or torchao has nothing to quantize."""
        if missing := model.missing_packages():
            return f"not installed: {', '.join(missing)}"
        if precision == "int8-dynamic":
            if model.family != "transformer":
                return "torchao's int8 for GPUs quantizes linear layers, and this model computes in convolutions"
            if not _installed("torchao"):
                return "not installed: torchao"
        return _aot.no_compiler()

    def prepare(self, model: Model, precision: str, store: Store, *, batch: int, **options: str) -> Artifact:
        """Compile, cold: nothing that an earlier compilation left on the machine is used."""
        weights = shared_artifacts.weights(model, store)
        recipe = Recipe(
            kind="torch-compile-cache",
            identity=shared_artifacts.identity(
                model,
                backend=f"cuda.{self.name}",
                recipe=self.version,
                precision=precision,
                batch=batch,
                **_device.identity(),
                **options,
            ),
            packages=("torch", "torchao") if precision == "int8-dynamic" else ("torch",),
            parents=(weights,),
            cpu_dependent=True,
        )

        def build(folder: Path) -> None:
            with on_cpu.cold_compiler(folder / CACHE):
                _compiled(model, weights, precision, batch, options["mode"], _peak.Peak())(_torch.example(model, batch))

        return store.obtain(recipe, build)

    def load(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> _torch.CudaTorchSession:
        """Load the model and its compile cache; it still traces and records its graph at its first calls."""
        on_cpu.set_threads(threads)
        on_cpu.warm_compiler(artifact.path(CACHE))
        weights = shared_artifacts.weights(model, artifact.store())
        peak = _peak.peak(artifact.store(), precision)
        return _compiled(model, weights, precision, batch, options["mode"], peak)

    def snippet(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> str:
        """Return a program that compiles the model at its first call. Raises NoResults."""
        (digest,) = artifact.toolchain.parents
        weights = artifact.store().find_content("weights", digest)
        if weights is None:
            raise NoResults(f"the weights of {model.name} are not in {artifact.store().root}: measure it again")
        quantize = [
            "from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_",
            "quantize_(network, Int8DynamicActivationInt8WeightConfig())",
        ]
        return _torch.snippet(
            model,
            weights,
            precision,
            batch=batch,
            channels_last=True,
            then=[
                *(quantize if precision == "int8-dynamic" else []),
                f'network = torch.compile(network, mode="{MODES[options["mode"]]}", dynamic=False)',
            ],
        )


def _installed(package: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(package) is not None


def _compiled(
    model: Model, weights: Artifact, precision: str, batch: int, mode: str, peak: _peak.Peak
) -> _torch.CudaTorchSession:
    import torch

    module = _torch.module(model, weights)
    if precision == "int8-dynamic":
        module = quantized(module.to("cuda"))
    compile_it: Callable[[Any], Any] = lambda ready: torch.compile(ready, mode=MODES[mode], dynamic=False)  # noqa: E731
    return _torch.CudaTorchSession(
        module,
        model,
        precision,
        batch=batch,
        channels_last=True,
        peak=peak,
        details={"compiler": "torch.compile", "mode": MODES[mode], "cuda_graphs": True},
        wrap=compile_it,
    )


def quantized(module: Any) -> Any:
    """Return `module` with the linear layers in int8: weights per channel, activations per token when they are met."""
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

    quantize_(module, Int8DynamicActivationInt8WeightConfig())
    return module


BACKEND = CudaInductor()
