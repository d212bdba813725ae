"""What the other backends leave out: a batch from host memory to the GPU, and its answers back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter.backends import _torch as torch_on_cpu
from machmeter.backends.cuda import BATCHES, _peak, _session
from machmeter.errors import Unsupported
from machmeter.workload.artifacts import Artifact, Recipe, Store
from machmeter.workload.manifest import Details
from machmeter.workload.models import Model
from machmeter.workload.read_back import Effective

CLASSES = 1000


class TransferSession(_session.GpuSession):
    """Copies the images in and as many answers as a classifier gives out. Nothing is computed."""

    def __init__(self, *, batch: int, pinned: bool, details: Details) -> None:
        super().__init__(batch=batch, peak=_peak.Peak(), details=details)
        torch = self._torch
        self._pinned = pinned
        self._on_device = torch.zeros((batch, CLASSES), device="cuda")
        self._on_host = torch.empty((batch, CLASSES), pin_memory=pinned)

    def place(self, batch: NDArray[np.float32]) -> Any:
        """Return `batch` where a transfer begins: in host memory, pinned or not."""
        images = self._torch.from_numpy(batch)
        return images.pin_memory() if self._pinned else images

    def _enqueue(self, placed: Any) -> Any:
        self._images = placed.to("cuda", non_blocking=True)
        self._on_host.copy_(self._on_device, non_blocking=True)
        return self._on_device

    def effective(self) -> Effective:
        """Return that nothing is computed, and what is copied."""
        return self.read_back({}, includes_transfer=True, inputs="float32, in host memory")


class Transfer:
    """Option `memory`: `pinned` pages are copied by the GPU itself, `pageable` ones through a buffer of the driver."""

    name = "transfer"
    device = "cuda"
    version = 1
    stack = "cuda"
    packages = ("torch",)
    distributions = ("torch",)
    may_fork = False
    precisions = ("fp32",)
    batches = BATCHES
    options = {"memory": ("pinned", "pageable")}  # noqa: RUF012 - read-only by contract
    on_request: tuple[str, ...] = ()
    answers = False

    def unsupported(self, model: Model, precision: str, **options: str) -> str | None:
        """Return None: a copy needs nothing but a GPU."""
        return None

    def prepare(self, model: Model, precision: str, store: Store, *, batch: int, **options: str) -> Artifact:
        """Return an empty artifact."""

        def build(path: Any) -> None:
            (path / "empty").write_bytes(b"")

        return store.obtain(Recipe(kind="transfer", identity={"recipe": self.version}), build)

    def load(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> TransferSession:
        """Return the session that copies."""
        torch_on_cpu.set_threads(threads)
        return TransferSession(batch=batch, pinned=options["memory"] == "pinned", details={})

    def snippet(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> str:
        """Raise Unsupported: it is no configuration of a model."""
        raise Unsupported("a transfer computes nothing")


BACKEND = Transfer()
