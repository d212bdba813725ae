"""Whether a precision label is true: it is proved from what the runtime says it executed."""

from __future__ import annotations

from collections.abc import Mapping

# Stands where the runtime is left to choose. It claims nothing, so that what ran is read back and shown.
DEFAULT = "default"

# A precision below fp32 that turns up under the label "fp32" makes the label a lie.
_LOWER = ("tf32", "bf16", "fp16", "int8")


def falsehood(precision: str, compute: Mapping[str, int]) -> str | None:
    """Return why `precision` is not what ran, or None where the label is true.

    `compute` counts the executed multiplying operations (convolutions, matrix products) by data type.
    tf32, bf16 and fp16 must be what most of them ran in; int8 must occur, because what surrounds it (a first
    layer, a normalisation) is often left in a higher precision on purpose.
    """
    total = sum(compute.values())
    described = ", ".join(f"{count} {kind}" for kind, count in sorted(compute.items())) or "none"
    if precision == "fp32":
        if any(compute.get(kind) for kind in _LOWER):
            return f"labelled fp32, but the runtime executed {described} operations"
    elif precision in ("tf32", "bf16", "fp16"):
        if 2 * compute.get(precision, 0) <= total or total == 0:
            return f"labelled {precision}, but the runtime executed {described} operations"
    elif not compute.get("int8"):
        return f"labelled {precision}, but nothing was quantized: the runtime executed {described} operations"
    return None


def dominant(compute: Mapping[str, int]) -> str:
    """Return the precision that a runtime chose: that of most of the multiplying operations in `compute`.

    int8 counts as chosen wherever it occurs, as in `falsehood`. Returns fp32 where nothing was counted.
    """
    if compute.get("int8"):
        return "int8"
    return max(compute, key=lambda kind: compute[kind], default="fp32")
