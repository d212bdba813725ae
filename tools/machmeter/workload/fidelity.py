"""How far a configuration's answers are from the model's own fp32 answers, and when they are too far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """Agreement of one configuration's outputs with the reference, over `images` images."""

    top1_agreement: float  # share of images with the same first class, 0 to 1
    sqnr_db: float  # decibels; 120 stands for "identical"
    images: int


# Identical outputs have an infinite ratio, and a benchmark must never return infinity: it breaks asv's
# publish and compare. Float32 itself carries about 150 dB, so a cap at 120 dB hides nothing.
SQNR_CAP_DB = 120.0

# (top-1 agreement, SQNR) below which a configuration is not a faster version of the same model but
# another model. Loose on purpose: they catch a broken quantization, not a cheap one. With EfficientNetLite0's
# trained weights, bf16 gives 0.83 and 24 dB on these images, sound int8 recipes 0.62 to 0.70 and 10 to 14 dB,
# and a recipe that is known to break it (one scale for all channels of a depthwise weight) 0.50 and 3 dB.
# With ResNet50's seeded weights sound int8 recipes give 0.75 to 0.81 and 6 to 19 dB.
_FLOORS: dict[str, tuple[float, float]] = {
    "fp32": (0.98, 40.0),
    "tf32": (0.95, 35.0),
    "bf16": (0.70, 15.0),
    "fp16": (0.90, 25.0),
    "int8": (0.55, 3.0),
    "int8-dynamic": (0.55, 3.0),
}


def compare(outputs: Logits, reference: Logits) -> Fidelity:
    """Compare `outputs` with `reference`, both N x classes.

    The signal to quantization noise ratio is 10 log10(sum((r - m)^2) / sum((r - o)^2)) over all logits, where
    m is each class's mean over the images: an offset that all images share carries no answer, so it must not
    count as signal. Outputs that are not finite agree on nothing and have 0 dB.
    Raises ValueError where the shapes differ.
    """
    if outputs.shape != reference.shape:
        raise ValueError(f"outputs have shape {outputs.shape}, the reference has {reference.shape}")
    finite = np.isfinite(outputs).all(axis=1)
    agreement = float(np.mean((outputs.argmax(axis=1) == reference.argmax(axis=1)) & finite))
    if not finite.all():
        return Fidelity(top1_agreement=agreement, sqnr_db=0.0, images=len(reference))
    exact = reference.astype(np.float64)
    signal = float(np.sum(np.square(exact - exact.mean(axis=0))))
    noise = float(np.sum(np.square(exact - outputs)))
    if noise == 0.0:
        decibels = SQNR_CAP_DB
    elif signal == 0.0:
        decibels = 0.0
    else:
        decibels = min(SQNR_CAP_DB, 10.0 * float(np.log10(signal / noise)))
    return Fidelity(top1_agreement=agreement, sqnr_db=decibels, images=len(reference))


def shortfall(fidelity: Fidelity, precision: str) -> str | None:
    """Return why `fidelity` is not acceptable for `precision`, or None where it is."""
    least_agreement, least_db = _FLOORS[precision]
    if fidelity.top1_agreement < least_agreement:
        return (
            f"wrong answers: top-1 agreement {fidelity.top1_agreement:.3f} is below {least_agreement:.2f} "
            f"for {precision}"
        )
    if fidelity.sqnr_db < least_db:
        return f"wrong answers: SQNR {fidelity.sqnr_db:.1f} dB is below {least_db:.0f} dB for {precision}"
    return None
