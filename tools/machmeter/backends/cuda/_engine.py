"""What TensorRT is told and what it answers, as pure functions: profiles, flags, the engine's name, its layers."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from machmeter.json_shape import Json, JsonValue

# TensorRT's layers that multiply, as its inspector calls them. Fused blocks (Myelin) are told by their kernels.
_COMPUTE_LAYERS = ("conv", "gemm", "matrixmultiply", "fullyconnected", "attention", "mha")
_KERNELS = re.compile(r"gemm|conv|fprop|xmma|cutlass|mha|nvjet|attention", re.IGNORECASE)
_TYPES = (("int8", ("int8",)), ("bf16", ("bf16", "bfloat16")), ("fp16", ("half", "fp16", "float16")))


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One optimisation profile: the batches for which its kernels are chosen, tuned for the largest of them."""

    least: int
    best: int
    most: int


def profiles(batches: Iterable[int]) -> tuple[Profile, ...]:
    """Return one profile per measured batch, which together cover every batch up to the largest without a gap.

    A profile is tuned for one batch, its `best`; those below it, down to the next profile, it serves as well.
    """
    wanted = sorted(set(batches))
    if not wanted or wanted[0] < 1:
        raise ValueError(f"batches must be 1 or more, not {wanted}")
    lower = [1, *(batch + 1 for batch in wanted[:-1])]
    return tuple(Profile(least=least, best=most, most=most) for least, most in zip(lower, wanted, strict=True))


def profile_of(batch: int, known: Sequence[Profile]) -> int:
    """Return the index of the profile that serves `batch`. Raises ValueError where none does."""
    for number, profile in enumerate(known):
        if profile.least <= batch <= profile.most:
            return number
    raise ValueError(f"no profile serves batch {batch}: the largest is for {known[-1].most}")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the builder is told beside the network. Types are the network's own: it is strongly typed."""

    tf32: bool  # whether float32 layers may round their inputs
    workspace_bytes: int
    optimization_level: int = 3  # TensorRT's own default


def settings(precision: str, memory_bytes: int) -> Settings:
    """Return the settings for `precision` on a GPU with `memory_bytes`.

    fp32 means fp32: TensorRT rounds to TF32 unless it is told not to. What int8 leaves in float32 may be rounded.
    """
    return Settings(tf32=precision != "fp32", workspace_bytes=memory_bytes // 4)


def refused(types: Mapping[str, int], precision: str, problems: Sequence[str]) -> str | None:
    """Return why a network with multiplying nodes of `types` must not be built as `precision`, or None."""
    if problems:
        return f"the network's quantization is not TensorRT's: {problems[0]}"
    if not types.get(precision):
        return f"the network has no {precision} operator: {dict(types)}"
    return None


def checked_input(names: Sequence[str], shapes: Sequence[Sequence[int]], image: tuple[int, int, int]) -> str | None:
    """Return why a parsed network is not that of the model: one input `input` of any batch of `image`, one output."""
    if list(names) != ["input", "logits"]:
        return f"expected the tensors input and logits, the parser found {', '.join(names)}"
    if list(shapes[0][1:]) != list(image):
        return f"expected images of {image}, the parser found {tuple(shapes[0][1:])}"
    if shapes[0][0] != -1:
        return f"the batch is frozen at {shapes[0][0]}"
    return None


def identity(gpu: Mapping[str, str], version: str, known: Sequence[Profile]) -> dict[str, JsonValue]:
    """Return what an engine depends on beside its network: GPU, driver, TensorRT version, profiles."""
    return {
        **gpu,
        "tensorrt": version,
        "profiles": [[profile.least, profile.best, profile.most] for profile in known],
    }


def timing_cache_name(gpu: Mapping[str, str], version: str) -> str:
    """Return the file name of the timing cache: kernels' times hold for one GPU, driver and TensorRT version."""
    return "-".join(re.sub(r"[^\w.]+", "_", part) for part in (gpu["gpu"], gpu["driver"], version)) + ".timing"


@dataclass(frozen=True, kw_only=True)
class Layers:
    """What an engine executes: multiplying layers by type, the most frequent kernels, the number of all layers."""

    compute: Mapping[str, int]
    kernels: Mapping[str, int]
    count: int


def parse_layers(text: str) -> Layers:
    """Return what the inspector's JSON says is executed.

    A layer counts where it multiplies, under the lowest type among its inputs; TF32 is told by the kernel's name.
    Raises ValueError where the engine was built without its details, so that nothing can be proved.
    """
    layers = json.loads(text).get("Layers", [])
    if not layers or not all(isinstance(layer, dict) for layer in layers):
        raise ValueError("the engine has no details of its layers: it was not built with detailed verbosity")
    compute: Counter[str] = Counter()
    kernels: Counter[str] = Counter()
    for layer in layers:
        kernel = str(layer.get("TacticName") or "")
        kind = str(layer.get("LayerType") or layer.get("ParameterType") or "").lower()
        if not (any(name in kind for name in _COMPUTE_LAYERS) or _KERNELS.search(kernel)):
            continue
        compute[_type(layer, kernel)] += 1
        kernels[kernel or kind] += 1
    return Layers(compute=dict(compute), kernels=dict(kernels.most_common(8)), count=len(layers))


def _type(layer: Json, kernel: str) -> str:
    told = " ".join(
        f"{item.get('Datatype', '')} {item.get('Format/Datatype', '')}".lower()
        for item in layer.get("Inputs", ())
        if isinstance(item, dict)
    )
    for name, words in _TYPES:
        if any(word in told for word in words):
            return name
    return "tf32" if "tf32" in kernel.lower() else "fp32"
