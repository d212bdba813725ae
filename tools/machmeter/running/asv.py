"""Calling asv: in this interpreter or in an environment of its own, without a prompt, and stoppable."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from machmeter import asv_names, git
from machmeter.errors import BadSetting, RunFailed
from machmeter.running import why_it_failed

LOG = Path(".asv/bench.log")
RECORDING = ("--record-samples", "--show-stderr")
SUCCESS = (0, 2)  # asv's exit codes; 2: some benchmarks failed, and the evidence says why
INTERRUPTED_SECONDS = 20.0  # for asv to stop what it measures and to end


def here(
    patterns: list[str], project: Path, environment: dict[str, str], output: Any, attributes: Iterable[str]
) -> None:
    """Run the benchmarks that `patterns` select in this interpreter, with asv's output in the file `output`.

    `attributes` are asv's `-a`. Raises BadSetting for one that is none, RunFailed where asv itself cannot run.
    """
    attributes = list(attributes)
    for item in attributes:
        if not re.fullmatch(r"\w+=.+", item):
            raise BadSetting(f"--attribute is {item!r}: write NAME=VALUE, such as repeat=20")
    arguments = ["--python=same", "--set-commit-hash", "HEAD", *RECORDING]
    arguments += [part for item in attributes for part in ("-a", item)]
    position = why_it_failed.position(output)
    code = run([*arguments, *patterns], project, environment, output)
    if code not in SUCCESS:
        last = why_it_failed.why(output, position)
        raise RunFailed(f"asv stopped with exit code {code}: {last} (all of it: {output.name})")


def run(arguments: list[str], project: Path, environment: Mapping[str, str], output: IO[str] | None = None) -> int:
    """Run `asv run` in `project` and return its exit code; without `output` it writes to the terminal.

    An interruption is passed on, and asv is waited for: it stops the process that measures. It has a session of
    its own, so that a terminal interrupts only us, and it heeds interruptions even where we, in the background of
    a shell, do not.
    """
    command = [sys.executable, "-m", "asv", "run", *arguments]
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)  # what a new process finds ignored stays ignored
    try:
        process = subprocess.Popen(
            command,
            cwd=project,
            env=git.without_repository(environment),
            stdout=output,
            stderr=subprocess.STDOUT if output else None,
            start_new_session=True,
        )
    finally:
        signal.signal(signal.SIGINT, ours)
    with process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(INTERRUPTED_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
            raise


def check(arguments: list[str]) -> None:
    """Raise BadSetting where `asv run` does not know `arguments`: it exits with 2 as for a failed benchmark."""
    from asv.commands import make_argparser

    parser, _ = make_argparser()
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            parser.parse_args(["run", *arguments])
    except SystemExit as ending:
        if ending.code:
            raise BadSetting(f"asv run: {printed.getvalue().strip().splitlines()[-1].split('error: ')[-1]}") from None
        raise


def know_machine(project: Path) -> None:
    """Let asv note the facts of this machine without a prompt, unless it knows the machine already.

    Raises RunFailed.
    """
    if asv_names.knows_machine():
        return
    command = [sys.executable, "-m", "asv", "machine", "--yes"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunFailed(f"asv cannot note the facts of this machine: {(done.stdout + done.stderr).strip()[-300:]}")
