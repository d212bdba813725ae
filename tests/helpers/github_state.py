"""What the stand-in for GitHub knows, and what goes wrong with its answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from helpers.github_description import Json

ACTIONS = "github-actions[bot]"


@dataclass(kw_only=True)
class State:
    """What the stand-in knows. Comments and issues are listed as they were made."""

    repository: str = "o/r"
    token: str = "secret"  # what a request must carry
    author: str = ACTIONS  # who the token is
    rights: str = "write"  # "read": the token may not write
    pulls: dict[str, Json] = field(default_factory=dict)  # number: {"state", "head", "base", "commits"}
    comments: list[Json] = field(default_factory=list)  # {"id", "issue", "author", "body", "edits"}
    issues: list[Json] = field(default_factory=list)  # {"number", "author", "title", "body", "state", "labels", ...}
    permissions: dict[str, str] = field(default_factory=dict)  # login: "admin", "write", "read" or "none"
    next_id: int = 1000

    def pull(self, number: int, head: str, *, state: str = "open", commits: tuple[str, ...] = ()) -> None:
        """Add a pull request whose head is the commit `head`."""
        self.pulls[str(number)] = {"state": state, "head": head, "base": "b" * 40, "commits": [*commits, head]}

    def comment(self, issue: int, author: str, body: str) -> Json:
        """Add a comment."""
        self.next_id += 1
        made = {"id": self.next_id, "issue": issue, "author": author, "body": body, "edits": 0}
        self.comments.append(made)
        return made

    def issue(self, author: str, title: str, body: str, labels: list[str], state: str = "open") -> Json:
        """Add an issue."""
        number = max([0, *(item["number"] for item in self.issues), *map(int, self.pulls)]) + 1
        made = {"number": number, "author": author, "title": title, "body": body, "state": state, "labels": labels}
        self.issues.append({**made, "state_reason": None, "edits": 0})
        return self.issues[-1]


@dataclass(kw_only=True)
class Fault:
    """The next request of `method` whose path ends like `path` gets this instead of an answer, once."""

    method: str
    path: str  # a regular expression, searched
    status: int = 502
    message: str = "Server Error"
    headers: dict[str, str] = field(default_factory=dict)
    after: bool = False  # GitHub did what it was asked to, and the answer went wrong
    drop: bool = False  # the connection ends without an answer
