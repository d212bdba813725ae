"""GitHub's REST interface through PyGithub, with the little that is ours: how long to wait, and what to say.

PyGithub was chosen over githubkit (0.16.1): it tells primary from secondary rate limits and waits for each as GitHub
says, retries through urllib3's `Retry`, which can be bounded and told what must not be done twice, and takes any
`base_url`. githubkit repeats a POST after an error of the server, which can comment twice, waits as long as GitHub asks
without a bound, and is twelve times as large (57 MB).
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from machmeter.errors import BadSetting, GitHubUnreachable, MachmeterError, NoRights, NotOnGitHub, RateLimited
from machmeter.text.inert import plain

if TYPE_CHECKING:
    from github.Repository import Repository

API = "https://api.github.com"
ACTIONS = "github-actions[bot]"  # who a workflow's own token is
ATTEMPTS = 5  # of one request
LONGEST_WAIT = 120.0  # seconds for one attempt: a job on a rented machine should not wait for an hour

REPOSITORY = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")
SHA = re.compile(r"[0-9a-f]{40}")


def full_hash(sha: str) -> str:
    """Return `sha`, the full hash of a commit, as git writes it: in lower case. Raises BadSetting."""
    if not SHA.fullmatch(sha.lower()):
        raise BadSetting(f"{plain(sha, 60)!r} is not the full hash of a commit (40 hexadecimal digits)")
    return sha.lower()


def repository(name: str, *, pause: Callable[[float], None] = time.sleep) -> Repository:
    """Return the repository `name` ("owner/name"), as the environment's GITHUB_TOKEN and GITHUB_API_URL reach it.

    Nothing is asked yet. `pause` waits between attempts. Raises BadSetting.
    """
    if not REPOSITORY.fullmatch(name) or ".." in name:
        raise BadSetting(f"{plain(name)!r} is no repository: write it as owner/name")
    token, api = os.environ.get("GITHUB_TOKEN", ""), os.environ.get("GITHUB_API_URL") or API
    if not token:
        raise BadSetting("GITHUB_TOKEN is not set: without a token nothing can be written on GitHub")
    if not re.match(r"https://|http://(127\.0\.0\.1|localhost)[:/]", api):
        raise BadSetting(f"GITHUB_API_URL={plain(api)} is not an https address: a token would travel in the open")
    from github import Auth, Github

    for library in ("github", "urllib3"):  # each attempt would be a warning of theirs; what comes of it is ours to say
        logging.getLogger(library).setLevel(logging.ERROR)
    connection = Github(
        auth=Auth.Token(token), base_url=api.rstrip("/"), retry=_patient(pause), per_page=100, timeout=20,
        seconds_between_requests=None, seconds_between_writes=None, user_agent="machmeter",
    )  # fmt: skip
    return connection.get_repo(name, lazy=True)


def _patient(pause: Callable[[float], None]) -> Any:
    """Return the policy of retries: urllib3's and PyGithub's, with a bound on every wait.

    What GitHub refused for its rate (403, 429) was not done, and is asked again whatever it was. After an error of the
    server or the network nobody knows: only what may be done twice is asked again. POST is not; who posts must look.
    """
    from github.GithubException import RateLimitExceededExceedsMaxWait
    from github.GithubRetry import GithubRetry

    class Patient(GithubRetry):
        def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
            if status_code in (403, 429):
                return bool(self.total)
            return super().is_retry(method, status_code, has_retry_after)

        def get_retry_after(self, response: Any) -> float | None:
            """Return for how many seconds GitHub asks to wait, by either of its two headers."""
            given = super().get_retry_after(response)
            reset = response.headers.get("X-RateLimit-Reset", "")
            if given is None and response.headers.get("X-RateLimit-Remaining") == "0" and reset.isdigit():
                return max(0.0, int(reset) - time.time()) + 1.0
            return given

        def increment(self, method: Any = None, url: Any = None, response: Any = None, *args: Any, **more: Any) -> Any:
            wait = self.get_retry_after(response) if response is not None else None
            if wait is not None and wait > LONGEST_WAIT:
                raise RateLimitExceededExceedsMaxWait(response.status, None, dict(response.headers), wait=wait)
            return super().increment(method, url, response, *args, **more)

        def sleep_for_retry(self, response: Any) -> bool:
            wait = self.get_retry_after(response)
            if wait:
                pause(wait)
            return bool(wait)

        def _sleep_backoff(self) -> None:
            if (wait := self.get_backoff_time()) > 0:
                pause(wait)

    return Patient(
        total=ATTEMPTS - 1,
        backoff_factor=1.0,
        backoff_max=30,
        secondary_rate_wait=60,
        max_rate_limit_wait=LONGEST_WAIT,
        status_forcelist=[429, 500, 502, 503, 504],
        allowed_methods={"GET", "PATCH", "DELETE"},
    )


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
    """Turn what goes wrong on GitHub while doing `what` ("posting on pull request 7") into one line.

    Raises GitHubUnreachable.
    """
    import requests

    from github import GithubException

    try:
        yield
    except GithubException as error:
        raise _translated(error, what) from error
    except (requests.RequestException, OSError) as error:
        raise GitHubUnreachable(f"{what}: GitHub does not answer ({_cause(error)}): run this step again") from error


def _translated(error: Any, what: str) -> MachmeterError:
    from github.GithubException import RateLimitExceededException

    said = error.data.get("message", "") if isinstance(error.data, dict) else str(error.data or "")
    answer = (
        f"{what}: GitHub answers {error.status} ({plain(said)})" if said else f"{what}: GitHub answers {error.status}"
    )
    if isinstance(error, RateLimitExceededException) or error.status == 429:
        wait = getattr(error, "wait", None)
        until = f" and asks to wait {wait:.0f} s" if wait else ""
        return RateLimited(f"{what}: the token's rate limit is used up{until}: run this step again later")
    if error.status == 401:
        return NoRights(f"{answer}: GITHUB_TOKEN is not valid, or has expired")
    if error.status in (403, 451):
        return NoRights(f"{answer}: the token needs 'pull-requests: write' (and 'issues: write' for alerts)")
    if error.status in (404, 410):
        return NotOnGitHub(f"{answer}: there is no such thing, or the token cannot see it")
    if error.status >= 500:
        return GitHubUnreachable(f"{answer}: run this step again")
    return GitHubUnreachable(f"{answer}: GitHub did not accept the request")


def _cause(error: BaseException) -> str:
    """Return what went wrong, without addresses of objects and the layers in between."""
    text = str(error)
    found = re.search(
        r"too many \d+ error responses|Connection refused|timed out|Remote end closed|Name or service", text
    )
    return found[0] if found else type(error).__name__
