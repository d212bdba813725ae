"""The GPU that this process computes on: found, not in use by others, known to torch; and what depends on it."""

from __future__ import annotations

import functools

from machmeter.errors import CellFailed, Unsupported
from machmeter.machine import gpu, nvml


@functools.cache
def ready() -> tuple[gpu.Gpu, tuple[nvml.GpuState, ...]]:
    """Return the GPU and its states before this process used it.

    Raises Unsupported where there is none, CellFailed where others are using it.
    """
    found = gpu.find()
    if isinstance(found, str):
        raise Unsupported(found)
    states = nvml.look(found.bus)
    if problem := nvml.busy(states):
        raise CellFailed(problem)
    import torch

    if not torch.cuda.is_available():
        raise Unsupported(f"this torch ({torch.__version__}) cannot use the {found.name}")
    if reason := no_kernels(torch.cuda.get_arch_list(), found.capability):
        raise Unsupported(f"torch {torch.__version__} has no kernels for the {found.name}: {reason}")
    return found, states


def no_kernels(built_for: list[str], capability: tuple[int, int]) -> str | None:
    """Return why kernels `built_for` architectures ("sm_80", "compute_90") cannot run on `capability`, or None.

    A binary runs on its own generation from its minor version on; "compute" is PTX, which any newer GPU compiles.
    """
    for item in built_for:
        kind, _, digits = item.partition("_")
        number = "".join(character for character in digits if character.isdigit())
        if not number:
            continue
        built = (int(number[:-1]), int(number[-1]))
        if kind == "compute" and built <= capability:
            return None
        if kind == "sm" and built[0] == capability[0] and built[1] <= capability[1]:
            return None
    return f"it is {capability[0]}.{capability[1]} and they are for {', '.join(built_for) or 'nothing'}"


def identity() -> dict[str, str]:
    """Return what an artifact depends on that is compiled for this GPU: the GPU and its driver. Raises Unsupported."""
    found = gpu.find()
    if isinstance(found, str):
        raise Unsupported(found)
    return {**found.identity(), "driver": nvml.snapshot(found.bus).driver or f"for CUDA {found.cuda}"}
