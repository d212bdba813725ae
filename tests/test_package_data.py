"""What the package reads from beside its modules goes with it when it is installed."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_data_file_of_the_package_is_declared() -> None:
    """An editable installation finds a file that a wheel lacks: only asv, which installs wheels, would fail."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    declared = {
        path
        for package, patterns in settings["package-data"].items()
        for folder in (
            [path for path in (ROOT / "tools/machmeter").rglob("*") if (path / "__init__.py").is_file()]
            + [ROOT / "tools/machmeter"]
            if package == "*"
            else [ROOT / "tools" / package.replace(".", "/")]
        )
        for pattern in patterns
        for path in folder.glob(pattern)
        if path.is_file()
    }
    files = {path for path in (ROOT / "tools/machmeter").rglob("*") if path.is_file() and path.suffix != ".py"}
    files -= {path for path in files if "__pycache__" in path.parts or path.suffix == ".pyc"}
    assert {str(path.relative_to(ROOT)) for path in files - declared} == set()
    assert any(path.name == "rungs.toml" for path in declared)
