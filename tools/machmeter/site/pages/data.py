"""The data page: which files there are, badges, and what this build read and left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from machmeter.site import words
from machmeter.site.badges import Badge
from machmeter.site.pages.common import Site


def context(site: Site, badges: Sequence[Badge]) -> dict[str, Any]:
    """Return what the data page shows."""
    history = site.history
    files = [
        ("index.json", "data/index.json", "Machines, environments, commits, benchmarks, which series there are, what was left out.", "index.json"),
        ("series/<key>.json", "", "All points of one series, as columns. Each history page links its own.", "series.json"),
        ("commits.json", "data/commits.json", "Every commit with results: hash, date and tags, in order; what the plots count on.", "commits.json"),
        ("compare/<machine>.json", "", "What can be compared on a machine: its rows and runs.", "compare.json"),
        ("run/<key>.json", "", "The numbers of one run, in the order of its machine's rows.", "run.json"),
        ("changes.json", "data/changes.json", "Every change, most important first.", "changes.json"),
    ]  # fmt: skip
    if badges:
        files.append(("badges/<machine>/<cell>-<kind>.json", "", "Badge endpoints in the form of shields.io.", "badge.json"))
    return {
        "data": {
            "files": [
                {"name": name, "href": href, "content": content, "schema": schema}
                for name, href, content, schema in files
            ],
            "badges": [
                {"machine": badge.machine, "kind": badge.kind, "name": badge.name, "message": badge.message, "href": badge.href}
                for badge in badges
            ],
            "build": [
                ("result files read", words.plural(history.files, "file")),
                ("left out", words.plural(len({item.path for item in history.left_out}), "file")),
                ("commits", words.plural(len(history.commits), "commit")),
                ("orphans", words.plural(history.orphans, "commit")),
                ("benchmarks", words.plural(len(history.benchmarks), "benchmark")),
                ("series", words.plural(len(history.series), "series", "series")),
                ("order of commits", "from the repository" if history.has_repository else "by date"),
                ("newest result", words.minute(site.newest)),
            ],
        }
    }
