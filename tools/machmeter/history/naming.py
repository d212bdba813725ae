"""Names for files, links and readers: safe in a path and an address, and never the same for two things."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from machmeter.history.data import short_hash

_PLAIN = re.compile(r"^[a-z0-9][a-z0-9._-]{0,59}$")
_LONGEST = 60
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")


def slug(name: str, *identity: Any) -> str:
    """Return a name for files and links that stands for `identity` (JSON data, default: the name).

    Only a name that is plain already, and is the whole identity, stays as it is. Any other is made plain and gets
    eight digits of a hash: capital letters too, as some file systems do not tell them from small ones.
    """
    if not identity and _PLAIN.match(name):
        return name
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:_LONGEST].strip("-.")
    return f"{plain or 'x'}-{short_hash(name, *identity)[:8]}"


def anchor(name: str) -> str:
    """Return a file name for `name`: readable, safe on every file system and in every link, and its own."""
    readable = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60].strip("-")
    return f"{readable}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}".lstrip("-")


def pages(names: Iterable[str]) -> dict[str, str]:
    """Return a file name for each of `names`: the name itself where that is safe, and no two the same.

    Some file systems do not tell upper from lower case, so names that differ only in that count as one.
    """
    listed = sorted(set(names))
    folded = [name.casefold() for name in listed]
    reserved = {"index", "con", "nul", "aux", "prn"}
    found = {}
    for name in listed:
        plain = _SAFE.fullmatch(name) and not name.endswith(".") and name.casefold() not in reserved
        found[name] = name if plain and folded.count(name.casefold()) == 1 else anchor(name)
    return found


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
