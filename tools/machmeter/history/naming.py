"""Names for files, links and readers: safe in a path and an address, and never the same for two things."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from machmeter.history.data import short_hash

_PLAIN = re.compile(r"^[a-z0-9][a-z0-9._-]{0,59}$")
_LONGEST = 60


def slug(name: str, *identity: Any) -> str:
    """Return a name for files and links that stands for `identity` (JSON data, default: the name).

    Only a name that is plain already, and is the whole identity, stays as it is. Any other is made plain and gets
    eight digits of a hash: capital letters too, as some file systems do not tell them from small ones.
    """
    if not identity and _PLAIN.match(name):
        return name
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:_LONGEST].strip("-.")
    return f"{plain or 'x'}-{short_hash(name, *identity)[:8]}"


def environment_labels(described: Sequence[tuple[str, str, dict[str, str]]]) -> list[str]:
    """Return a short label for each environment, given as (name, key, what defines it): what tells it from the others.

    Where that does not tell it, its whole name, and as a last resort the key with it.
    """
    fields = sorted(
        {field for _, _, parts in described for field in parts}, key=lambda field: (field != "STACK", field)
    )
    varying = [field for field in fields if len({parts.get(field) for _, _, parts in described}) > 1]
    labels = []
    for name, _, parts in described:
        told = [f"{field} {parts[field]}".strip() for field in varying if field in parts]
        labels.append(", ".join(told) or name or "default")
    for candidates in ([name for name, _, _ in described], [f"{name} ({key})" for name, key, _ in described]):
        repeated = {label for label in labels if labels.count(label) > 1} if len(set(labels)) < len(labels) else set()
        labels = [other if label in repeated else label for label, other in zip(labels, candidates, strict=True)]
    return labels
