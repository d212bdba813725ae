"""The command line, as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys


def machmeter(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    program = "from machmeter.cli import main; main()"
    environment = {**os.environ, "HOME": "/nonexistent", "COLUMNS": "140", **variables}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
