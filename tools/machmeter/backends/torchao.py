"""torchao: static int8 quantization of the exported program (PT2E), compiled by inductor."""

from __future__ import annotations

from typing import Any

import numpy as np

from machmeter.backends import _aot, _torch
from machmeter.machine import host
from machmeter.workload import shared_artifacts
from machmeter.workload.artifacts import Artifact, Store
from machmeter.workload.models import Model

CALIBRATION_BATCH = 8


class TorchAO:
    """Post-training static int8 with the X86Inductor quantizer: activations per tensor, weights per channel."""

    name = "torchao"
    device = "cpu"
    version = 1
    stack = "cpu"
    packages = ("torch", "torchao")
    distributions = ("torchao", "torch")
    may_fork = False
    precisions = ("int8",)
    options: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - read-only by contract
    on_request: tuple[str, ...] = ()
    answers = True

    def unsupported(self, model: Model, precision: str, **options: str) -> str | None:
        """Return a reason where a library, a compiler or AVX-512 VNNI is missing."""
        missing = model.missing_packages()
        if missing:
            return f"not installed: {', '.join(missing)}"
        if not host.cpu().has_int8:
            return "this CPU has no int8 dot products (VNNI or AMX), which inductor's int8 kernels need"
        return _aot.no_compiler()

    def prepare(self, model: Model, precision: str, store: Store, *, batch: int, **options: str) -> Artifact:
        """Quantize with calibration images, then compile ahead of time for `batch`."""
        weights = shared_artifacts.weights(model, store)
        calibration = shared_artifacts.reference(model, store).calibration
        identity = shared_artifacts.identity(
            model, backend=self.name, recipe=self.version, precision=precision, batch=batch
        )
        described = _aot.recipe(identity, weights, threads=host.thread_budget())

        def program() -> Any:
            images = np.load(calibration)
            return _quantized(shared_artifacts.module(model, weights), images, model.input_shape, batch)

        return _aot.compiled(store, described, program)

    def load(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> _torch.TorchSession:
        """Load the compiled package."""
        details = {"quantizer": "X86InductorQuantizer"}
        return _aot.load(model, artifact, batch=batch, threads=threads, details=details)

    def snippet(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> str:
        """Return a program that loads the compiled package."""
        return _aot.snippet(model, artifact, batch=batch, threads=threads)


def _quantized(module: Any, calibration: Any, shape: tuple[int, int, int], batch: int) -> Any:
    """Return the exported int8 program of `module` for batches of `batch` images."""
    import torch
    from torchao.quantization.pt2e import move_exported_model_to_eval
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer

    dynamic = ({0: torch.export.Dim("batch", min=1, max=shared_artifacts.LARGEST_BATCH)},)
    # Without strict=True the quantizer meets partitions with several output nodes and gives up.
    exported = torch.export.export(module, (torch.zeros(2, *shape),), dynamic_shapes=dynamic, strict=True).module()
    quantizer = x86_inductor_quantizer.X86InductorQuantizer()
    quantizer.set_global(x86_inductor_quantizer.get_default_x86_inductor_quantization_config())
    observed = prepare_pt2e(exported, quantizer)
    with torch.no_grad():
        for images in torch.from_numpy(calibration).split(CALIBRATION_BATCH):
            observed(images)
    converted = move_exported_model_to_eval(convert_pt2e(observed))
    example = torch.from_numpy(_torch.example_batch(shape, batch, channels_last=True))
    with torch.no_grad():
        return torch.export.export(converted, (example,))


BACKEND = TorchAO()
