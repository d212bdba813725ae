"""The page of commands and exit codes is what the code has."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from types import ModuleType

from helpers.project import ROOT

SCRIPT = ROOT / "tools" / "docs" / "write_commands.py"


def _script() -> ModuleType:
    specification = importlib.util.spec_from_file_location("write_commands", SCRIPT)
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_two_errors_share_an_exit_code() -> None:
    codes = [code for code, _ in _script().exit_codes()]
    assert len(codes) == len(set(codes))


def test_a_page_that_is_out_of_date_fails(tmp_path, monkeypatch, capsys) -> None:
    script = _script()
    page = tmp_path / "commands.md"
    page.write_text(script.render().replace("--max-latency", "--most-latency"), encoding="utf-8")
    monkeypatch.setattr(script, "PAGE", page)
    monkeypatch.setattr(sys, "argv", ["write_commands.py", "--check"])
    assert script.main() == 1
    assert capsys.readouterr().err == "docs/commands.md is out of date: run 'make docs'\n"
