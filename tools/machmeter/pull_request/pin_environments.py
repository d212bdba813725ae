"""Environments that hold a stack's pinned libraries and nothing else, one for each set of pins.

Both sides of a comparison have thin environments of their own, with the project, and see the libraries of one of
these. Two commits with the same pins share it: torch alone has 5.5 GB. Two with other pins have one each, so
nothing is installed anew between rounds.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import IO

from machmeter.errors import DiskFull, RunFailed
from machmeter.running import stacks, why_it_failed
from machmeter.running.waiting import Say
from machmeter.workload import pinned

KEPT = 2  # environments: more would fill the disk, fewer would install anew when the same change is measured again
_COMPLETE = ".complete"
_BYTES = {"torch": 6_000_000_000}  # on disk
_OTHERS_BYTES = 1_000_000_000


def read(source: Path, stack: str) -> dict[str, str]:
    """Return the pins of `stack` in the working tree `source`, by name. Raises UnknownName or StackUnpinned."""
    stacks.check(source, stack)
    return pinned.pins((source / "requirements" / f"{stack}.txt").read_text(encoding="utf-8"))


def obtain(source: Path, stack: str, folder: Path, output: IO[str], say: Say) -> Path:
    """Return the environment below `folder` with the pins that `stack` has in `source`, after making it.

    Raises RunFailed where pip cannot install them, DiskFull.
    """
    wanted = read(source, stack)
    text = "\n".join([sys.version, *(f"{name}=={version}" for name, version in sorted(wanted.items()))])
    environment = folder / hashlib.sha256(text.encode()).hexdigest()[:12]
    if not (environment / _COMPLETE).is_file():
        _check_space(folder, wanted)
        say(f"installing the pins of {stack} ({len(wanted)} packages)")
        shutil.rmtree(environment, ignore_errors=True)
        python = environment / "bin" / "python"
        requirements = source / "requirements" / f"{stack}.txt"
        _run([sys.executable, "-m", "venv", str(environment)], output)
        _run([str(python), "-m", "pip", "install", "--quiet", "-r", str(requirements)], output)
    (environment / _COMPLETE).touch()  # the time of its last use
    return environment


def remove_old(folder: Path) -> None:
    """Keep the environments that were used last: those of this comparison."""
    used = sorted(folder.glob(f"*/{_COMPLETE}"), key=lambda path: path.stat().st_mtime_ns)
    for path in used[:-KEPT]:
        shutil.rmtree(path.parent, ignore_errors=True)


def packages(environment: Path) -> Path:
    """Return the folder with the packages of `environment`."""
    return environment / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def _check_space(folder: Path, wanted: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    needed = max(_BYTES.get(name, _OTHERS_BYTES) for name in [*wanted, ""])
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DiskFull(
            f"only {free / 1e9:.1f} GB are free under {folder} and these pins need up to {needed / 1e9:.0f} GB: "
            "free some space"
        )


def _run(command: list[str], output: IO[str]) -> None:
    output.flush()
    position = Path(output.name).stat().st_size
    variables = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=variables, check=False)
    if done.returncode != 0:
        raise RunFailed(why_it_failed.why(output, position))
