"""A backend says of itself what others must know of it: no other module has a list that a new one must be added to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from machmeter import backends
from machmeter.compare import figures
from machmeter.compare.documents import Difference
from machmeter.history import environment_changes

FAKE = """
from types import SimpleNamespace
BACKEND = SimpleNamespace(name="quick", device="cpu", packages=("quick_runtime",), distributions=("zz-quick",),
                          may_fork=False)
"""


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A new backend, as one adds it: a module in the folder of backends."""
    (tmp_path / "quick.py").write_text(FAKE)
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(tmp_path)])
    backends.distributions.cache_clear()
    yield
    backends.distributions.cache_clear()
    sys.modules.pop("machmeter.backends.quick", None)


@pytest.mark.parametrize("name", backends.names())
def test_every_backend_declares_what_it_runs_on_and_whether_it_survives_a_fork(name: str) -> None:
    backend = backends.get(name)
    assert isinstance(backend.distributions, tuple)
    assert isinstance(backend.may_fork, bool)
    assert bool(backend.distributions) == bool(backend.packages)
    assert backend.may_fork == (not backend.packages)


def test_what_a_backend_declares_is_read_without_any_framework() -> None:
    code = (
        "import sys; from machmeter import backends; backends.distributions(); assert backends.may_fork(); "
        "print([name for name in ('torch', 'onnxruntime', 'openvino', 'tensorrt', 'nncf') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_new_backend_s_libraries_explain_its_changes(quick: None) -> None:
    packages = [Difference(name=name, base="1", head="2") for name in ("torch", "zz-quick")]
    assert [item.name for item in figures.explaining("cpu.quick.ResNet50(fp32, 1)", packages)] == ["zz-quick"]
    assert [item.name for item in figures.explaining("cuda.eager.ResNet50(fp32, 1)", packages)] == ["torch"]


def test_a_new_backend_s_libraries_are_named_first(quick: None) -> None:
    old, new = (
        SimpleNamespace(packages={"asv": version, "zz-quick": version, "numpy": version}) for version in ("1", "2")
    )
    assert [name for name, _, _ in environment_changes.packages(old, new)] == ["numpy", "zz-quick", "asv"]  # type: ignore[arg-type]


def test_where_a_new_backend_s_runtime_is_loaded_nothing_is_forked(
    quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in {package for name in backends.names() for package in backends.get(name).packages}:
        monkeypatch.delitem(sys.modules, package, raising=False)
    assert backends.may_fork()
    monkeypatch.setitem(sys.modules, "quick_runtime", SimpleNamespace())  # type: ignore[arg-type]
    assert not backends.may_fork()


def test_a_backend_of_another_package_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    own = SimpleNamespace(packages=("their_runtime",), may_fork=False)
    monkeypatch.setitem(sys.modules, "their_runtime", SimpleNamespace())  # type: ignore[arg-type]
    assert not backends.may_fork(own)  # type: ignore[arg-type]
