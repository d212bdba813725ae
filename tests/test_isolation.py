"""Work in a child process: its result, its exceptions and its death reach the parent as what they are."""

from __future__ import annotations

import subprocess
import sys

import pytest

# In a process of its own: pytest's may have loaded a runtime, and then the work is done in place.
PROGRAM = """
import os, signal
from machmeter.isolation import in_child
from machmeter.errors import Unsupported
def work():
    {body}
try:
    print("result", in_child(work, fork=True))
except BaseException as error:
    print(type(error).__name__, error, getattr(error, "peak_bytes", 0) > 100_000_000)
"""


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ("return 6 * 7", "result 42"),
        ("raise Unsupported('no such package')", "Unsupported no such package False"),
        ("raise SystemExit(3)", "SystemExit 3 False"),
        ("class Odd(Exception): pass\n    raise Odd('x')", "CellFailed Odd: x False"),
        ("block = bytearray(200_000_000); raise MemoryError('more')", "MemoryError more True"),
        ("os._exit(1)", "CellFailed preparation ended without a result False"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "CellFailed preparation crashed (signal 11) False"),
    ],
)
def test_what_happens_in_the_child(body: str, output: str) -> None:
    assert _run(body) == output


def test_a_child_that_the_kernel_kills_tells_its_peak() -> None:
    text = _run("block = bytearray(200_000_000); os.kill(os.getpid(), signal.SIGKILL)")
    assert text.startswith("CellFailed preparation was killed (signal 9), most likely by the kernel for lack of memory")
    assert int(text.split("its peak was ")[1].split()[0]) >= 200


def test_the_memory_of_the_child_is_not_the_parents() -> None:
    program = PROGRAM.format(body="block = bytearray(400_000_000); return len(block)")
    # Not what getrusage tells: Linux hands a parent's peak on to a program that it starts, here pytest's.
    program += "from machmeter.machine.process import peak_resident_bytes\nprint(peak_resident_bytes() < 300_000_000)"
    assert _output(program).split() == ["result", "400000000", "True"]


def _run(body: str) -> str:
    return _output(PROGRAM.format(body=body)).strip()


def _output(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
