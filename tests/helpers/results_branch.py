"""What the tests of the results branch share: pushed files, a store with results."""

from __future__ import annotations

import subprocess
from pathlib import Path

from helpers import asv_files
from helpers.git_remotes import Project, git

STEM = f"{asv_files.commit_hash(1)[:8]}-env"


def pushed(project: Project, *arguments: str) -> str:
    code, output = project.command("push", *arguments)
    assert code == 0, output
    return output


def put(project: Project, remote: Path, path: str, content: str | None, branch: str = "results") -> None:
    """Commit another content (None: its removal) of a file of the branch, as somebody with git would."""
    folder = project.folder.parent / "by-hand"
    if not folder.exists():
        subprocess.run(["git", "clone", "--quiet", "--branch", branch, str(remote), str(folder)], check=True)
    git(folder, "pull", "--quiet", "--ff-only")
    if content is None:
        (folder / path).unlink()
    else:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "--quiet", "-m", "by hand")
    git(folder, "push", "--quiet", "origin", f"HEAD:{branch}")


def sorted_files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))
