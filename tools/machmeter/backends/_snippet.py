"""The frame of the programs that load a measured configuration without machmeter."""

from __future__ import annotations

import json
from collections.abc import Iterable

from machmeter.workload.models import Model


def program(
    model: Model,
    *,
    batch: int,
    imports: Iterable[str],
    constants: Iterable[str],
    setup: Iterable[str],
    run: Iterable[str],
) -> str:
    """Return a program that defines `run(batch)` and, run as a script, calls it once on zeros.

    `imports` are names of modules besides numpy, `constants` and `setup` lines at the top, `run` the lines of the
    function, without their indentation.
    """
    third_party = sorted(
        {*(f"import {name}" for name in imports), "import numpy as np"}, key=lambda line: line.split()[1]
    )
    shape = ", ".join(str(length) for length in (batch, *model.input_shape))
    lines = [
        *third_party,
        "",
        *constants,
        "",
        *setup,
        "",
        "",
        "def run(batch):",
        f'    """Return {batch} x classes for `batch`: {shape.replace(", ", " x ")}, float32."""',
        *(f"    {line}" for line in run),
        "",
        "",
        'if __name__ == "__main__":',
        f"    print(run(np.zeros(({shape}), np.float32)).shape)",
    ]
    return "\n".join(lines) + "\n"


def literal(value: object) -> str:
    """Return a text, or a dictionary or list of texts and numbers, as it stands in a program."""
    return json.dumps(value, ensure_ascii=False)
