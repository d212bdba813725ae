"""Commands of the results branch: push, pull, verify, size."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from machmeter.cli.common import PROJECT, say
from machmeter.errors import NoResults
from machmeter.results_branch import collect, scratch
from machmeter.results_branch import pull as pulling
from machmeter.results_branch import push as pushing
from machmeter.results_branch import remote as remote_module
from machmeter.results_branch import size as budgets
from machmeter.results_branch import verify as verifying
from machmeter.results_branch.remote import Branch

commands = typer.Typer(
    help="The git branch that carries results and evidence: files are added, never changed.", no_args_is_help=True
)

BRANCH = Annotated[str, typer.Option("--branch", help="The branch of the remote.")]
REMOTE = Annotated[str, typer.Option("--remote", help="A remote of the project's clone, or an address.")]
FOLDERS = Annotated[
    list[Path] | None,
    typer.Argument(help="With results/ and evidence/, or with folders that have them. Default: the project's own."),
]


@contextlib.contextmanager
def _opened(project: Path, remote: str, name: str) -> Iterator[Branch]:
    remote_module.check_name(name)
    where = remote_module.find_remote(project, remote)
    with scratch.folder() as folder:
        yield Branch(where, name, folder)


def _collected(folders: list[Path] | None, project: Path) -> collect.Collected:
    notes: list[str] = []
    stores = [store for folder in folders or [] for store in collect.find(folder, notes)]
    found = collect.collect(stores if folders else [collect.of_project(project)])
    found.notes[:0] = notes
    return found


def _tip(branch: Branch, *, history: bool = False) -> str:
    commit = branch.fetch(history=history)
    if commit is None:
        raise NoResults(f"{branch.remote.name!r} has no branch {branch.name!r} yet: 'machmeter results push' makes it")
    return commit


@commands.command("push")
def push_command(
    folders: FOLDERS = None, branch: BRANCH = "results", remote: REMOTE = "origin", project: PROJECT = Path()
) -> None:
    """Add what was measured to the branch, at once or not at all; what is on it stays as it is."""
    found = _collected(folders, project)
    for note in found.notes:
        say(note)
    found.check()
    with _opened(project, remote, branch) as opened:
        done = pushing.push(found, opened)
    say("\n".join(done.lines(opened)))


@commands.command("pull")
def pull_command(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for them. Default: the project's own results.")
    ] = None,
    if_any: Annotated[bool, typer.Option("--if-any", help="It is no fault if there is no branch yet.")] = False,
    branch: BRANCH = "results",
    remote: REMOTE = "origin",
    project: PROJECT = Path(),
) -> None:
    """Bring the branch's files here, beside what was measured here; no local file is replaced."""
    into = collect.in_folder(output) if output else collect.of_project(project)
    local = collect.collect([into])
    for problem in local.problems:
        say(f"left alone: {problem}")
    with _opened(project, remote, branch) as opened:
        try:
            commit = _tip(opened)
        except NoResults as nothing:
            if not if_any:
                raise
            say(str(nothing))
            return
        done = pulling.pull(opened, commit, into, local)
    say("\n".join(done.lines(opened)))
    done.check()


@commands.command("verify")
def verify_command(
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Check a folder with results/ and evidence/ instead of the branch.")
    ] = None,
    branch: BRANCH = "results",
    remote: REMOTE = "origin",
    project: PROJECT = Path(),
) -> None:
    """Check every file of the branch, and that none was ever changed or removed."""
    if folder:
        what, done = str(folder), verifying.verify_folder(_collected([folder], project))
    else:
        with _opened(project, remote, branch) as opened:
            what = f"the branch {branch} of {opened.remote.name}"
            done = verifying.verify_branch(opened, _tip(opened, history=True))
    say("\n".join(done.lines(what)))
    done.check(what)


@commands.command("size")
def size_command(
    folders: FOLDERS = None,
    years: Annotated[float, typer.Option("--years", min=0.0)] = 3.0,
    machines: Annotated[int, typer.Option("--machines", min=1)] = 4,
    per_day: Annotated[float, typer.Option("--per-day", min=0.0, help="Runs on each machine.")] = 1.0,
    project: PROJECT = Path(),
) -> None:
    """Say how large the branch gets, from the size of the runs that are here."""
    found = _collected(folders, project)
    found.check()
    say("\n".join(budgets.budget(found).lines(years, machines, per_day)))
