"""`machmeter site serve`: the built site over HTTP, on this machine alone unless told otherwise."""

from __future__ import annotations

import contextlib
import functools
import http.server
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machmeter.errors import NoResults, SiteUnbuildable
from machmeter.site.swap import MARKER


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files, quietly, and lets nothing be kept: a rebuilt site must show at once."""

    extensions_map = {  # noqa: RUF012 - the base class's own form
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".atom": "application/atom+xml",
        ".js": "text/javascript",
        ".json": "application/json",
        ".svg": "image/svg+xml",
    }

    def end_headers(self) -> None:
        """Add our headers to those of the file."""
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each request."""


def server(output: Path, bind: str, port: int) -> http.server.ThreadingHTTPServer:
    """Return a server of the site in `output`.

    Raises NoResults where there is no site, and SiteUnbuildable where the port cannot be had.
    """
    if not (output / MARKER).is_file():
        raise NoResults(f"there is no site in {output}: run 'machmeter site build' first")
    handler = functools.partial(Handler, directory=str(output))
    try:
        return http.server.ThreadingHTTPServer((bind, port), handler)
    except (OSError, OverflowError) as error:
        raise SiteUnbuildable(f"cannot listen on {bind}, port {port} ({error}): choose another with --port") from error


def run(output: Path, bind: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until interrupted."""
    with server(output, bind, port) as running, contextlib.suppress(KeyboardInterrupt):
        say(f"serving {output} on http://{bind}:{running.server_port}/ (Ctrl-C stops)")
        running.serve_forever()
