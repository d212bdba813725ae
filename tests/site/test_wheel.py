"""The wheel: what the package reads at run time is in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from helpers.project import ROOT

READ = """
from pathlib import Path
import machmeter
from machmeter.site import assets, render
from machmeter.tables import claims
from machmeter.workload import rungs
folder = render.find_folder()
print(Path(machmeter.__file__).parents[1] == Path.cwd() / "installed", folder.is_relative_to(Path.cwd()))
print(len(claims.load()) > 0, len(rungs.load()) > 0, assets.find_library(folder))
render.Renderer(folder)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of the working tree, built without a network from a copy: building leaves files behind."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    for name in ("tools", "site"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    command = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder), str(source)]
    subprocess.run([sys.executable, "-m", "pip", *command], check=True, capture_output=True, text=True)
    (made,) = folder.glob("*.whl")
    return made


def test_a_wheel_has_every_file_of_the_site_and_every_table_of_settings(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "site").rglob("*") if path.is_file()}
    assert len(files) > 20
    assert {f"machmeter/{file}" for file in files} <= names
    assert {"machmeter/tables/claims.toml", "machmeter/workload/rungs.toml"} <= names
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"machmeter"}


def test_a_wheel_in_an_empty_folder_finds_what_it_needs(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    done = subprocess.run(
        [sys.executable, "-c", READ],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["True True", "True True None"]
