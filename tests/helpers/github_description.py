"""GitHub's own description of its REST interface, as far as a commenter needs it: `@octokit/openapi` from npm."""

from __future__ import annotations

import copy
import functools
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]

DESCRIPTION = Path(__file__).parents[2] / "node_modules" / "@octokit" / "openapi"
REPOSITORY = "/repos/{owner}/{repo}"
PATHS = {
    f"{REPOSITORY}/pulls/{{pull_number}}": ("get",),
    f"{REPOSITORY}/pulls/{{pull_number}}/commits": ("get",),
    f"{REPOSITORY}/issues/{{issue_number}}/comments": ("get", "post"),
    f"{REPOSITORY}/issues/comments/{{comment_id}}": ("get", "patch", "delete"),
    f"{REPOSITORY}/issues": ("get", "post"),
    f"{REPOSITORY}/issues/{{issue_number}}": ("get", "patch"),
    f"{REPOSITORY}/collaborators/{{username}}/permission": ("get",),
}


class Description:
    """GitHub's description of the paths above, with GitHub's examples."""

    def __init__(self, package: Path) -> None:
        import openapi_core

        whole = json.loads((package / "generated" / "api.github.com.json").read_bytes())
        paths = {
            path: {name: item for name, item in whole["paths"][path].items() if name in (*methods, "parameters")}
            for path, methods in PATHS.items()
        }
        self.examples = whole["components"]["examples"]
        self.cut = {"openapi": whole["openapi"], "info": whole["info"], "servers": [{"url": "/"}], "paths": paths}
        self.cut["components"] = _referenced(whole, paths, ("#/components/schemas/basic-error",))
        self.api = openapi_core.OpenAPI.from_dict(self.cut)

    def example(self, name: str) -> Any:
        """Return a copy of the value of GitHub's example `name`."""
        return copy.deepcopy(self.examples[name]["value"])

    def check(self, method: str, url: str, body: bytes, status: int | None = None, answer: bytes = b"") -> str | None:
        """Return why a request, or the answer to it, does not fit the description."""
        from openapi_core.exceptions import OpenAPIError
        from openapi_core.testing import MockRequest, MockResponse

        parts = urlsplit(url)
        arguments = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        request = MockRequest(
            "http://localhost", method.lower(), parts.path, args=arguments, data=body or None,
            content_type="application/json",
        )  # fmt: skip
        try:
            if status is None:
                self.api.validate_request(request)
            elif str(status) in self.cut["paths"][template_of(parts.path)][method.lower()]["responses"]:
                content_type = "application/json" if answer else ""
                self.api.validate_response(request, MockResponse(answer, status_code=status, content_type=content_type))
            elif status < 400 or (problem := self._no_error(answer)):
                return f"{method} {parts.path}: {status} is not an answer of this operation{problem or ''}"
        except OpenAPIError as error:
            errors = getattr(error.__cause__, "schema_errors", ()) or getattr(error, "schema_errors", ())
            told = [f"/{'/'.join(map(str, item.absolute_path))}: {item.message[:200]}" for item in errors]
            return f"{method} {parts.path} ({status or 'request'}): {'; '.join(told) or str(error)[:300]}"
        return None

    def _no_error(self, answer: bytes) -> str | None:
        """Return why `answer` is no error as GitHub words them: 429 and 5xx are not described per operation."""
        from openapi_schema_validator import OAS30Validator

        errors = OAS30Validator(self.cut["components"]["schemas"]["basic-error"]).iter_errors(json.loads(answer))
        return next((f": {error.message}" for error in errors), None)


@functools.cache
def description(package: Path = DESCRIPTION) -> Description:
    """Return the description in the npm package at `package`, read once."""
    return Description(package)


def _referenced(whole: Json, paths: Json, roots: tuple[str, ...]) -> Json:
    """Return those components of the description `whole` that `paths` and `roots` refer to."""
    found: Json = {}
    waiting: list[Any] = [paths, [{"$ref": root} for root in roots]]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item
        elif isinstance(item, dict):
            waiting += item.values()
            reference = item.get("$ref")
            if isinstance(reference, str):
                _, _, kind, name = reference.split("/", 3)
                if name not in found.setdefault(kind, {}):
                    found[kind][name] = whole["components"][kind][name]
                    waiting.append(found[kind][name])
    return found


def pattern(template: str) -> str:
    return "^" + re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template)) + "$"


def template_of(path: str) -> str | None:
    return next((item for item in PATHS if re.match(pattern(item), path)), None)
