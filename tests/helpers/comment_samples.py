"""Comparisons as they are met, from made-up measurements that the judge judges, and the comments made of them.

`python tests/helpers/comment_samples.py --write` writes the comments into docs/comments; a test compares them with
what is there.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from machmeter.compare import judge, markdown
from machmeter.compare.documents import Comparison, Measurements, Process, Row, Side

FOLDER = Path(__file__).parents[2] / "docs" / "comments"
LINK = "https://example.org/machmeter/compare.html"
BASE, HEAD, LATER = "b" * 40, "a1b2c3d4" + "e" * 32, "5ca1ab1e" + "f" * 32
MODELS = ("ResNet50", "ViTB16", "EfficientNetLite0")
HOST = {"CPU": "Intel(R) Xeon(R) Platinum 8488C", "thread budget": "16", "kernel": "6.8.0-45-generic"}
PINS = {"openvino": "2026.2.1", "nncf": "3.2.0", "torch": "2.13.0", "onnxruntime": "1.24.1"}
RESULTS: dict[str, tuple[str, str, float]] = {  # metric: unit, direction, value
    "time_forward": ("seconds", "lower", 0.0123),
    "peakmem_forward": ("bytes", "lower", 812e6),
    "track_top1_agreement": ("fraction", "higher", 0.9922),
    "track_sqnr": ("dB", "higher", 38.4),
}
ONCE = ("track_top1_agreement", "track_sqnr")


def row(
    cell: str,
    metric: str,
    number: float,
    random: np.random.Generator,
    *,
    late: bool = False,
    rounds: int = 8,
    **facts: Any,
) -> Row:
    """Return a metric of a cell as eight processes would have found it, each side first in every other round."""
    unit, better, _ = RESULTS.get(metric, ("seconds", "lower", 0.0))
    scatter = {"time_forward": 0.01, "time_matrix_product": 0.001}.get(metric, 0.001)
    values = [number] if metric in ONCE else number * np.exp(scatter * random.standard_normal(rounds))
    processes = [
        Process(round=place, order=2 * place + (place % 2 != late), value=float(value), samples=30)
        for place, value in enumerate(values)
    ]
    return Row(cell=cell, metric=metric, unit=unit, better=better, version="1.1", processes=processes, **facts)


def side(
    changes: dict[tuple[str, str], float] | None = None, *, seed: int, cells: Iterable[str] = (), shift: float = 1.0,
    **facts: Any,
) -> Side:  # fmt: skip
    """Return a side whose metrics are as in RESULTS, multiplied by `changes` (of a cell and a metric)."""
    random, late = np.random.default_rng(seed), seed % 2 == 0
    moved = {"time_forward": shift}
    names = list(cells) or [f"cpu.openvino.{model}({precision}, {batch})" for model in MODELS
                            for precision in ("fp32", "int8") for batch in (1, 8)]  # fmt: skip
    rows = [
        row(name, metric, number * (changes or {}).get((name, metric), 1.0) * moved.get(metric, 1.0), random, late=late)
        for name in names
        for metric, (_, _, number) in RESULTS.items()
    ]  # fmt: skip
    rows.append(row("control.Machine()", "time_matrix_product", 0.0405 * shift, random, late=late, control=True))
    told = {"label": "main", "commit": BASE, "stack": "cpu", "environment": "virtualenv-py3.11-STACKcpu"}
    return Side(**{"rows": rows, **told, "host": HOST, "versions": PINS, "pins": PINS, **facts})


def measured(base: Side, head: Side, **facts: Any) -> Measurements:
    """Return measurements of both sides on one machine."""
    told: dict[str, Any] = {"machine": "xeon-1", "rounds": 8, "interleaved": True, "seconds": 1512.0}
    return Measurements(base=base, head=head, **{**told, **facts})


def head(changes: dict[tuple[str, str], float] | None = None, **facts: Any) -> Side:
    """Return the other side of a pull request."""
    return side(changes, **{"seed": 2, "label": "bump-openvino", "commit": HEAD, **facts})


BUMPED = {**PINS, "openvino": "2026.4.1", "nncf": "3.3.0"}
INT8 = [f"cpu.openvino.{model}(int8, {batch})" for model in MODELS for batch in (1, 8)]


def all_samples() -> dict[str, Measurements]:
    """Return measurements of every kind by the name of the comment."""
    base, bumped = side(seed=1), {"versions": BUMPED, "pins": BUMPED}
    slower = {(INT8[0], "time_forward"): 1.125, (INT8[1], "time_forward"): 1.081, (INT8[2], "peakmem_forward"): 1.31,
              (INT8[4], "time_forward"): 0.87}  # fmt: skip
    failing = head()
    lost = [
        msgspec.structs.replace(item, status="failed", reason="crashed (signal 11, segmentation fault)", processes=[])
        if item.cell in INT8[2:4] else item
        for item in failing.rows
    ]  # fmt: skip
    quicker = {(cell, "time_forward"): 0.62 for cell in INT8} | {
        (INT8[0], "track_top1_agreement"): 0.8,
        (INT8[0], "track_sqnr"): 0.5,
    }
    untried = [msgspec.structs.replace(item, status="not run", processes=[]) for item in base.rows]
    many = [f"cpu.onnxruntime.Network{number:04}(int8, 8)" for number in range(500)]
    worse = {(cell, metric): 1.3 for cell in many for metric in ("time_forward", "peakmem_forward")}
    return {
        "nothing": measured(base, head()),
        "regression": measured(base, head(slower, **bumped)),
        "failure": measured(base, msgspec.structs.replace(failing, rows=lost)),
        "improvement-with-fidelity-loss": measured(base, head(quicker, **bumped)),
        "not-comparable": measured(base, head(host={**HOST, "CPU": "AMD EPYC 9654 96-Core Processor"})),
        "does-not-build": measured(
            msgspec.structs.replace(base, rows=untried),
            head(error="does not build: error: subprocess-exited-with-error", rows=untried),
            rounds=0,
        ),
        "host-shift": measured(base, head(shift=1.09)),
        "many-rows": measured(side(seed=1, cells=many), head(worse, cells=many)),
    }


def comments() -> dict[str, str]:
    """Return the comments in docs/comments by file name."""
    judged = {name: judge.compare(item) for name, item in all_samples().items()}
    made = {f"{name}.md": markdown.render(item, link=LINK) for name, item in judged.items()}
    several: list[markdown.Section] = [
        judged["nothing"],
        msgspec.structs.replace(judged["regression"], machine="xeon-2"),
        markdown.Unusable(name="gpu-1", reason="the measurements are not there: its job ended without any"),
    ]
    made["several-machines.md"] = markdown.render_all(several, link=LINK)
    made["head-has-moved.md"] = markdown.render(judged["nothing"], link=LINK, head_now=LATER)
    return {name: f"{text}\n" for name, text in made.items()}


def comparison(name: str) -> Comparison:
    """Return the comparison of one sample."""
    return judge.compare(all_samples()[name])


def main() -> None:
    """Write the comments, or say which are out of date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="write docs/comments; default: compare")
    write, stale = parser.parse_args().write, []
    for name, text in comments().items():
        path = FOLDER / name
        if write:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    if stale:
        raise SystemExit(
            f"docs/comments: {', '.join(stale)} out of date: run 'python tests/helpers/comment_samples.py --write'"
        )


if __name__ == "__main__":
    main()
