"""Where the browser of the tests comes from."""

from __future__ import annotations

from typing import Any

from helpers.finding_browser import Found, World, find


def world(installed: tuple[str, ...] = (), **more: Any) -> tuple[World, list[str]]:
    """A machine with these browsers, and what was done to it."""
    there, done = list(installed), []

    def install() -> bool:
        done.append("install")
        there.extend(more.get("package", ()))
        return bool(more.get("package"))

    def download() -> str | None:
        done.append("download")
        return more.get("download")

    seen = World(
        which=lambda name: f"/usr/bin/{name}" if name in there else None,
        may_install=more.get("may_install", False),
        install=install,
        download=download,
        in_ci=more.get("in_ci", False),
    )
    return seen, done


def test_an_installed_browser_is_used_and_nothing_is_installed() -> None:
    machine, done = world(("google-chrome", "chromium"), may_install=True)
    assert find(machine) == Found(path="/usr/bin/chromium")
    assert done == []


def test_debians_package_is_installed_only_where_that_is_allowed() -> None:
    machine, done = world(may_install=True, package=("chromium",), download="/cache/chrome")
    assert find(machine) == Found(path="/usr/bin/chromium")
    assert done == ["install"]
    machine, done = world(may_install=False, package=("chromium",), download="/cache/chrome")
    assert find(machine) == Found(path="/cache/chrome")
    assert done == ["download"]


def test_playwrights_own_is_the_last_to_be_tried() -> None:
    machine, done = world(may_install=True, download="/cache/chrome")
    assert find(machine) == Found(path="/cache/chrome")
    assert done == ["install", "download"]


def test_a_missing_browser_is_one_line_and_fails_the_run_in_ci() -> None:
    for in_ci in (False, True):
        machine, _ = world(may_install=True, in_ci=in_ci)
        assert find(machine) == Found(
            problem="no browser: none of chromium, chromium-browser, google-chrome, google-chrome-stable, chrome is "
            "installed; Debian's package cannot be installed; playwright cannot download its own: "
            "install Chromium or Chrome",
            fails=in_ci,
        )
