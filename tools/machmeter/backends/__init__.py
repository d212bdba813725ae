"""The runtimes, one module each. Adding one = a module here and a short module in `benchmarks/`."""

from __future__ import annotations

import importlib
import pkgutil

from machmeter.backends.base import Backend, Options, Session, unsupported
from machmeter.errors import UnknownName

__all__ = ["Backend", "Options", "Session", "get", "names", "unsupported"]


def names() -> list[str]:
    """Return the names of all backends, without importing their runtimes."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(name for name in found if not name.startswith("_") and name != "base")


def get(name: str) -> Backend:
    """Return the backend called `name`. Raises UnknownName with the known names."""
    if name not in names():
        raise UnknownName(f"unknown backend {name!r}: known backends are {', '.join(names())}")
    backend: Backend = importlib.import_module(f"{__name__}.{name}").BACKEND
    return backend
