"""A backend that computes nothing: its time is what the harness itself costs per call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from machmeter.errors import Unsupported
from machmeter.workload.artifacts import Artifact, Recipe, Store
from machmeter.workload.models import Model
from machmeter.workload.read_back import Effective


class NullSession:
    """Returns the same zeros for every batch."""

    channels_last = False

    def __init__(self, batch: int, threads: int) -> None:
        self._output = np.zeros((batch, 1), np.float32)
        self._threads = threads

    def __call__(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return zeros at once."""
        return self._output

    def effective(self) -> Effective:
        """Return that nothing is computed."""
        return Effective(threads=self._threads)

    def compilations(self) -> int:
        """Return 0: nothing is ever compiled."""
        return 0


class Null:
    """Does nothing, for every model."""

    name = "null"
    device = "control"
    version = 1
    stack = "minimal"
    packages: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ()
    may_fork = True
    precisions = ("fp32",)
    options: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - read-only by contract
    on_request: tuple[str, ...] = ()
    answers = False

    def unsupported(self, model: Model, precision: str, **options: str) -> str | None:
        """Return None: there is nothing that could be missing."""
        return None

    def prepare(self, model: Model, precision: str, store: Store, *, batch: int, **options: str) -> Artifact:
        """Return an empty artifact."""
        recipe = Recipe(kind="null", identity={"recipe": self.version})

        def build(folder: Path) -> None:
            (folder / "empty").write_bytes(b"")

        return store.obtain(recipe, build)

    def load(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> NullSession:
        """Return the session that does nothing."""
        return NullSession(batch, threads)

    def snippet(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> str:
        """Raise Unsupported: nobody wants to compute nothing."""
        raise Unsupported("the null backend computes nothing")


BACKEND = Null()
