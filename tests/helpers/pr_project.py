"""A small git project for `machmeter pr`, whose benchmarks have a clock of their own: exact numbers on any machine.

asv builds real environments for it, from wheels that are made here: nothing is fetched. Those environments see the
packages of the interpreter that runs the tests. The kernel of a tree of files tells who else has the CPUs: what runs
beside the tests disturbs nobody.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CONFIGURATION: dict[str, Any] = {
    "version": 1,
    "project": "scratch",
    "repo": ".",
    "branches": ["HEAD"],
    "env_dir": ".asv/env",
    "results_dir": "results",
    "environment_type": "virtualenv",
    "matrix": {},
    "build_command": [],
    "install_command": [],
}

# Each process is off by up to 0.3 % of its own, as real ones are.
SUITE = '''
import os
import random

NOISE = 1.0 + 0.003 * random.Random(os.getpid()).uniform(-1.0, 1.0)
NOW = [0.0]


class Clocked:
    number, repeat, warmup_time, version = 1, 5, 0.0, "1"
    timer = staticmethod(lambda: NOW[0])


class Suite(Clocked):
    params = ["a", "b"]
    param_names = ["name"]

    def time_call(self, name):
        hold()
        NOW[0] += 0.010 * NOISE * {factor}
    {more}
    def track_size(self, name):
        return {size}

    track_size.unit = "bytes"


def hold():
    """Stop in the process that is told to, and say so through the pipe."""
    place = os.environ.get("SCRATCH_HOLD")
    if not place:
        return
    with open(place + ".log", "a") as log:
        log.write(f"{{os.getpid()}}\\n")
    with open(place + ".log") as log:
        seen = len(set(log.read().split()))
    if seen == int(os.environ["SCRATCH_HOLD_AT"]):
        with open(place, "w") as pipe:
            pipe.write("here")
        while True:
            import time

            time.sleep(1000)
'''

CONTROL = """
from .work import NOISE, NOW, Clocked


class Machine(Clocked):
    def time_product(self):
        NOW[0] += 0.020 * NOISE
"""


def suite(factor: float = 1.0, size: int = 1000, more: str = "") -> str:
    """Return the text of the benchmarks: everything takes `factor` times 10 ms."""
    return SUITE.format(factor=factor, size=size, more=more)


def make_wheel(folder: Path, name: str, version: str, files: dict[str, str] | None = None) -> None:
    """Write a wheel with `files`, which are put beside the packages."""
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        information = f"{name}-{version}.dist-info"
        for path, text in (files or {}).items():
            archive.writestr(path, text)
        archive.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{information}/RECORD", "")


@dataclass
class Scratch:
    """The project, with a home and an index of packages of its own."""

    folder: Path
    home: Path
    wheels: Path
    variables: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("MACHMETER_", "ASV", "GIT_"))},
            "HOME": str(self.home),
            "MACHMETER_STORE": str(self.home / "store"),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "MACHMETER_HOST_ROOT": str(self.home / "host"),
            **self.variables,
        }

    def others_have(self, seconds: float) -> None:
        """Let other programs have had each CPU for so long, as /proc/stat counts it."""
        ticks = round(seconds * os.sysconf("SC_CLK_TCK"))
        lines = [f"cpu{number} {ticks} 0 0 0 0 0 0 0 0 0\n" for number in sorted(os.sched_getaffinity(0))]
        (self.home / "host/proc/stat").write_text("".join(lines))

    def git(self, *arguments: str) -> str:
        settings = ["-c", "user.name=test", "-c", "user.email=test@example.invalid"]
        done = subprocess.run(
            ["git", *settings, *arguments], cwd=self.folder, env=self.environment(), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, files: dict[str, str], subject: str = "change") -> str:
        """Write `files`, commit them where we are and return the hash."""
        for path, text in files.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str, start: str = "main") -> None:
        self.git("checkout", "--quiet", "-b", name, start)

    def start(self, *arguments: str, **more: str) -> subprocess.Popen[str]:
        """Start `machmeter pr` with `arguments` and return the process."""
        command = [sys.executable, "-c", "from machmeter.cli import main; main()", "pr", *arguments]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env={**self.environment(), **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def pr(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `machmeter pr` with `arguments` and return it with its output."""
        process = self.start(*arguments)
        out, err = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def make(folder: Path, configuration: dict[str, Any] | None = None, files: dict[str, str] | None = None) -> Scratch:
    """Make a project in `folder` with one commit on `main`: benchmarks, `files` and a configuration."""
    scratch = Scratch(folder=folder / "project", home=folder / "home", wheels=folder / "wheels")
    for path in (scratch.folder, scratch.home, scratch.wheels):
        path.mkdir(parents=True)
    (scratch.home / "host/proc").mkdir(parents=True)
    for name in ("cpuinfo", "meminfo"):
        (scratch.home / "host/proc" / name).write_text(Path("/proc", name).read_text())
    scratch.others_have(0.0)
    seen = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    make_wheel(scratch.wheels, "asv_runner", "0.3.2", {"outer.pth": seen})
    for name in ("wheel", "build", "pympler"):
        make_wheel(scratch.wheels, name, "1.0")
    scratch.git("init", "--quiet", "--initial-branch=main")
    scratch.commit(
        {
            "asv.conf.json": json.dumps({**CONFIGURATION, **(configuration or {})}),
            ".gitignore": ".asv/\n/pr-results/\n",
            "benchmarks/__init__.py": "",
            "benchmarks/work.py": suite(),
            "benchmarks/control.py": CONTROL,
            **(files or {}),
        },
        "suite",
    )
    return scratch
