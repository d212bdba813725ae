"""Agreement with the reference, and the gate that turns a cell red."""

from __future__ import annotations

import numpy as np
import pytest

from machmeter.workload import fidelity


@pytest.fixture
def reference() -> fidelity.Logits:
    return np.random.default_rng(0).standard_normal((200, 10)).astype(np.float32)


def test_identical_outputs(reference: fidelity.Logits) -> None:
    """Infinity would break asv: the ratio is capped."""
    found = fidelity.compare(reference.copy(), reference)
    assert found == fidelity.Fidelity(top1_agreement=1.0, sqnr_db=120.0, images=200)


def test_sqnr_of_known_noise(reference: fidelity.Logits) -> None:
    """Noise of a tenth of the signal's amplitude is 20 dB below it."""
    noise = np.random.default_rng(1).standard_normal(reference.shape).astype(np.float32) / 10
    assert fidelity.compare(reference + noise, reference).sqnr_db == pytest.approx(20.0, abs=0.5)


def test_an_offset_that_all_images_share_is_no_signal(reference: fidelity.Logits) -> None:
    noise = np.random.default_rng(1).standard_normal(reference.shape).astype(np.float32) / 10
    shifted = reference + np.float32(50.0)
    assert fidelity.compare(shifted + noise, shifted).sqnr_db == pytest.approx(20.0, abs=0.5)


def test_outputs_that_are_not_finite_agree_on_nothing(reference: fidelity.Logits) -> None:
    broken = reference.copy()
    broken[:, 0] = np.nan
    assert fidelity.compare(broken, reference) == fidelity.Fidelity(top1_agreement=0.0, sqnr_db=0.0, images=200)


def test_shapes_must_agree(reference: fidelity.Logits) -> None:
    with pytest.raises(ValueError, match="shape"):
        fidelity.compare(reference[:, :9], reference)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16", "int8", "int8-dynamic"])
def test_a_collapse_of_accuracy_is_noticed(precision: str) -> None:
    """M14: agreement that falls from 80 % to 35 % is not a faster version of the same model."""
    collapsed = fidelity.Fidelity(top1_agreement=0.35, sqnr_db=30.0, images=64)
    assert "top-1 agreement 0.350" in (fidelity.shortfall(collapsed, precision) or "")


def test_a_sound_quantization_passes() -> None:
    assert fidelity.shortfall(fidelity.Fidelity(top1_agreement=0.97, sqnr_db=18.0, images=64), "int8") is None


def test_noise_alone_is_noticed() -> None:
    noisy = fidelity.Fidelity(top1_agreement=0.90, sqnr_db=2.0, images=64)
    assert "SQNR 2.0 dB" in (fidelity.shortfall(noisy, "int8") or "")
