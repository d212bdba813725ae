"""Where a browser for the tests comes from: an installed one, Debian's package, playwright's own download."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PATIENCE = 600  # seconds that an installation may take


@dataclass(frozen=True, kw_only=True)
class World:
    """What looking for a browser sees and may do. `install` and `download` say whether they succeeded."""

    which: Callable[[str], str | None]
    may_install: bool
    install: Callable[[], bool]
    download: Callable[[], str | None]
    in_ci: bool


@dataclass(frozen=True, kw_only=True)
class Found:
    """The path of a browser, or why there is none and whether that fails the run."""

    path: str | None = None
    problem: str = ""
    fails: bool = False


def find(world: World) -> Found:
    """Return the first browser there is: installed, else Debian's package where it may be installed, else playwright's.

    In CI a missing browser fails the run; elsewhere the tests that need one are skipped with one clear line.
    """
    if path := _installed(world):
        return Found(path=path)
    tried = [f"none of {', '.join(BROWSERS)} is installed"]
    if world.may_install:
        if world.install() and (path := _installed(world)):
            return Found(path=path)
        tried.append("Debian's package cannot be installed")
    if path := world.download():
        return Found(path=path)
    tried.append("playwright cannot download its own")
    return Found(problem=f"no browser: {'; '.join(tried)}: install Chromium or Chrome", fails=world.in_ci)


def _installed(world: World) -> str | None:
    return next((path for name in BROWSERS if (path := world.which(name))), None)


def here() -> World:
    """Return this machine. Only root may install a package, and only where apt-get is."""
    return World(
        which=shutil.which,
        may_install=os.geteuid() == 0 and shutil.which("apt-get") is not None,
        install=lambda: _succeeds("apt-get", "install", "--yes", "--no-install-recommends", "chromium"),
        download=_download,
        in_ci=bool(os.environ.get("CI")),
    )


def _download() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    if not Path(path).is_file() and not _succeeds(sys.executable, "-m", "playwright", "install", "chromium"):
        return None
    return path if Path(path).is_file() else None


def _succeeds(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
