"""PyTorch eager: the baseline that every other configuration is a multiple of."""

from __future__ import annotations

from machmeter.backends import _torch
from machmeter.workload import shared_artifacts
from machmeter.workload.artifacts import Artifact, Store
from machmeter.workload.models import Model


class Eager:
    """Plain modules, in fp32 or under bf16 autocast, in either memory format."""

    name = "eager"
    device = "cpu"
    version = 1
    stack = "cpu"
    packages = ("torch",)
    distributions = ("torch", "torchvision", "timm")
    may_fork = False
    precisions = ("fp32", "bf16")
    options = {"layout": ("contiguous", "channels_last")}  # noqa: RUF012 - read-only by contract
    on_request: tuple[str, ...] = ()
    answers = True

    def unsupported(self, model: Model, precision: str, **options: str) -> str | None:
        """Return a reason where the model's library is missing."""
        missing = model.missing_packages()
        return f"not installed: {', '.join(missing)}" if missing else None

    def prepare(self, model: Model, precision: str, store: Store, *, batch: int, **options: str) -> Artifact:
        """Return the weights: eager needs nothing else."""
        return shared_artifacts.weights(model, store)

    def load(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> _torch.TorchSession:
        """Build the module with its weights, in the layout that was asked for."""
        import torch

        _torch.set_threads(threads)
        channels_last = options["layout"] == "channels_last"
        module = shared_artifacts.module(model, artifact)
        if channels_last:
            module = module.to(memory_format=torch.channels_last)
        return _torch.TorchSession(
            module,
            batch=_torch.example_batch(model.input_shape, batch, channels_last),
            channels_last=channels_last,
            autocast=precision == "bf16",
        )

    def snippet(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> str:
        """Return a program that builds the module with the weights of `artifact`."""
        channels_last = options["layout"] == "channels_last"
        return _torch.snippet(
            model, artifact, batch=batch, threads=threads, channels_last=channels_last, autocast=precision == "bf16"
        )


BACKEND = Eager()
