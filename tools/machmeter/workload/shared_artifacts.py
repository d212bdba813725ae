"""The artifacts that every backend starts from: weights, reference answers and one ONNX export per model."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter.json_shape import JsonValue
from machmeter.machine import host
from machmeter.workload import inputs, models
from machmeter.workload.artifacts import Artifact, Recipe, Store
from machmeter.workload.manifest import Details
from machmeter.workload.models import Model

WEIGHTS_VERSION = 1
REFERENCE_VERSION = 2  # 2: attention is counted among the operations
ONNX_VERSION = 1

SETTLING_IMAGES = 32  # from which the batch-norm statistics of seeded weights are taken
LARGEST_BATCH = 1024  # torch.export wants a bound for the batch dimension


def identity(model: Model, **more: JsonValue) -> dict[str, JsonValue]:
    """Return the part of an artifact's identity that says which model it is of."""
    return {"model": model.name, "model_version": model.version, "weights": model.weights(), **more}


def weights(model: Model, store: Store) -> Artifact:
    """Return the artifact with the model's state dictionary (`weights.pt`)."""
    calibration = _inputs(model, store)
    recipe = Recipe(
        kind="weights",
        identity=identity(model, recipe=WEIGHTS_VERSION, seed=models.SEED),
        packages=model.packages,
        parents=(calibration,),
        given=True,
    )

    def build(folder: Path) -> None:
        import torch

        if model.weights() == "pretrained":
            module = model.build(True)
        else:
            settle = torch.from_numpy(np.load(calibration.path("calibration.npy"))[:SETTLING_IMAGES])
            module = models.build_seeded(model, settle, host.thread_budget())
        torch.save(module.state_dict(), folder / "weights.pt")

    return store.obtain(recipe, build)


def module(model: Model, artifact: Artifact) -> Any:
    """Return the torch module of `model` in eval mode with the weights of `artifact`."""
    import torch

    for name in model.packages:  # torch 2.8 cannot be imported any further where a device is set
        importlib.import_module(name)
    with torch.device("meta"):  # no time is spent on initial values that are replaced at once
        skeleton = model.build(False)
    state = torch.load(artifact.path("weights.pt"), map_location="cpu", weights_only=True, mmap=False)
    skeleton.load_state_dict(state, assign=True)
    return skeleton.eval().requires_grad_(False)


def _inputs(model: Model, store: Store) -> Artifact:
    recipe = Recipe(
        kind="inputs",
        identity={
            "recipe": inputs.RECIPE_VERSION,
            "seed": models.SEED,
            "counts": [inputs.CALIBRATION_IMAGES, inputs.EVALUATION_IMAGES],
            "input_shape": list(model.input_shape),
            "mean": list(model.mean),
            "std": list(model.std),
        },
        packages=("scikit-learn", "pillow", "numpy"),
        given=True,
    )

    def build(folder: Path) -> None:
        calibration, evaluation = inputs.crops(model)
        np.save(folder / "calibration.npy", calibration)
        np.save(folder / "evaluation.npy", evaluation)

    return store.obtain(recipe, build)


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Inputs, and the answers of the model's own fp32 eager run to the evaluation inputs."""

    evaluation: Path  # .npy, N x C x H x W float32
    calibration: Path
    logits: NDArray[np.float32]  # N x classes
    operations_per_image: float  # multiplications and additions
    artifact: Artifact


def reference(model: Model, store: Store) -> Reference:
    """Return the reference answers of `model`, computing them once."""
    photographs = _inputs(model, store)
    recipe = Recipe(
        kind="reference",
        identity=identity(model, recipe=REFERENCE_VERSION),
        packages=model.packages,
        parents=(photographs, weights(model, store)) if _can_build(model) else (),
        given=True,
    )

    def build(folder: Path) -> Details:
        import torch

        torch.set_num_threads(host.thread_budget())
        network = module(model, weights(model, store))
        images = torch.from_numpy(np.load(photographs.path("evaluation.npy")))
        with torch.no_grad():
            logits = torch.cat([network(part) for part in images.split(8)]).numpy()
        np.save(folder / "logits.npy", logits)
        return {
            "operations_per_image": count_operations(network, images[:1]),
            "distinct_top1_classes": len(set(logits.argmax(axis=1).tolist())),
        }

    artifact = store.obtain(recipe, build)
    return Reference(
        evaluation=photographs.path("evaluation.npy"),
        calibration=photographs.path("calibration.npy"),
        logits=np.load(artifact.path("logits.npy")),
        operations_per_image=_number(artifact.details["operations_per_image"]),
        artifact=artifact,
    )


def _number(value: JsonValue) -> float:
    assert isinstance(value, int | float), f"a number is expected, not {value!r}"
    return float(value)


def count_operations(network: Any, images: Any) -> int:
    """Return the operations of one forward call of the torch module `network`, as torch's own counter counts them.

    Convolutions and matrix products count; a multiplication and an addition are two operations. The counter does
    not know the fused attention kernel of the CPU, 4 % of ViTB16, so attention is written out while it counts.
    """
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        network(images)
    return int(counter.get_total_flops())


def _can_build(model: Model) -> bool:
    return not model.missing_packages()


def onnx_recipe(model: Model, parent: Artifact | None) -> Recipe:
    """Return the recipe of the model's one ONNX export."""
    return Recipe(
        kind="onnx",
        identity=identity(model, recipe=ONNX_VERSION),
        packages=(*model.packages, "onnx", "onnxscript"),
        parents=(parent,) if parent else (),
    )


def onnx(model: Model, store: Store) -> Artifact:
    """Return the artifact with `model.onnx`: float32, any batch size, input `input` and output `logits`."""
    recipe = onnx_recipe(model, weights(model, store) if _can_build(model) else None)

    def build(folder: Path) -> None:
        import torch

        network = module(model, weights(model, store))
        # Two images: an example of one would let the exporter freeze the batch at one.
        example = (torch.zeros(2, *model.input_shape),)
        program = torch.onnx.export(
            network,
            example,
            dynamo=True,
            dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=LARGEST_BATCH)},),
            input_names=["input"],
            output_names=["logits"],
            verbose=False,
        )
        program.save(str(folder / "model.onnx"))

    return store.obtain(recipe, build)
