"""PyTorch eager on the GPU: the baseline that every other configuration there is a multiple of."""

from __future__ import annotations

from machmeter.backends import _torch as on_cpu
from machmeter.backends.cuda import BATCHES, _peak, _torch
from machmeter.workload.artifacts import Artifact, Store
from machmeter.workload.models import Model
from machmeter.workload.shared_artifacts import weights


class CudaEager:
    """Plain modules: fp32 with TF32 switched off, tf32, float16 weights, or bf16 autocast, in either memory format.

    tf32 is a precision and not an option, because it has a hardware peak, an error and a label of its own.
    """

    name = "eager"
    device = "cuda"
    version = 1
    stack = "cuda"
    packages = ("torch",)
    distributions = ("torch", "torchvision", "timm")
    may_fork = False
    precisions = ("fp32", "tf32", "fp16", "bf16")
    batches = BATCHES
    options = {"layout": ("contiguous", "channels_last")}  # noqa: RUF012 - read-only by contract
    on_request: tuple[str, ...] = ()
    answers = True

    def unsupported(self, model: Model, precision: str, **options: str) -> str | None:
        """Return a reason where the model's library is missing."""
        missing = model.missing_packages()
        return f"not installed: {', '.join(missing)}" if missing else None

    def prepare(self, model: Model, precision: str, store: Store, *, batch: int, **options: str) -> Artifact:
        """Return the weights: eager needs nothing else."""
        return weights(model, store)

    def load(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> _torch.CudaTorchSession:
        """Build the module with its weights on the GPU, in the layout that was asked for."""
        on_cpu.set_threads(threads)
        return _torch.CudaTorchSession(
            _torch.module(model, artifact),
            model,
            precision,
            batch=batch,
            channels_last=options["layout"] == "channels_last",
            peak=_peak.peak(artifact.store(), precision),
        )

    def snippet(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> str:
        """Return a program that builds the module with the weights of `artifact` on the GPU."""
        channels_last = options["layout"] == "channels_last"
        return _torch.snippet(model, artifact, precision, batch=batch, channels_last=channels_last)


BACKEND = CudaEager()
