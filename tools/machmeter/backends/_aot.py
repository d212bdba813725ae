"""Ahead-of-time compilation by inductor, with frozen (constant-folded, prepacked) weights."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machmeter.backends import _snippet, _torch
from machmeter.machine import host
from machmeter.workload.artifacts import Artifact, Recipe, Store
from machmeter.workload.manifest import Details, Identity
from machmeter.workload.models import Model

PACKAGE = "model.pt2"


def no_compiler() -> str | None:
    """Return a reason where inductor cannot compile because there is no C++ compiler."""
    if shutil.which("g++") or shutil.which("clang++"):
        return None
    return "no C++ compiler: install g++ (Debian: apt install g++)"


def recipe(identity: Identity, parent: Artifact, *, threads: int) -> Recipe:
    """Return the recipe of a package compiled for one shape, this CPU and `threads` threads."""
    return Recipe(
        kind="aot",
        identity=identity,
        packages=("torch", "torchao") if identity["backend"] == "torchao" else ("torch",),
        parents=(parent,),
        cpu_dependent=True,
        threads=threads,
    )


def compiled(store: Store, described: Recipe, program: Callable[[], Any], autocast: bool = False) -> Artifact:
    """Return the compiled package of the exported program that `program()` returns.

    With `autocast` both the export and the compilation happen under bf16 autocast: an exported program
    carries no autocast of its own, it takes the one around it when it is lowered.
    """

    def build(folder: Path) -> None:
        import torch

        _torch.set_threads(host.thread_budget())
        context = torch.autocast("cpu", torch.bfloat16, enabled=autocast)
        with _torch.cold_compiler(), torch.no_grad(), context:
            torch._inductor.aoti_compile_and_package(
                program(), package_path=str(folder / PACKAGE), inductor_configs={"freezing": True}
            )

    return store.obtain(described, build)


def load(model: Model, artifact: Artifact, *, batch: int, threads: int, details: Details) -> _torch.TorchSession:
    """Load a compiled package; its precision was fixed when it was compiled."""
    import torch

    _torch.set_threads(threads)
    package = torch._inductor.aoti_load_package(str(artifact.path(PACKAGE)))
    return _torch.TorchSession(
        package,
        batch=_torch.example_batch(model.input_shape, batch, channels_last=True),
        channels_last=True,
        details={"compiler": "inductor, ahead of time", "freezing": True, **details},
    )


def snippet(model: Model, artifact: Artifact, *, batch: int, threads: int) -> str:
    """Return a program that loads the compiled package of `artifact`; batch, CPU and threads are compiled in."""
    return _snippet.program(
        model,
        batch=batch,
        imports=["torch"],
        constants=[f"PACKAGE = {_snippet.literal(str(artifact.path(PACKAGE).resolve()))}"],
        setup=[f"torch.set_num_threads({threads})", "network = torch._inductor.aoti_load_package(PACKAGE)"],
        run=_torch.snippet_run(channels_last=True, autocast=False),
    )
