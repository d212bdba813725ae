"""Comparisons made by hand, for the tests of what is written of them."""

from __future__ import annotations

from typing import Any

from machmeter.compare.documents import Comparison, Described, Difference, Finding, Lone, Mean, Shift


def finding(**facts: Any) -> Finding:
    told: dict[str, Any] = {
        "cell": "cpu.openvino.ResNet50(int8, 8)", "metric": "time_forward", "unit": "seconds", "better": "lower",
        "verdict": "regression", "base": 0.010, "head": 0.0112, "ratio": 1.12, "low": 1.10, "high": 1.14, "pairs": 8,
    }  # fmt: skip
    return Finding(**{**told, **facts})


def comparison(**facts: Any) -> Comparison:
    told: dict[str, Any] = {
        "machine": "xeon-1", "base": Described(label="main", commit="b" * 40, stack="cpu"),
        "head": Described(label="topic", commit="a" * 40, stack="cpu"), "result": "no regression", "rounds": 8,
        "interleaved": True, "host": {"CPU": "Xeon"},
    }  # fmt: skip
    return Comparison(**{**told, **facts})


def everywhere(text: str) -> Comparison:
    """Return a comparison that has `text` wherever the schema lets text stand."""
    return comparison(
        machine=text, base=Described(label=text, environment=text, stack=text, error=text),
        head=Described(label=text, environment=text, stack=text, error=text), result="regression",
        findings=[
            finding(cell=text, metric=text, unit=text[:40], verdict=verdict, words=text, ratio=ratio, low=ratio,
                    high=ratio)
            for verdict in ("regression", "improvement", "changed", "undecided", "not judged", "no change")
            for ratio in (1.12, None)
        ],
        lone=[Lone(cell=text, metric=text, kind=kind, reason=f"{text} {kind}")
              for kind in ("failed", "fixed", "new", "removed", "refused", "failing", "n/a")],
        packages=[Difference(name=text, base=text, head=text, pinned=pinned) for pinned in (False, True)],
        shift=Shift(ratio=1.1, low=1.0, high=1.2, control=text), means=[Mean(metric=text, ratio=1.0, cells=2)],
        host={text: text, "CPU": text, "GPU": text}, notes=[text],
    )  # fmt: skip
