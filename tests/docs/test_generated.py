"""The pages of commands, exit codes and metrics are what the code has."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from types import ModuleType

import pytest

from helpers.project import ROOT

SCRIPT = ROOT / "tools" / "docs" / "write_pages.py"


def _script() -> ModuleType:
    specification = importlib.util.spec_from_file_location("write_pages", SCRIPT)
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_pages_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_two_errors_share_an_exit_code() -> None:
    codes = [code for code, _ in _script().exit_codes()]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize(
    ("page", "right", "wrong"),
    [("commands.md", "--max-latency", "--most-latency"), ("metrics.md", "| lower |", "| higher |")],
)
def test_a_page_that_is_out_of_date_fails(page, right, wrong, tmp_path, monkeypatch, capsys) -> None:
    script = _script()
    monkeypatch.setattr(script, "DOCS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["write_pages.py"])
    assert script.main() == 0
    text = (tmp_path / page).read_text(encoding="utf-8")
    assert right in text
    (tmp_path / page).write_text(text.replace(right, wrong, 1), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["write_pages.py", "--check"])
    assert script.main() == 1
    assert capsys.readouterr().err == f"out of date: docs/{page}: run 'make docs'\n"
