"""One GitHub issue per benchmark that has regressed on main: opened, kept up to date, and closed when it recovers.

Found by its marker and its author, like the comment of a pull request. An issue that a person has closed stays closed:
its regressions are known, and only a new one opens another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from machmeter import metrics
from machmeter.changes.regressions import Regression
from machmeter.compare import figures
from machmeter.github import client
from machmeter.history.data import short_hash
from machmeter.site.links import parameters, series_href
from machmeter.text import numbers
from machmeter.text.inert import address, code, link, plain
from machmeter.text.shorten import Block, fit

if TYPE_CHECKING:
    from github.Issue import Issue
    from github.Repository import Repository

LABEL = "performance-regression"
MOST_NEW = 10  # issues that one run opens: a change that slows everything down is one message, not a hundred
_MARKER = re.compile(r"<!-- machmeter: alert (?P<group>[0-9a-f]{12})(?P<known>( [0-9a-f]{12}@[0-9a-f]{8,40})*) -->")
_LIMIT = 60_000
_KNOWN = 200  # regressions that a marker names
_RECOVERED = "**Recovered:**"  # in an issue that nobody but us has closed


@dataclass(frozen=True, kw_only=True)
class Message:
    """What is to be said of one benchmark."""

    group: str  # 12 hexadecimal digits over the benchmark's name
    title: str
    body: str
    regressions: Sequence[Regression]


@dataclass(frozen=True, kw_only=True)
class Where:
    """What links lead to: GitHub's address, the repository, the site with the results."""

    repository: str
    server: str = "https://github.com"
    site: str | None = None


@dataclass(frozen=True, kw_only=True)
class Known:
    """An issue of ours: which regressions it is about."""

    issue: Issue
    group: str
    regressions: frozenset[tuple[str, str]]  # key of the series, beginning of the commit


def messages(found: Mapping[str, Sequence[Regression]], where: Where) -> list[Message]:
    """Return what to say of each benchmark in `found`, the most important first."""
    ordered = sorted(found.items(), key=lambda item: (-max(one.importance for one in item[1]), item[0]))
    return [_message(name, some, f"{where.server}/{where.repository}", where.site) for name, some in ordered]


def _message(name: str, regressions: Sequence[Regression], repository: str, site: str | None) -> Message:
    module, _, method = name.rpartition(".")
    title = next((metric.title for metric in metrics.METRICS if metric.benchmark == method), method)
    group = short_hash("alert", name)
    known = "".join(f" {item.series.key}@{item.first_bad[:12]}" for item in regressions[:_KNOWN])
    series = numbers.plural(len({item.series.key for item in regressions}), "series", "series")
    rows = [_row(item, repository, site) for item in regressions]
    head = (
        f"<!-- machmeter: alert {group}{known} -->\n"
        f"{series} of {code(name)} on the main branch became worse and "
        "stayed so: each level is the median of its commits, and at least four agree on the new one. This issue "
        "follows the results, and closes itself when all have recovered. Close it to say that this is to stay.\n\n"
        "| series | machine | before | now | change | commits | libraries |\n|---|---|--:|--:|--:|---|---|"
    )
    pages = link("the site", site) if site else None
    body = fit([Block(before=head, rows=rows)], _LIMIT, pages)
    return Message(
        group=group, title=plain(f"Regression: {title} of {module}", 200), body=body, regressions=regressions
    )


def _row(item: Regression, repository: str, site: str | None) -> str:
    series = item.series
    named = code(parameters(series) or series.benchmark.name, 80, cell=True)
    commits = f"{item.last_good[:8]}...{item.first_bad[:8]}"
    cells = [
        f"{named} ({link('history', site.rstrip('/') + '/' + series_href(series))})" if site else named,
        f"{code(series.machine.name, 60, cell=True)} {code(series.environment.label, 60, cell=True)}",
        figures.value(item.before, series.benchmark.unit),
        figures.value(item.now, series.benchmark.unit),
        f"{figures.words(item.words, series.benchmark.unit)} ({numbers.plural(item.points, 'commit')})",
        f"[{code(commits)}]({address(f'{repository}/compare/{item.last_good}...{item.first_bad}')})",
        code(item.libraries, cell=True) if item.libraries else "none known",
    ]
    return f"| {' | '.join(cells)} |"


# ------------------------------------------------------------------ GitHub


def ours(repository: Repository, author: str) -> list[Known]:
    """Return our issues, open and closed, newest first."""
    found = []
    for issue in repository.get_issues(state="all", labels=[LABEL], sort="created", direction="desc"):
        marker = _MARKER.match(issue.body or "")
        if marker and issue.user is not None and issue.user.login == author and issue.pull_request is None:
            pairs = (item.split("@") for item in marker["known"].split())
            known = frozenset((key, commit) for key, commit in pairs)
            found.append(Known(issue=issue, group=marker["group"], regressions=known))
    return found


def sync(
    repository: Repository, found: Mapping[str, Sequence[Regression]], where: Where, author: str = client.ACTIONS
) -> list[str]:
    """Make GitHub's issues say what regressed, and return a line about each that changed.

    The same again changes nothing. Raises NoRights, NotOnGitHub, RateLimited or GitHubUnreachable; what was done
    before that stays, and the next run does the rest.
    """
    lines, opened = [], 0
    with client.told("issues about regressions"):
        known = ours(repository, author)
        wanted = messages(_without_accepted(found, known), where)
        for message in wanted:
            mine = [item for item in known if item.group == message.group]
            if current := next((item for item in mine if item.issue.state == "open"), None):
                lines += _updated(current.issue, message)
            elif back := next((item for item in mine if _is_back(item, message)), None):
                back.issue.edit(title=message.title, body=message.body, state="open", state_reason="reopened")
                lines.append(f"reopened: {back.issue.html_url} {message.title}")
            else:
                opened += 1
                if opened <= MOST_NEW:
                    made = repository.create_issue(message.title, body=message.body, labels=[LABEL])
                    lines.append(f"opened: {made.html_url} {message.title}")
        if opened > MOST_NEW:
            lines.append(f"{opened - MOST_NEW} more have regressed: no more than {MOST_NEW} issues are opened at once")
        lines += _recovered(known, {message.group for message in wanted})
    return lines


def _without_accepted(found: Mapping[str, Sequence[Regression]], known: Sequence[Known]) -> dict[str, list[Regression]]:
    """Return the regressions without those of issues that a person has closed."""
    accepted = [item for item in known if item.issue.state == "closed" and _RECOVERED not in (item.issue.body or "")]
    left = {
        name: [one for one in some if not any(_is_about(item, one) for item in accepted)]
        for name, some in found.items()
    }
    return {name: some for name, some in left.items() if some}


def _updated(issue: Issue, message: Message) -> list[str]:
    if issue.title == message.title and (issue.body or "").replace("\r\n", "\n").strip() == message.body.strip():
        return []
    issue.edit(title=message.title, body=message.body)
    return [f"updated: {issue.html_url} {message.title}"]


def _is_back(item: Known, message: Message) -> bool:
    """Return whether an issue was closed as recovered and one of its regressions is there again."""
    return _RECOVERED in (item.issue.body or "") and any(_is_about(item, one) for one in message.regressions)


def _recovered(known: Sequence[Known], regressed: set[str]) -> list[str]:
    lines = []
    for item in known:
        if item.issue.state == "open" and item.group not in regressed:
            body = f"{item.issue.body}\n\n{_RECOVERED} every series of this issue is back where it was."
            item.issue.edit(body=body, state="closed", state_reason="completed")
            lines.append(f"closed: {item.issue.html_url} {plain(item.issue.title, 200)}")
    return lines


def _is_about(item: Known, regression: Regression) -> bool:
    return any(
        key == regression.series.key and any(near.startswith(commit) for near in regression.near)
        for key, commit in item.regressions
    )
