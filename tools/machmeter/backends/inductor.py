"""PyTorch inductor: `torch.compile` as it comes, and its ahead-of-time form with frozen weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from machmeter.backends import _aot, _torch
from machmeter.errors import NoResults
from machmeter.machine import host
from machmeter.workload import shared_artifacts
from machmeter.workload.artifacts import Artifact, Recipe, Store
from machmeter.workload.models import Model

CACHE = "compile-cache"


class Inductor:
    """Compiled for one batch size, channels_last.

    Option `mode`: `compile` is `torch.compile(model)`; `aot` is AOTInductor with freezing, which folds and
    prepacks the weights as `TORCHINDUCTOR_FREEZING=1` does for `torch.compile`, but leaves a package that
    loads without compiling.
    """

    name = "inductor"
    device = "cpu"
    version = 1
    stack = "cpu"
    packages = ("torch",)
    distributions = ("torch", "torchvision", "timm", "triton")
    may_fork = False
    precisions = ("fp32", "bf16")
    options = {"mode": ("compile", "aot")}  # noqa: RUF012 - read-only by contract
    on_request: tuple[str, ...] = ("aot",)
    answers = True

    def unsupported(self, model: Model, precision: str, **options: str) -> str | None:
        """Return a reason where the model's library or a C++ compiler is missing."""
        missing = model.missing_packages()
        return f"not installed: {', '.join(missing)}" if missing else _aot.no_compiler()

    def prepare(self, model: Model, precision: str, store: Store, *, batch: int, **options: str) -> Artifact:
        """Compile, cold: nothing that an earlier compilation left on the machine is used."""
        weights = shared_artifacts.weights(model, store)
        identity = shared_artifacts.identity(
            model, backend=self.name, recipe=self.version, precision=precision, batch=batch, **options
        )
        threads = host.thread_budget()
        if options["mode"] == "aot":
            described = _aot.recipe(identity, weights, threads=threads)
            return _aot.compiled(
                store, described, lambda: _exported(model, weights, batch), autocast=precision == "bf16"
            )
        described = Recipe(
            kind="torch-compile-cache",
            identity=identity,
            packages=("torch",),
            parents=(weights,),
            cpu_dependent=True,
            threads=threads,
        )

        def build(folder: Path) -> None:
            with _torch.cold_compiler(folder / CACHE):
                session = _compiled(model, weights, precision, batch, threads)
                session(_torch.example_batch(model.input_shape, batch, channels_last=True))

        return store.obtain(described, build)

    def load(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> _torch.TorchSession:
        """Load the package, or the model and its compile cache; the latter still traces at its first call."""
        if options["mode"] == "aot":
            return _aot.load(model, artifact, batch=batch, threads=threads, details={})
        _torch.warm_compiler(artifact.path(CACHE))
        return _compiled(model, shared_artifacts.weights(model, artifact.store()), precision, batch, threads)

    def snippet(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> str:
        """Return a program that loads the package, or that compiles the model at its first call. Raises NoResults."""
        if options["mode"] == "aot":
            return _aot.snippet(model, artifact, batch=batch, threads=threads)
        (digest,) = artifact.toolchain.parents
        weights = artifact.store().find_content("weights", digest)
        if weights is None:
            raise NoResults(f"the weights of {model.name} are not in {artifact.store().root}: measure it again")
        return _torch.snippet(
            model,
            weights,
            batch=batch,
            threads=threads,
            channels_last=True,
            autocast=precision == "bf16",
            then=["network = torch.compile(network, dynamic=False)  # compiles at the first call"],
        )


def _exported(model: Model, weights: Artifact, batch: int) -> Any:
    import torch

    module = shared_artifacts.module(model, weights).to(memory_format=torch.channels_last)
    example = torch.from_numpy(_torch.example_batch(model.input_shape, batch, channels_last=True))
    return torch.export.export(module, (example,))


def _compiled(model: Model, weights: Artifact, precision: str, batch: int, threads: int) -> _torch.TorchSession:
    import torch

    _torch.set_threads(threads)
    module = shared_artifacts.module(model, weights).to(memory_format=torch.channels_last)
    return _torch.TorchSession(
        torch.compile(module, dynamic=False),
        batch=_torch.example_batch(model.input_shape, batch, channels_last=True),
        channels_last=True,
        autocast=precision == "bf16",
        details={"compiler": "torch.compile", "freezing": False},
    )


BACKEND = Inductor()
