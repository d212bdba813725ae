"""Add the results of a machine to examples/, with nothing in them that says whose machine it was.

    .venv/bin/python tools/docs/add_example.py FOLDER [--measured-in FOLDER] [--home FOLDER]

FOLDER has `results/` and `evidence/`. Numbers, samples and reasons stay as they were measured: only paths are replaced,
and JSON is written without spaces. Locks and traces of processes are left out.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
MOST_BYTES = 3_000_000

HOME = "/home/you"
PROJECT = f"{HOME}/machmeter"

# Paths that name a user, or a place that only one machine has.
_PRIVATE = re.compile(
    r"(?:/home/(?!you\b)|/Users/|/root\b|/tmp/|py_(?!home_you_)[a-z]+_)[^\s\"':]*"
    r"|(?<![\w./])/(?!home/you/)[\w./-]*/(?:\.venv|\.asv|evidence|results)\b[^\s\"':]*"
)


class Unfit(Exception):
    """What must not be added, in one line."""


def main() -> int:
    """Add the results of a folder, or say why they are not added."""
    parser = argparse.ArgumentParser(description="Add the results of a machine to examples/.")
    parser.add_argument("folder", type=Path, help="with results/ and evidence/")
    parser.add_argument("--measured-in", type=Path, help="the project's folder when it was measured; default: FOLDER")
    parser.add_argument("--home", type=Path, default=Path.home(), help="the home of whoever measured")
    parser.add_argument("--examples", type=Path, default=EXAMPLES, help="where to add them")
    chosen = parser.parse_args()
    measured_in = chosen.measured_in or chosen.folder.resolve()
    try:
        added = add(chosen.folder, chosen.examples, replacements(measured_in, chosen.home))
    except Unfit as problem:
        print(f"not added: {problem}", file=sys.stderr)
        return 1
    print(f"added {len(added)} files; {chosen.examples} has {size(chosen.examples):,} bytes")
    return 0


def replacements(project: Path, home: Path) -> list[tuple[str, str]]:
    """Return what is replaced by what: paths, and the form that asv's names of environments have of them."""
    pairs = [(str(project), PROJECT), (str(home), HOME)]
    return [*pairs, *((old.replace("/", "_"), new.replace("/", "_")) for old, new in pairs)]


def add(folder: Path, examples: Path, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Write the files of `folder` into `examples`; return their names there. Raises Unfit, and then writes nothing."""
    files = dict(_files(folder, examples, pairs))
    if not files:
        raise Unfit(f"{folder} has no results/ or evidence/ with JSON files")
    for name, text in files.items():
        if private := _PRIVATE.search(f"{name} {text}"):
            raise Unfit(f"{name} has the path {private.group()}: name its folder with --measured-in or --home")
        if socket.gethostname() in text:
            raise Unfit(f"{name} has the name of this host")
    total = size(examples) + sum(
        len(text.encode()) - (target.stat().st_size if (target := examples / name).is_file() else 0)
        for name, text in files.items()
    )
    if total > MOST_BYTES:
        raise Unfit(f"examples would have {total:,} bytes, more than {MOST_BYTES:,}: leave commits or cells out")
    for name, text in files.items():
        target = examples / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return sorted(files)


def size(examples: Path) -> int:
    """Return the bytes of all files in `examples`."""
    return sum(path.stat().st_size for path in examples.rglob("*") if path.is_file())


def _files(folder: Path, examples: Path, pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the name in `examples` and the text of each file: hidden ones (locks, traces) are none."""
    for path in sorted([*(folder / "results").rglob("*.json"), *(folder / "evidence").rglob("*.json")]):
        inside = path.relative_to(folder)
        if any(part.startswith(".") for part in inside.parts):
            continue
        name, text = str(inside), path.read_text(encoding="utf-8")
        for old, new in pairs:
            name, text = name.replace(old, new), text.replace(old, new)
        content = json.loads(text)
        if len(inside.parts) == 2:  # of all machines: benchmarks.json, and when versions were released
            content = _joined(content, examples / name)
        yield name, json.dumps(content, separators=(",", ":"), ensure_ascii=False) + "\n"


def _joined(content: dict[str, Any], target: Path) -> dict[str, Any]:
    """Return `content` with what only the example's file has; of a list of releases, the one that was read last."""
    if not target.is_file():
        return content
    known = json.loads(target.read_text(encoding="utf-8"))
    if "releases" in content:
        return max(known, content, key=lambda found: found["read"])
    return dict(sorted({**known, **content}.items()))


if __name__ == "__main__":
    sys.exit(main())
