"""What the tests of ladders share."""

from __future__ import annotations

from typing import Any


def record(speed: float | None, **more: Any) -> dict[str, Any]:
    proof = {"huge_page_bytes": 0, "memory_binding": {"bound": False}, "cpus": [0, 1], "variables": {}}
    settings = {"backend": "eager", "precision": "fp32", "batch": 1}
    if speed is None:
        return {"status": "n/a", "started_at": 1.0, "settings": settings, **more}
    return {
        "status": "ok",
        "started_at": 1.0,
        "settings": settings,
        "images_per_second": speed,
        "median_seconds": 1 / speed,
        "call_seconds": [1 / speed] * 5,
        "facts": {"track_top1_agreement": 1.0, "track_sqnr": 100.0},
        "instances": [{"proof": proof, "threads": 2, "artifact": {"kind": "weights", "key": "k"}}],
        **more,
    }
