"""The runtimes, one module each. Adding one = a module here and a short module in `benchmarks/`.

Those of a GPU are in `cuda/`, and their names begin with "cuda.": `eager` runs on the CPU, `cuda.eager` on the GPU.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
from collections.abc import Mapping

from machmeter.backends.base import Backend, Options, Session, unsupported
from machmeter.errors import UnknownName
from machmeter.workload.cells import runtime

__all__ = [
    "Backend",
    "Options",
    "Session",
    "distributions",
    "get",
    "may_fork",
    "name_of",
    "names",
    "unsupported",
]

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


@functools.cache
def distributions() -> Mapping[str, frozenset[str]]:
    """Return what the package index calls the libraries that backends run on, by a backend's own name ("eager")."""
    found: dict[str, frozenset[str]] = {}
    for backend in map(get, names()):
        found[backend.name] = found.get(backend.name, frozenset()) | frozenset(backend.distributions)
    return found


def may_fork(backend: Backend | None = None) -> bool:
    """Return whether a fork of this process can work: no runtime is loaded whose threads do not survive it.

    Only a backend whose module was imported can have loaded one, or `backend`, which may be of another package.
    """
    inside = [module for name, module in list(sys.modules.items()) if name.startswith(f"{__name__}.")]
    known = [module.BACKEND for module in inside if hasattr(module, "BACKEND")]
    tender = [item for item in (*known, backend) if item is not None and not item.may_fork]
    return not any(package in sys.modules for item in tender for package in item.packages)
