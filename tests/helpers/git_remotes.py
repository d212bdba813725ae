"""For the tests of the results branch: bare remotes that remember each push, projects with results, a git that dies."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from helpers import asv_files, evidence
from machmeter.cli import app
from machmeter.errors import MachmeterError

# Writes down each update of a branch, for whoever wants to know whether it was a forced one.
HOOK = '#!/bin/sh\necho "$2 $3" >> "$GIT_DIR/updates"\n'

# A git that counts its calls. DIE_BEFORE and DIE_AFTER kill the program that called it, at that call.
GIT = """#!/bin/sh
count=$(($(cat "$COUNT" 2>/dev/null || echo 0) + 1))
echo "$count" > "$COUNT"
echo "$*" >> "$COUNT.calls"
[ "$count" = "$DIE_BEFORE" ] && kill -9 "$PPID" && exit 1
case "$BREAK" in
  "") ;;
  *) case " $* " in *" $BREAK "*)
       [ -n "$LATE" ] && REAL "$@" > /dev/null 2>&1
       echo "fatal: the remote end hung up unexpectedly" >&2
       exit 128 ;;
     esac ;;
esac
REAL "$@"
status=$?
[ "$count" = "$DIE_AFTER" ] && kill -9 "$PPID"
exit $status
"""


def git(folder: Path, *arguments: str) -> str:
    """Run git, and return its output."""
    answer = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def bare(folder: Path) -> Path:
    """Make a bare repository that takes no forced push and remembers each update."""
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(folder)], check=True)
    git(folder, "config", "receive.denyNonFastForwards", "true")
    git(folder, "config", "uploadpack.allowFilter", "true")
    hook(folder, "update", HOOK)
    return folder


def hook(remote: Path, name: str, text: str) -> None:
    path = remote / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def updates(remote: Path) -> list[tuple[str, str]]:
    """Return old and new commit of each update so far."""
    lines = (remote / "updates").read_text().splitlines() if (remote / "updates").exists() else []
    return [(line.split()[0], line.split()[1]) for line in lines]


def files(remote: Path, branch: str = "results") -> dict[str, str]:
    """Return the object of each file on the branch, by path."""
    listed = git(remote, "ls-tree", "-r", "-z", branch).split("\0")
    return {line.partition("\t")[2]: line.split()[2] for line in listed if line}


def runs(remote: Path) -> list[str]:
    """Return the paths of files of runs on the branch."""
    return [path for path in files(remote) if path.count("/") == 2 and not path.endswith("machine.json")]


@dataclass(frozen=True)
class Project:
    """A clone with an asv configuration, results and evidence."""

    folder: Path

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def evidence(self) -> Path:
        return self.folder / "evidence"

    def measure(self, commit: int, machine: str = "here", **more: Any) -> None:
        """Write what a run of asv and its evidence leave."""
        measure(self.folder, commit, machine, **more)

    def command(self, *arguments: str) -> tuple[int, str]:
        """Run `machmeter results` in this process, and return its exit code and what it printed."""
        output = io.StringIO()
        called = ["results", *arguments, "--project", str(self.folder)]
        try:
            with contextlib.redirect_stdout(output):
                typer.main.get_command(app).main(called, standalone_mode=False)
        except MachmeterError as error:
            return error.exit_code, f"{output.getvalue()}{error}"
        return 0, output.getvalue()


def project(folder: Path, remote: Path | None = None) -> Project:
    """Make a repository with one commit and a remote."""
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(folder)], check=True)
    (folder / "asv.conf.json").write_text(json.dumps({"version": 1, "project": "p", "repo": "."}))
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "--quiet", "-m", "begin")
    if remote:
        git(folder, "remote", "add", "origin", str(remote))
    return Project(folder)


def measure(
    folder: Path,
    commit: int,
    machine: str = "here",
    *,
    value: float = 1.0,
    started: int = 1_700_000_000_000,
    run: str = "r1",
    record: dict[str, Any] | None = None,
    benchmarks: tuple[str, ...] = ("time_a",),
) -> None:
    """Write one result file, the evidence of one run, and asv's notes, as a run would leave them in `folder`."""
    results = folder / "results"
    rows = {name: asv_files.result([value], started=started) for name in benchmarks}
    asv_files.write(results, commit, rows, machine=machine)
    catalogue = results / "benchmarks.json"
    known = json.loads(catalogue.read_text()) if catalogue.exists() else {}
    known.pop("version", None)
    asv_files.write_catalogue(results, {**known, **{name: {} for name in benchmarks}})
    process = {"status": "ok", "benchmark": "time_a", "order": 1, "started_at": started / 1000, **(record or {})}
    cells = evidence.single({"a": process})
    evidence.write(results, cells, commit=asv_files.commit_hash(commit), machine=machine, run=run, versions={})


def dying_git(folder: Path) -> Path:
    """Put a git that counts its calls into `folder`, to be first on the PATH, and return where it counts."""
    real = shutil.which("git")
    assert real
    folder.mkdir()
    (folder / "git").write_text(GIT.replace("REAL", real))
    (folder / "git").chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    os.environ["COUNT"] = str(folder / "count")
    return folder / "count"
