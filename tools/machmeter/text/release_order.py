"""The order of the versions of a library: that of their releases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Dated(Protocol):
    """Anything of one version, with the day of its release."""

    @property
    def version(self) -> str:
        """Return the version, as the index writes it."""
        ...

    @property
    def released(self) -> str | None:
        """Return the day, or None where it is unknown."""
        ...


AnyDated = TypeVar("AnyDated", bound=Dated)


def in_order(items: Iterable[AnyDated]) -> tuple[AnyDated, ...]:
    """Return `items` by the day of release, by version where a day is unknown."""
    from packaging.version import Version

    listed = sorted(items, key=lambda item: Version(item.version))
    if all(item.released for item in listed):
        listed.sort(key=lambda item: item.released or "")
    return tuple(listed)
