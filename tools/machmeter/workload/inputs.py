"""Real photographs as model inputs: for calibration, and, from other pixels, for everything measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter.workload.models import SEED, Model

Images = NDArray[np.float32]

RECIPE_VERSION = 1
CALIBRATION_IMAGES = 64
EVALUATION_IMAGES = 64
SMALLEST_CROP = 192  # pixels of the photograph; smaller ones show texture, which no classifier is sure of
ALIGNMENT = 64  # bytes: a cache line, and what AVX-512 loads like best


def crops(model: Model) -> tuple[Images, Images]:
    """Return (calibration, evaluation) inputs of `model`, each N x C x H x W, normalised as it expects.

    They are random crops of the two photographs that scikit-learn ships. Calibration crops come from the
    left half of each photograph and evaluation crops from the right half, because a quantized model must not
    be judged on what it was calibrated with. (Resampling reads up to three pixels across the middle.)
    """
    from PIL import Image
    from sklearn.datasets import load_sample_images

    photographs = [Image.fromarray(pixels) for pixels in load_sample_images().images]
    random = np.random.default_rng(SEED)
    _, height, width = model.input_shape

    def crop(photograph: Any, left: bool) -> Images:
        half = photograph.width // 2
        side = int(random.integers(SMALLEST_CROP, min(half, photograph.height) + 1))
        x = int(random.integers(0, half - side + 1)) + (0 if left else photograph.width - half)
        y = int(random.integers(0, photograph.height - side + 1))
        patch = photograph.resize((width, height), Image.Resampling.BICUBIC, box=(x, y, x + side, y + side))
        pixels = np.asarray(patch, dtype=np.float32) / 255.0
        if random.integers(2):
            pixels = pixels[:, ::-1]
        normalised = (pixels - np.array(model.mean, np.float32)) / np.array(model.std, np.float32)
        return np.ascontiguousarray(normalised.transpose(2, 0, 1), dtype=np.float32)

    def batch(count: int, left: bool) -> Images:
        return np.stack([crop(photographs[i % len(photographs)], left) for i in range(count)])

    return batch(CALIBRATION_IMAGES, left=True), batch(EVALUATION_IMAGES, left=False)


def aligned(array: Images, channels_last: bool = False) -> Images:
    """Return a 64-byte aligned copy of `array` (N x C x H x W).

    With `channels_last` the copy has the same shape over memory ordered N, H, W, C, as a torch tensor of
    that memory format has.
    """
    source = array.transpose(0, 2, 3, 1) if channels_last else array
    raw = np.empty(source.nbytes + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    copy = raw[start : start + source.nbytes].view(np.float32).reshape(source.shape)
    copy[...] = source
    return copy.transpose(0, 3, 1, 2) if channels_last else copy


@dataclass(kw_only=True)
class Evaluation:
    """The inputs of a measurement, cut into batches, each in a buffer of its own.

    They come from the file `path` (.npy, N x C x H x W), or, for a backend without answers, from a seeded
    generator. The last images are followed by the first where the batch does not divide their number.
    """

    path: Path | None
    model: Model
    batch: int
    channels_last: bool = False
    count: int = EVALUATION_IMAGES

    @property
    def source(self) -> str:
        """Return where the pixels come from."""
        return "photographs" if self.path else "noise"

    @property
    def chunks(self) -> int:
        """Return how many batches it takes to see every image."""
        return -(-self.count // self.batch)

    def chunk(self, number: int) -> Images:
        """Return batch `number` in a new aligned buffer.

        The file is mapped only for the moment of the copy: left mapped, its pages would count as memory of
        the model that is measured.
        """
        indexes = np.arange(number * self.batch, (number + 1) * self.batch) % self.count
        if self.path is None:
            random = np.random.default_rng([SEED, number])
            images = random.standard_normal((self.batch, *self.model.input_shape), dtype=np.float32)
        else:
            images = np.load(self.path, mmap_mode="r")[indexes]
        return aligned(images, self.channels_last)
