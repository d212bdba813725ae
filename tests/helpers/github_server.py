"""A stand-in for GitHub on the loopback: what a commenter needs of its REST interface, by GitHub's own description.

Every request and every answer is validated against the description in the npm package `@octokit/openapi`; what does
not fit is kept in `violations`, and answered with 422 where the request was at fault. Answers are GitHub's own
examples with the facts put in. Tests use `running`; other programs start it as

    PYTHONPATH=tests python -m helpers.github_server --port 0 --state DIR [--schema node_modules/@octokit/openapi]

which prints its address, reads DIR/state.json where there is one, and writes it after every change: a JSON object
like `State`.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import functools
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from helpers.github_description import (
    DESCRIPTION,
    PATHS,
    REPOSITORY,
    Description,
    Json,
    description,
    pattern,
    template_of,
)
from helpers.github_state import ACTIONS, Fault, State

__all__ = ["ACTIONS", "Fault", "GitHub", "State", "running"]

TIME = "2026-08-01T12:00:00Z"


class GitHub(ThreadingHTTPServer):
    """The server. `requests` has method, path and body of everything that was asked."""

    daemon_threads = True

    def __init__(self, port: int, state: State, described: Description, folder: Path | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.state, self.described, self.folder = state, described, folder
        self.requests: list[tuple[str, str, Any]] = []
        self.faults: list[Fault] = []
        self.violations: list[str] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Return the address, as GITHUB_API_URL has it."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def asked(self, *methods: str) -> list[tuple[str, str]]:
        """Return method and path of all requests, or of those with one of `methods`."""
        return [(method, path) for method, path, _ in self.requests if not methods or method in methods]

    def keep(self) -> None:
        """Write the state, and what did not fit, into the folder."""
        if self.folder:
            for name, content in (("state", asdict(self.state)), ("violations", self.violations)):
                temporary = self.folder / f".{name}.tmp"
                temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
                temporary.replace(self.folder / f"{name}.json")


class _Problem(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: GitHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._handle()

    do_POST = do_PATCH = do_DELETE = do_PUT = do_GET  # noqa: N815

    def _handle(self) -> None:
        server, method = self.server, self.command
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with server.lock:
            server.requests.append((method, self.path, json.loads(body) if body else None))
            fault = next(
                (item for item in server.faults if item.method == method and re.search(item.path, self.path)), None
            )
            if fault:
                server.faults.remove(fault)
            headers: dict[str, str] = {}
            if fault and not fault.after:
                status, answer = (
                    fault.status,
                    {"message": fault.message, "documentation_url": "https://docs.github.com/rest"},
                )
            else:
                status, answer, headers = self._answer(method, body)
            if fault and fault.after:
                status, answer = (
                    fault.status,
                    {"message": fault.message, "documentation_url": "https://docs.github.com/rest"},
                )
            server.keep()
            if fault and fault.drop:
                self.close_connection = True
                self.connection.close()
                return
            content = b"" if answer is None else json.dumps(answer).encode()
            if status != 422 and template_of(urlsplit(self.path).path):
                self._violated(server.described.check(method, self.path, body, status, content))
        self.send_response(status)
        for name, value in (headers | (fault.headers if fault else {})).items():
            self.send_header(name, value)
        if content:
            self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _violated(self, problem: str | None) -> None:
        if problem:
            self.server.violations.append(problem)
            self.server.keep()

    def _answer(self, method: str, body: bytes) -> tuple[int, Any, dict[str, str]]:
        server, parts = self.server, urlsplit(self.path)
        state, template = server.state, template_of(parts.path)
        try:
            if template is None or method.lower() not in PATHS[template]:
                self._violated(f"{method} {parts.path}: the stand-in does not know this operation")
                raise _Problem(404, "Not Found")
            problem = server.described.check(method, self.path, body)
            if problem:
                self._violated(problem)
                raise _Problem(422, problem)
            if self.headers.get("Authorization", "").split(" ")[-1] not in (state.token, _basic(state.token)):
                raise _Problem(401, "Bad credentials")
            matched = re.match(pattern(template), parts.path)
            assert matched
            found = matched.groupdict()
            if f"{found['owner']}/{found['repo']}" != state.repository:
                raise _Problem(404, "Not Found")
            if method != "GET" and state.rights != "write":
                raise _Problem(403, "Resource not accessible by integration")
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            answers = _Answers(server, found, query, json.loads(body) if body else {})
            name = f"{method.lower()}_{template.removeprefix(REPOSITORY)}"
            status, answer = _OPERATIONS[name](answers)
            return status, *self._paged(answer, query)
        except _Problem as problem:
            return problem.status, {"message": str(problem), "documentation_url": "https://docs.github.com/rest"}, {}

    def _paged(self, answer: Any, query: dict[str, str]) -> tuple[Any, dict[str, str]]:
        """Return one page of a list, and the links to the next and the last as GitHub gives them."""
        if not isinstance(answer, list):
            return answer, {}
        size, page = min(int(query.get("per_page", 30)), 100), int(query.get("page", 1))
        pages = max(1, -(-len(answer) // size))
        path = urlsplit(self.path).path
        others = "".join(f"&{name}={value}" for name, value in query.items() if name not in ("page", "per_page"))
        links = [
            f'<{self.server.url}{path}?per_page={size}&page={number}{others}>; rel="{name}"'
            for name, number in (("next", page + 1), ("last", pages))
            if page < pages
        ]
        return answer[(page - 1) * size : page * size], {"Link": ", ".join(links)} if links else {}


class _Answers:
    """One request's answer, from the state."""

    def __init__(self, server: GitHub, found: dict[str, str], query: dict[str, str], body: Json) -> None:
        self.server, self.state, self.found, self.query, self.body = server, server.state, found, query, body
        self.base = f"{server.url}/repos/{server.state.repository}"

    def example(self, name: str) -> Any:
        return self.server.described.example(name)

    def get_pull(self) -> tuple[int, Json]:
        number = self.found["pull_number"]
        known = self._pull(number)
        answer = self.example("pull-request")
        answer |= {"number": int(number), "state": known["state"], "url": f"{self.base}/pulls/{number}"}
        answer["issue_url"] = f"{self.base}/issues/{number}"
        answer["comments_url"] = f"{self.base}/issues/{number}/comments"
        answer["commits_url"] = f"{self.base}/pulls/{number}/commits"
        answer["requested_teams"] = []  # GitHub's example of one does not fit its description
        answer["head"]["sha"], answer["base"]["sha"] = known["head"], known["base"]
        answer["merged"], answer["commits"] = known["state"] == "closed", len(known["commits"])
        return 200, answer

    def get_commits(self) -> tuple[int, list[Json]]:
        known = self._pull(self.found["pull_number"])
        return 200, [{**self.example("commit-items")[0], "sha": sha} for sha in known["commits"]]

    def _pull(self, number: str) -> Json:
        if number not in self.state.pulls:
            raise _Problem(404, "Not Found")
        return self.state.pulls[number]

    def get_comments(self) -> tuple[int, list[Json]]:
        number = self._known_issue()
        return 200, [self._comment(item) for item in self.state.comments if item["issue"] == number]

    def post_comments(self) -> tuple[int, Json]:
        number = self._known_issue()
        self._check_length()
        return 201, self._comment(self.state.comment(number, self.state.author, self.body["body"]))

    def get_comment(self) -> tuple[int, Json]:
        return 200, self._comment(self._one_comment())

    def patch_comment(self) -> tuple[int, Json]:
        self._check_length()
        item = self._one_comment()
        if item["author"] != self.state.author:
            raise _Problem(403, "Resource not accessible by integration")
        item["body"], item["edits"] = self.body["body"], item["edits"] + 1
        return 200, self._comment(item)

    def delete_comment(self) -> tuple[int, None]:
        self.state.comments.remove(self._one_comment())
        return 204, None

    def _one_comment(self) -> Json:
        for item in self.state.comments:
            if item["id"] == int(self.found["comment_id"]):
                return item
        raise _Problem(404, "Not Found")

    def _known_issue(self) -> int:
        number = int(self.found["issue_number"])
        if str(number) not in self.state.pulls and all(item["number"] != number for item in self.state.issues):
            raise _Problem(404, "Not Found")
        return number

    def _check_length(self) -> None:
        if len(self.body.get("body") or "") > 65536:
            raise _Problem(422, "Body is too long (maximum is 65536 characters)")

    def _comment(self, item: Json) -> Json:
        answer = self.example("issue-comment")
        answer |= {"id": item["id"], "body": item["body"], "created_at": TIME, "updated_at": TIME}
        answer |= {
            "url": f"{self.base}/issues/comments/{item['id']}",
            "issue_url": f"{self.base}/issues/{item['issue']}",
        }
        answer["html_url"] = (
            f"https://github.com/{self.state.repository}/pull/{item['issue']}#issuecomment-{item['id']}"
        )
        answer["user"] |= _user(item["author"])
        return answer

    def list_issues(self) -> tuple[int, list[Json]]:
        wanted, labels = self.query.get("state", "open"), set(filter(None, self.query.get("labels", "").split(",")))
        return 200, [
            self._issue(item)
            for item in self.state.issues
            if wanted in ("all", item["state"]) and labels <= set(item["labels"])
            and self.query.get("creator", item["author"]) == item["author"]
        ]  # fmt: skip

    def post_issue(self) -> tuple[int, Json]:
        self._check_length()
        made = self.state.issue(
            self.state.author, self.body["title"], self.body.get("body", ""), self.body.get("labels", [])
        )
        return 201, self._issue(made)

    def get_issue(self) -> tuple[int, Json]:
        return 200, self._issue(self._one_issue())

    def patch_issue(self) -> tuple[int, Json]:
        self._check_length()
        item = self._one_issue()
        item |= {name: value for name, value in self.body.items() if name in item}
        item["edits"] += 1
        return 200, self._issue(item)

    def _one_issue(self) -> Json:
        for item in self.state.issues:
            if item["number"] == int(self.found["issue_number"]):
                return item
        raise _Problem(404, "Not Found")

    def _issue(self, item: Json) -> Json:
        answer = self.example("issue")
        label = answer["labels"][0]
        answer |= {name: item[name] for name in ("number", "title", "body", "state", "state_reason")}
        answer["labels"] = [{**label, "name": name} for name in item["labels"]]
        answer["url"] = f"{self.base}/issues/{item['number']}"
        answer["html_url"] = f"https://github.com/{self.state.repository}/issues/{item['number']}"
        answer["user"] |= _user(item["author"])
        for absent in ["pull_request", *(["state_reason"] if item["state_reason"] is None else [])]:
            answer.pop(absent, None)
        return answer

    def get_permission(self) -> tuple[int, Json]:
        answer = self.example("repository-collaborator-permission-response-if-user-has-admin-permissions")
        login = self.found["username"]
        if login not in self.state.permissions:
            raise _Problem(404, "Not Found")
        answer["permission"] = answer["role_name"] = self.state.permissions[login]
        answer["user"] |= {**_user(login), "role_name": answer["role_name"]}
        return 200, answer


_OPERATIONS = {
    "get_/pulls/{pull_number}": _Answers.get_pull,
    "get_/pulls/{pull_number}/commits": _Answers.get_commits,
    "get_/issues/{issue_number}/comments": _Answers.get_comments,
    "post_/issues/{issue_number}/comments": _Answers.post_comments,
    "get_/issues/comments/{comment_id}": _Answers.get_comment,
    "patch_/issues/comments/{comment_id}": _Answers.patch_comment,
    "delete_/issues/comments/{comment_id}": _Answers.delete_comment,
    "get_/issues": _Answers.list_issues,
    "post_/issues": _Answers.post_issue,
    "get_/issues/{issue_number}": _Answers.get_issue,
    "patch_/issues/{issue_number}": _Answers.patch_issue,
    "get_/collaborators/{username}/permission": _Answers.get_permission,
}


def _user(login: str) -> Json:
    return {"login": login, "type": "Bot" if login.endswith("[bot]") else "User"}


def _basic(token: str) -> str:
    return base64.b64encode(f"x-access-token:{token}".encode()).decode()


@contextlib.contextmanager
def running(state: State | None = None, *, port: int = 0, folder: Path | None = None) -> Iterator[GitHub]:
    """Run the stand-in for the duration of a test, which fails where anything did not fit GitHub's description."""
    server = GitHub(port, state or State(), description(), folder)
    thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.02), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert not server.violations, "\n".join(server.violations)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="A stand-in for GitHub's REST interface on the loopback.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--state", type=Path, required=True, help="a folder for state.json")
    parser.add_argument("--schema", type=Path, default=DESCRIPTION, help="the npm package @octokit/openapi")
    options = parser.parse_args()
    options.state.mkdir(parents=True, exist_ok=True)
    file = options.state / "state.json"
    state = State(**json.loads(file.read_text(encoding="utf-8"))) if file.exists() else State()
    server = GitHub(options.port, state, description(options.schema), options.state)
    server.keep()
    (options.state / "address").write_text(server.url, encoding="utf-8")
    print(server.url, flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
