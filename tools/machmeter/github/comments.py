"""The one comment of a pull request: found over all pages by its marker and its author, and kept up to date.

Whoever calls says which pull request and which commit: what was measured has no say in that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from machmeter.compare import markdown
from machmeter.compare.judge import compare
from machmeter.errors import ArtifactUnusable, GitHubUnreachable, NotAccepted
from machmeter.github import client
from machmeter.github.expected import Expected

if TYPE_CHECKING:
    from github.IssueComment import IssueComment
    from github.PullRequest import PullRequest

MARKER = "<!-- machmeter: comparison -->"
MACHINES = 20  # in one comment
_ATTEMPTS = 3  # to create a comment, looking each time whether it is there


@dataclass(frozen=True, kw_only=True)
class Posted:
    """What became of a comment."""

    what: str  # "created", "updated" or "unchanged"
    link: str
    removed: int = 0  # further comments of ours that were deleted


def sections(wanted: Sequence[Expected], sha: str) -> list[markdown.Section]:
    """Judge the measurements of the commit `sha`; where some cannot be used the reason stands instead."""
    found: list[markdown.Section] = []
    for item in wanted[:MACHINES]:
        try:
            found.append(compare(item.read(sha)))
        except ArtifactUnusable as error:
            found.append(markdown.Unusable(name=item.name, reason=str(error)))
    if len(wanted) > MACHINES:
        reason = f"one comment has room for {MACHINES} machines"
        found.append(markdown.Unusable(name=f"{len(wanted) - MACHINES} more", reason=reason))
    return found


def body(found: Sequence[markdown.Section], *, link: str | None, head_now: str | None = None) -> str:
    """Return the whole comment, which begins with the marker."""
    room = markdown.LIMIT - len(MARKER) - 1
    return f"{MARKER}\n{markdown.render_all(found, limit=room, link=link, head_now=head_now)}"


def pull(repository: str, number: int, *, pause: Callable[[float], None] | None = None) -> PullRequest:
    """Return the pull request `number`. Raises NotOnGitHub, NoRights, RateLimited or GitHubUnreachable."""
    with client.told(f"pull request {number} of {repository}"):
        connection = client.repository(repository, **({"pause": pause} if pause else {}))
        request = connection.get_pull(number)
        request.complete()  # PyGithub asks only when something is read
        return request


def post(request: PullRequest, text: str, author: str = client.ACTIONS) -> Posted:
    """Make `text` the one comment of ours on an open pull request. The same text again changes nothing.

    Comments of ours beyond the first are deleted: two jobs that did not see each other made them. Raises NotAccepted
    where the pull request is closed, and what `pull` raises.
    """
    if request.state != "open":
        raise NotAccepted(f"pull request {request.number} is closed: nothing is posted")
    with client.told(f"commenting on pull request {request.number}"):
        for attempt in range(_ATTEMPTS):
            ours = [comment for comment in request.get_issue_comments() if _is_ours(comment, author)]
            if ours:
                return _updated(ours, text)
            try:
                with client.told(f"commenting on pull request {request.number}"):
                    return Posted(what="created", link=request.create_issue_comment(text).html_url)
            except GitHubUnreachable:
                # It may be there all the same: only looking tells.
                if attempt == _ATTEMPTS - 1:
                    raise
    raise AssertionError("unreachable")


def _updated(ours: Sequence[IssueComment], text: str) -> Posted:
    first, *others = ours
    what = "unchanged" if _same(first.body, text) else "updated"
    if what == "updated":
        first.edit(text)
    for comment in others:
        comment.delete()
    return Posted(what=what, link=first.html_url, removed=len(others))


def _same(there: str, text: str) -> bool:
    """Return whether GitHub has `text` already; it may have changed the ends of lines."""
    return there.replace("\r\n", "\n").strip() == text.strip()


def _is_ours(comment: IssueComment, author: str) -> bool:
    """Return whether a comment is the one that is kept up to date: whoever quotes its marker is somebody else."""
    return comment.user is not None and comment.user.login == author and comment.body.startswith(MARKER)
