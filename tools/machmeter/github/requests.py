"""Who may start a measurement of which commit: a maintainer's `/benchmark SHA`, or the same through a dispatch.

A comment's text is foreign. Of it only a full commit hash is taken, and only if it is a commit of the pull request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from machmeter.errors import BadSetting, NotAccepted, NotOnGitHub
from machmeter.github import client, comments
from machmeter.text.inert import code, plain

COMMAND = re.compile(r"/benchmark ([0-9a-fA-F]{40})")
MAY_WRITE = ("admin", "write")  # what GitHub calls the permission of admins, of maintainers and of writers


class _User(msgspec.Struct, frozen=True):
    login: str


class _Comment(msgspec.Struct, frozen=True):
    body: str
    user: _User


class _Issue(msgspec.Struct, frozen=True):
    number: int
    pull_request: dict[str, object] | None = None


class _Repository(msgspec.Struct, frozen=True):
    full_name: str


class _Event(msgspec.Struct, frozen=True):
    action: str
    issue: _Issue
    comment: _Comment
    repository: _Repository


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is to be measured, and whether it is; `reason` says why not."""

    run: bool
    pull_request: int = 0
    sha: str = ""
    reason: str = ""
    asked: bool = True  # False where nobody has asked for anything

    def outputs(self) -> str:
        """Return the lines for GITHUB_OUTPUT."""
        run = "true" if self.run else "false"
        return f"run={run}\npull_request={self.pull_request or ''}\nsha={self.sha}\n"

    def summary(self) -> str:
        """Return what the summary of the run says, as Markdown; nothing where nobody has asked for anything."""
        if self.run:
            return f"Measuring {code(self.sha)} of pull request {self.pull_request}."
        return refusal(self.reason) if self.asked else ""


def refusal(reason: str) -> str:
    """Return what the summary of a run says that measures nothing, as Markdown."""
    return f"**Nothing is measured:** {code(reason, 400)}"


def of_event(path: Path) -> Request:
    """Return what the `issue_comment` event in the file `path` asks for; `run` is false where it asks for nothing.

    Raises BadSetting where the file is no such event, and what GitHub's answers raise.
    """
    try:
        event = msgspec.json.decode(path.read_bytes(), type=_Event)
    except (OSError, msgspec.DecodeError) as error:
        raise BadSetting(f"{path} is not the event of a comment: {plain(str(error), 200)}") from error
    text = event.comment.body.strip()
    if event.action != "created" or event.issue.pull_request is None or not text.startswith("/benchmark"):
        return Request(run=False, reason="the comment asks for nothing", asked=False)
    matched = COMMAND.fullmatch(text)
    if not matched:
        return Request(run=False, reason="write '/benchmark' and the full hash of the commit, and nothing else")
    repository, login = event.repository.full_name, event.comment.user.login
    if not may_write(repository, login):
        return Request(run=False, reason=f"{plain(login, 60)} may not write in {repository}")
    try:
        return of_arguments(repository, event.issue.number, matched[1])
    except NotAccepted as error:
        return Request(run=False, reason=str(error))


def of_arguments(repository: str, number: int, sha: str) -> Request:
    """Return the request to measure the commit `sha` of pull request `number`.

    Raises NotAccepted unless the pull request is open and has the commit, BadSetting where `sha` is no full hash, and
    what GitHub's answers raise.
    """
    sha = client.full_hash(sha)
    request = comments.pull(repository, number)
    if request.state != "open":
        raise NotAccepted(f"pull request {number} is closed")
    with client.told(f"commits of pull request {number}"):
        # The head is asked for first: a pull request may have more commits than GitHub lists.
        known = sha == request.head.sha or any(commit.sha == sha for commit in request.get_commits())
    if not known:
        raise NotAccepted(f"{sha[:8]} is no commit of pull request {number}: its head is {request.head.sha}")
    return Request(run=True, pull_request=number, sha=sha)


def may_write(repository: str, login: str) -> bool:
    """Return whether the user `login` may write in `repository`."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+(\[bot\])?", login):
        return False
    try:
        with client.told(f"the permission of {login}"):
            return client.repository(repository).get_collaborator_permission(login) in MAY_WRITE
    except NotOnGitHub:
        return False
