"""The runtimes, one module each. Adding one = a module here and a short module in `benchmarks/`.

Those of a GPU are in `cuda/`, and their names begin with "cuda.": `eager` runs on the CPU, `cuda.eager` on the GPU.
"""

from __future__ import annotations

import importlib
import pkgutil

from machmeter.backends.base import Backend, Options, Session, unsupported
from machmeter.errors import UnknownName
from machmeter.workload.cells import runtime

__all__ = ["Backend", "Options", "Session", "get", "name_of", "names", "unsupported"]

DEVICES = ("cuda",)  # each a sub-package
_NO_RUNTIMES = ("base", "grid")


def names() -> list[str]:
    """Return the names of all backends, without importing their runtimes."""
    found = [module.name for module in pkgutil.iter_modules(__path__)]
    here = sorted(name for name in found if not name.startswith("_") and name not in (*_NO_RUNTIMES, *DEVICES))
    return here + [f"{device}.{name}" for device in DEVICES for name in _on_device(device)]


def _on_device(device: str) -> list[str]:
    found = (module.name for module in pkgutil.iter_modules([f"{folder}/{device}" for folder in __path__]))
    return sorted(name for name in found if not name.startswith("_"))


def name_of(backend: Backend) -> str:
    """Return the name by which `get` finds `backend`: "cuda.eager" where its own is "eager"."""
    return runtime(backend.device, backend.name)


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
