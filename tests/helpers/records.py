"""What processes left in the evidence."""

from __future__ import annotations

from typing import Any

from helpers.project import Project
from machmeter.measure import settling


def records(project: Project, key: str) -> list[dict[str, Any]]:
    """Return what the processes of one cell left in the evidence, in the order in which they began."""
    (path,) = project.evidence.glob("*/*.json")
    content = settling.read(path)
    assert content is not None
    (run,) = content["runs"].values()
    return sorted(run["cells"][key].values(), key=lambda record: record["order"])
