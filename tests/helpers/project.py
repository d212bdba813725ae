"""A git project with fake backends and a real asv."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from machmeter.measure import dead_processes

ROOT = Path(__file__).parents[2]

SUITE = Path(__file__).parents[1] / "data" / "suite"

MODULE = """
from machmeter.suite import benchmark_classes

from ..fakes import FAKES, SMALL

globals().update(benchmark_classes(__name__, next(fake for fake in FAKES if fake.name == "{name}"), [SMALL]))
Small.params = [Small.params[0], {batches}]
Small.repeat = {repeat}
Small.timeout = {timeout}
Small.track_throughput_offline = None  # workers cannot import this package; tests/measure/test_starting.py has them
"""


@dataclass
class Project:
    """A git repository with an asv configuration, a home and a store of its own."""

    folder: Path
    home: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def evidence(self) -> Path:
        return self.folder / "evidence"

    def environment(self) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("MACHMETER_", "ASV"))},
            "HOME": str(self.home),
            "MACHMETER_STORE": str(self.home / "store"),
            **self.variables,
        }

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the project and return it with its output."""
        return subprocess.run(
            arguments, cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=False
        )

    def asv(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.command(sys.executable, "-m", "asv", *arguments)

    def asv_run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run asv in this interpreter and keep its results under HEAD."""
        return self.asv("run", "--python=same", "--set-commit-hash", "HEAD", *arguments)

    def machmeter(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = "from machmeter.cli import main; main()"
        return self.command(sys.executable, "-c", program, *arguments)

    def records(self, cell: str) -> list[dict[str, Any]]:
        """Return what the processes of one cell left in the evidence, in the order in which they began."""
        (path,) = self.evidence.glob("*/*.json")
        content = dead_processes.read(path)
        assert content is not None
        (run,) = content["runs"].values()
        return sorted(run["cells"][cell].values(), key=lambda record: record["order"])


def make_project(
    folder: Path, home: Path, modules: dict[str, dict[str, object]], others: dict[str, str] | None = None
) -> Project:
    """Make a project whose suite has the fake backends `modules`, each with its batches, repeat and timeout.

    `others` are further benchmark modules, by file name.
    """
    folder.mkdir()
    home.mkdir()
    shutil.copytree(SUITE, folder / "benchmarks", ignore=shutil.ignore_patterns("__pycache__"))
    for name, settings in modules.items():
        filled = {"batches": [1], "repeat": (5, 30, 0.5), "timeout": 60.0} | settings
        (folder / "benchmarks" / "cpu" / f"{name}.py").write_text(MODULE.format(name=name, **filled))
    for name, text in (others or {}).items():
        (folder / "benchmarks" / name).write_text(text)
    shutil.copy(ROOT / "asv.conf.json", folder)
    (folder / ".gitignore").write_text("results/\nevidence/\n.asv/\n")
    project = Project(folder=folder, home=home)
    for command in (
        ("git", "init", "--quiet", "--initial-branch=main"),
        ("git", "add", "--all"),
        ("git", "-c", "user.name=test", "-c", "user.email=test@example.invalid", "commit", "--quiet", "-m", "suite"),
        (sys.executable, "-m", "asv", "machine", "--yes"),
    ):
        done = project.command(*command)
        assert done.returncode == 0, done.stderr
    return project
