"""The modules of our pages, run by node: what a browser makes of the same cases."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")


def run_module(folder: Path, program: str) -> object:
    """Run `program` as a module beside our own, and return what it prints as JSON."""
    script = folder / "program.mjs"
    modules = (ROOT / "site/static/js").as_uri()
    script.write_text(program.replace("MODULES", modules), encoding="utf-8")
    done = subprocess.run([NODE or "node", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
