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
    """Return the backend called `name`, or one of another package as `module:name`.

    Such a module holds its backends in a sequence `BACKENDS`. Raises UnknownName with the known names.
    """
    module, _, inside = name.rpartition(":")
    if module:
        try:
            items = importlib.import_module(module).BACKENDS
        except (ImportError, AttributeError) as error:
            raise UnknownName(f"no backend {name!r}: {error}; a module must be importable and have BACKENDS") from None
        found: Backend | None = next((item for item in items if item.name == inside), None)
        if found is None:
            raise UnknownName(f"no backend {inside!r} in {module}: it has {', '.join(item.name for item in items)}")
        return found
    if name not in names():
        raise UnknownName(f"unknown backend {name!r}: known backends are {', '.join(names())}")
    backend: Backend = importlib.import_module(f"{__name__}.{name}").BACKEND
    return backend
