"""Running the project's workflows on this machine: act in host mode, a scratch clone, stand-ins for foreign actions.

What act 0.2.89 does not know yet is written in its older form in the files that it is given: `queue: max` is left out
(one workflow runs at a time here), and `$/` before the reusable workflow becomes `./`. What jobs check out is as
committed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helpers.project import ROOT
from machmeter import doctor
from machmeter.machine import host

ACTIONS = Path(__file__).parents[1] / "workflows" / "actions"
USES = re.compile(r"uses: (actions/[a-z-]+)@([0-9a-f]{40})")

RUNNERS = """
[[runner]]
name = "scratch"
labels = ["self-hosted", "machmeter-scratch"]
stacks = ["minimal"]
threads = {threads}
benchmarks = '^control\\.Machine\\.'
workflows = ["benchmark", "benchmark-pr"]
budget = "5s"
accept = {accept}
"""


@dataclass(kw_only=True)
class Scratch:
    """A clone with a bare origin, a home, and an environment that has the commands under test."""

    folder: Path
    origin: Path
    base: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def artifacts(self) -> Path:
        return self.base / "artifacts"

    @property
    def site(self) -> Path:
        return self.base / "site"

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.folder), "-c", "user.name=test", "-c", "user.email=test@example.invalid"]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, message: str, *paths: str) -> None:
        self.git("add", "--", *paths)
        self.git("commit", "--quiet", "--message", message, "--", *paths)

    def push(self, branch: str) -> None:
        self.git("push", "--quiet", str(self.origin), branch)

    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.base / "home"),
            "VENV": str(self.base / "venv"),
            "APT": "true",  # Debian's packages are not installed by a test
            "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(Path("~/.cache/pip").expanduser())),
            "MACHMETER_STORE": str(self.base / "store"),
            "ACT_ARTIFACTS": str(self.artifacts),
            "ACT_ORIGIN": str(self.origin),
            "ACT_SITE": str(self.site),
            **self.variables,
        }

    def act(self, event: str, workflow: str, payload: dict[str, Any], *more: str) -> subprocess.CompletedProcess[str]:
        """Run a workflow for an event, with a home and artifacts of its own: as on machines that are used once."""
        for folder in (self.artifacts, self.base / "home"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        repository = {"default_branch": "main", "full_name": "o/r", "name": "r", "owner": {"login": "o"}}
        path = self.base / "event.json"
        path.write_text(json.dumps({"repository": repository, **payload}))
        file = self.folder / ".github" / "workflows" / f"{workflow}.yml"
        command = [program("act"), event, "--workflows", str(file), "--eventpath", str(path)]
        command += ["--platform", "ubuntu-latest=-self-hosted", "--platform", "self-hosted=-self-hosted"]
        command += [
            "--defaultbranch",
            "main",
            "--no-cache-server",
            "--no-skip-checkout",
            "--secret",
            "GITHUB_TOKEN=secret",
        ]
        for action, commit in sorted(set(USES.findall(all_workflows()))):
            command += ["--local-repository", f"{action}@{commit}={ACTIONS / action.split('/')[1]}"]
        for name, value in self.environment().items():
            command += ["--env", f"{name}={value}"]
        environment = {**os.environ, **self.environment(), "DOCKER_HOST": ""}
        return subprocess.run(
            [*command, *more], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )


def program(name: str) -> str:
    """Return the path of a program of this environment."""
    return str(Path(sys.executable).parent / name)


def all_workflows() -> str:
    return "\n".join(path.read_text() for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")))


def make_environment(folder: Path) -> None:
    """Make an environment that `make` takes for finished, with the packages of this one and the commands under test."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next((folder / "lib").glob("python*/site-packages"))
    ours = [path for path in sys.path if path.endswith("site-packages")]
    lines = [str(ROOT / "tools"), *(f"import site; site.addsitedir({path!r})" for path in ours)]
    (packages / "scratch.pth").write_text("\n".join(lines) + "\n")
    for source in Path(sys.executable).parent.iterdir():
        if not source.name.startswith(("python", "activate", "Activate", "pip", "machmeter")):
            (folder / "bin" / source.name).symlink_to(source)
    script = folder / "bin" / "machmeter"
    script.write_text(f"#!{folder / 'bin' / 'python'}\nfrom machmeter.cli import main\n\nmain()\n")
    script.chmod(0o755)
    for name in (".cpu", ".tools", ".dev"):
        (folder / name).touch()
        os.utime(folder / name, (4e9, 4e9))  # newer than any file of a clone made later


def make_scratch(base: Path) -> Scratch:
    """Make a scratch clone of what is committed, on branch main, with one machine that runs controls only."""
    scratch = Scratch(folder=base / "clone", origin=base / "origin.git", base=base)
    for command in (
        ["git", "init", "--quiet", "--bare", "--initial-branch=main", str(scratch.origin)],
        ["git", "-C", str(scratch.origin), "config", "uploadpack.allowAnySHA1InWant", "true"],  # as GitHub does
        ["git", "-C", str(scratch.origin), "fetch", "--quiet", str(ROOT), "HEAD:refs/heads/main"],
        ["git", "clone", "--quiet", str(scratch.origin), str(scratch.folder)],
    ):
        subprocess.run(command, check=True)
    scratch.git("remote", "set-url", "origin", "https://github.com/o/r")  # whence act takes the repository's name
    scratch.git("config", "user.name", "test")
    scratch.git("config", "user.email", "test@example.invalid")
    listed = RUNNERS.format(threads=host.thread_budget(), accept=json.dumps(doctor.NAMES))
    (scratch.folder / ".github" / "runners.toml").write_text(listed)
    scratch.commit("One machine, for controls", ".github/runners.toml")
    scratch.push("main")
    for path in (scratch.folder / ".github" / "workflows").glob("*.yml"):
        text = path.read_text().replace("uses: $/", "uses: ./")
        path.write_text("".join(line for line in text.splitlines(keepends=True) if "queue: max" not in line))
    make_environment(base / "venv")
    return scratch
