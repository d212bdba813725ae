"""Intel Extension for PyTorch: its own kernels and weight layouts, eager, traced or compiled."""

from __future__ import annotations

import contextlib
import importlib.util
from typing import Any

from machmeter.backends import _aot, _torch
from machmeter.workload import shared_artifacts
from machmeter.workload.artifacts import Artifact, Store, installed_version
from machmeter.workload.models import Model

TORCH = "2.8"  # its last release, 2.8.0, is built for this one and refuses any other


class IpexSession(_torch.TorchSession):
    """A module on the extension's kernels, which come with a oneDNN of their own."""

    def _verbose(self) -> contextlib.AbstractContextManager[Any]:
        import intel_extension_for_pytorch as ipex

        both = contextlib.ExitStack()
        both.enter_context(super()._verbose())
        both.enter_context(ipex.verbose(ipex.VERBOSE_ON))
        return both


class Ipex:
    """`ipex.optimize` on a channels_last model.

    Option `mode`: `eager` calls the optimized module as it is, `trace` freezes a TorchScript trace of it (what
    the extension's graph optimizations need), `compile` is `torch.compile` with the extension's backend.
    """

    name = "ipex"
    device = "cpu"
    version = 1
    stack = "ipex"
    packages = ("torch",)
    distributions = ("intel-extension-for-pytorch", "torch")
    may_fork = False
    precisions = ("fp32", "bf16")
    options = {"mode": ("eager", "trace", "compile")}  # noqa: RUF012 - read-only by contract
    on_request: tuple[str, ...] = ()
    answers = True

    def unsupported(self, model: Model, precision: str, **options: str) -> str | None:
        """Return a reason on any torch but the last that the extension was made for."""
        torch = installed_version("torch") or "none"
        if importlib.util.find_spec("intel_extension_for_pytorch") is None or not torch.startswith(f"{TORCH}."):
            return (
                f"IPEX ended with 2.8.0, which needs torch {TORCH} (installed: torch {torch}): use the stack 'ipex' "
                "(machmeter run --stack ipex)"
            )
        if missing := model.missing_packages():
            return f"not installed: {', '.join(missing)}"
        return _aot.no_compiler() if options["mode"] == "compile" else None

    def prepare(self, model: Model, precision: str, store: Store, *, batch: int, **options: str) -> Artifact:
        """Return the weights: the extension optimizes when it loads."""
        return shared_artifacts.weights(model, store)

    def load(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> IpexSession:
        """Optimize the module; compiling is cold each time, and its cost is the first call's."""
        import intel_extension_for_pytorch as ipex
        import torch

        _torch.set_threads(threads)
        mode = options["mode"]
        example = _torch.example_batch(model.input_shape, batch, channels_last=True)
        module = shared_artifacts.module(model, artifact).to(memory_format=torch.channels_last)
        kind = torch.bfloat16 if precision == "bf16" else torch.float32
        # Compiling packs the weights itself.
        module = ipex.optimize(module, dtype=kind, inplace=True, weights_prepack=mode != "compile")
        if mode == "trace":
            module = _traced(module, example, precision)
        elif mode == "compile":
            _torch.warm_compiler(None)
            module = torch.compile(module, backend="ipex", dynamic=False)
        return IpexSession(
            module,
            batch=example,
            channels_last=True,
            autocast=precision == "bf16",
            details={"ipex": ipex.__version__, "mode": mode},
        )

    def snippet(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> str:
        """Return a program that optimizes the module with the same settings."""
        mode, autocast = options["mode"], precision == "bf16"
        kind = "bfloat16" if autocast else "float32"
        then = [
            f"network = ipex.optimize(network, dtype=torch.{kind}, inplace=True, weights_prepack={mode != 'compile'})"
        ]
        if mode == "compile":
            then.append('network = torch.compile(network, backend="ipex", dynamic=False)')
        elif mode == "trace":
            shape = (batch, *model.input_shape)
            then += [
                f"example = torch.zeros({shape}).contiguous(memory_format=torch.channels_last)",
                f'autocast = torch.autocast("cpu", torch.bfloat16, enabled={autocast}, cache_enabled=False)',
                "with torch.no_grad(), autocast:",
                "    network = torch.jit.freeze(torch.jit.trace(network, example, check_trace=False))",
                "    for _ in range(2):  # the graph is specialised in the first calls",
                "        network(example)",
            ]
        return _torch.snippet(
            model,
            artifact,
            batch=batch,
            threads=threads,
            channels_last=True,
            autocast=autocast,
            then=then,
            imports=["intel_extension_for_pytorch as ipex"],
        )


def _traced(module: Any, example: Any, precision: str) -> Any:
    import torch

    images = torch.from_numpy(example)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16", cache_enabled=False):
        frozen = torch.jit.freeze(torch.jit.trace(module, images, check_trace=False))
        for _ in range(2):  # the graph is specialised in the first calls
            frozen(images)
    return frozen


BACKEND = Ipex()
