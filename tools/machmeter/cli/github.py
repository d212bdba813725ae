"""Commands that speak to GitHub: comment, command, permission, alerts. They need GITHUB_TOKEN."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from machmeter import atomic
from machmeter.cli.common import PROJECT, say
from machmeter.errors import ArtifactUnusable, BadSetting, MachmeterError, NoResults, NotAccepted, from_os_error
from machmeter.github.client import ACTIONS

if TYPE_CHECKING:
    from machmeter.compare import markdown

commands = typer.Typer(help="What machmeter says on GitHub, for workflows.", no_args_is_help=True)

REPOSITORY = Annotated[str, typer.Option("--repository", envvar="GITHUB_REPOSITORY", help="owner/name")]
AUTHOR = Annotated[str, typer.Option("--author", help="Who the token is: only what this user wrote is changed.")]
LINK = Annotated[str | None, typer.Option("--link", help="The address of the page with all numbers.")]
DRY_RUN = Annotated[bool, typer.Option("--dry-run", help="Write nothing on GitHub: print what would be written.")]


@commands.command("comment")
def comment_command(
    repository: REPOSITORY,
    pull_request: Annotated[int, typer.Option("--pull-request", min=1, help="Its number, from a trusted source.")],
    sha: Annotated[str, typer.Option("--sha", help="The commit that was to be measured, from a trusted source.")],
    files: Annotated[
        list[Path] | None, typer.Argument(help="By hand: measurements.json of each machine: file, folder or zip.")
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option("--from", help="The artifacts of benchmark-pr: measurements-NAME/STACK of each machine listed."),
    ] = None,
    author: AUTHOR = ACTIONS,
    link: LINK = None,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="Where the comment is kept. Default: comment.md beside the first file."),
    ] = None,
    dry_run: DRY_RUN = False,
    project: PROJECT = Path(),
) -> None:
    """Judge measurements of a pull request and make the result its one comment, whatever the verdict.

    With --from, which machines there are is said by .github/runners.toml: one that has left nothing is named, and
    measurements that claim to be another's are refused. All numbers go to GITHUB_STEP_SUMMARY, where that is set.
    """
    from machmeter.github import client, comments, expected, summary
    from machmeter.runners import machine_list

    _check_link(link)
    sha = client.full_hash(sha)
    if bool(files) == (measured is not None):
        raise typer.BadParameter("name either files or, with --from, the folder of the artifacts")
    wanted = expected.of_runners(measured, machine_list.load(project)) if measured else expected.of_files(files or [])
    if not wanted:
        raise BadSetting(f"{machine_list.FILE} lists no machine for benchmark-pr: nothing can have been measured")
    found = comments.sections(wanted, sha)
    text = comments.body(found, link=link)
    path = keep or _beside(measured or (files or [])[0])
    _keep(path, text)
    _append("GITHUB_STEP_SUMMARY", f"{summary.render(found)}\n")
    if dry_run:
        text = comments.body(found, link=link, head_now=_head_if_told(repository, pull_request))
        _keep(path, text)
        print(text)
    else:
        _post(repository, pull_request, found, link, path, author)
    _say_unusable(found)


def _post(
    repository: str, pull_request: int, found: Sequence[markdown.Section], link: str | None, path: Path, author: str
) -> None:
    """Make what was found the one comment of the pull request, and keep it in `path`."""
    from machmeter.github import comments

    try:
        request = comments.pull(repository, pull_request)
        text = comments.body(found, link=link, head_now=request.head.sha)
        _keep(path, text)
        posted = comments.post(request, text, author)
    except Exception:
        say(f"the comment is kept in {path}")
        raise
    say(f"{posted.what}: {posted.link}" + (f" ({posted.removed} older removed)" if posted.removed else ""))


def _say_unusable(found: Sequence[markdown.Section]) -> None:
    """Name the machines whose measurements cannot be used; raise ArtifactUnusable where that is all of them."""
    from machmeter.compare import markdown

    unusable = [item for item in found if isinstance(item, markdown.Unusable)]
    for item in unusable:
        say(f"no usable measurements of {item.name}: {item.reason}")
    if len(unusable) == len(found):
        raise ArtifactUnusable("none of the measurements can be used; the comment says why")


def _beside(first: Path) -> Path:
    return (first if first.is_dir() and not first.is_symlink() else first.parent) / "comment.md"


def _head_if_told(repository: str, pull_request: int) -> str | None:
    """Return the head of the pull request, where there is a token to ask with and GitHub answers."""
    from machmeter.github import comments

    if not os.environ.get("GITHUB_TOKEN"):
        return None
    try:
        return comments.pull(repository, pull_request).head.sha
    except MachmeterError as error:
        print(f"machmeter: whether the head has moved is not known: {error}", file=sys.stderr)
        return None


@commands.command("command")
def command_command(
    event: Annotated[
        Path | None, typer.Option("--event", help="The issue_comment event, as GITHUB_EVENT_PATH.")
    ] = None,
    repository: Annotated[str, typer.Option("--repository", envvar="GITHUB_REPOSITORY", help="owner/name")] = "",
    pull_request: Annotated[int | None, typer.Option("--pull-request", min=1, help="Instead of an event.")] = None,
    sha: Annotated[str | None, typer.Option("--sha", help="With --pull-request: the reviewed commit.")] = None,
) -> None:
    """Check who asks for a measurement of which commit; write run, pull_request and sha to GITHUB_OUTPUT."""
    from machmeter.github import requests as asked

    try:
        if event is not None:
            request = asked.of_event(event)
        elif pull_request is not None and sha is not None:
            request = asked.of_arguments(repository, pull_request, sha)
        else:
            raise typer.BadParameter("give --event, or --pull-request and --sha")
    except MachmeterError as error:
        _append("GITHUB_STEP_SUMMARY", f"{asked.refusal(str(error))}\n")
        raise
    _append("GITHUB_OUTPUT", request.outputs())
    if summary := request.summary():
        _append("GITHUB_STEP_SUMMARY", f"{summary}\n")
    say(request.outputs().rstrip())
    if request.reason:
        say(f"nothing is measured: {request.reason}")


@commands.command("permission")
def permission_command(
    repository: REPOSITORY,
    login: Annotated[str, typer.Option("--login", help="A user's name on GitHub.")],
) -> None:
    """Succeed where a user may write in the repository."""
    from machmeter.github import requests as asked

    if not asked.may_write(repository, login):
        raise NotAccepted(f"{login} may not write in {repository}")
    say(f"{login} may write in {repository}")


@commands.command("alerts")
def alerts_command(
    results: Annotated[Path, typer.Option("--results", help="asv's results folder of the main branch.")],
    repository: REPOSITORY,
    evidence: Annotated[Path | None, typer.Option("--evidence", help="Default: the folder beside the results.")] = None,
    clone: Annotated[Path | None, typer.Option("--git", help="A clone that knows the commits' order.")] = None,
    cache: Annotated[Path | None, typer.Option("--cache", help="A folder for what was parsed and found.")] = None,
    author: AUTHOR = ACTIONS,
    link: Annotated[str | None, typer.Option("--link", help="The address of the site.")] = None,
    dry_run: DRY_RUN = False,
) -> None:
    """Open, update and close one issue per benchmark that has regressed on the main branch."""
    from machmeter.changes import of_history, regressions
    from machmeter.github import client, issues
    from machmeter.history import read
    from machmeter.text.numbers import plural

    _check_link(link)
    if not results.is_dir():
        raise NoResults(f"{results} is not a folder of results: say where asv's results are with --results")
    history = read.read(results, evidence, clone, cache=cache)
    found = regressions.find(history, of_history.find(history, cache=cache))
    server = os.environ.get("GITHUB_SERVER_URL") or "https://github.com"
    where = issues.Where(repository=repository, server=server, site=link)
    if dry_run:
        said = issues.messages(found, where)
        print("\n\n".join(f"{message.title}\n\n{message.body}" for message in said))
    else:
        for line in issues.sync(client.repository(repository), found, where, author):
            say(line)
    say(f"regressed on the main branch: {len(found)} of {plural(len(history.benchmarks), 'benchmark')}")


def _check_link(link: str | None) -> None:
    from machmeter.text import inert

    try:
        inert.address(link or "https://example.org/")
    except ValueError as error:
        raise BadSetting(f"--link: {error}") from error


def _append(variable: str, text: str) -> None:
    """Append `text` to the file that GitHub Actions names in the environment's `variable`, if it does."""
    if name := os.environ.get(variable):
        try:
            with Path(name).open("a", encoding="utf-8") as stream:
                stream.write(text)
        except OSError as error:
            raise from_os_error(error, Path(name), "what the job says", variable) from error


def _keep(path: Path, text: str) -> None:
    """Write `text` to `path`; what an untrusted artifact has put there is replaced, not followed."""
    atomic.write(path, text + "\n", "the comment")
