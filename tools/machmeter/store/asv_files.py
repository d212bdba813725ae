"""asv's files, read strictly and without asv: a file or a row that cannot be used is named, never guessed at.

Nothing else opens them. What is returned of one file is a function of its bytes and its path alone. asv writes bare NaN
and Infinity, which only a lenient parser takes: the standard library's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from machmeter.store.asv_rows import Calls, Rows, milliseconds, short
from machmeter.store.columns import Header, Table

FORMAT_VERSION = 2

_MACHINE_FACTS = ("arch", "cpu", "num_cpu", "os", "ram")


class Unusable(Exception):
    """A file is not one of asv's result files in the present format. The text says what it is."""


def find(results: Path) -> list[str]:
    """Return the paths of all JSON files under `results` that should be results, relative to it, sorted."""
    found = []
    for folder, folders, names in _walk(results):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            (folder / name).relative_to(results).as_posix()
            for name in names
            if name.endswith(".json") and name not in ("machine.json", "benchmarks.json") and not name.startswith(".")
        ]
    return sorted(found)


def _walk(top: Path) -> Iterable[tuple[Path, list[str], list[str]]]:
    # Path.walk is new in Python 3.12.
    for folder, folders, names in os.walk(top):
        yield Path(folder), folders, names


def parse(content: bytes, path: str) -> Table:
    """Return the table of the one file whose bytes are `content`. Raises Unusable."""
    data = _decoded(content)
    rows = _taken(data, with_calls=False)
    return rows.table(_header(data, path, rows.problems))


def parse_with_calls(content: bytes, path: str) -> tuple[Table, Calls]:
    """Return what `parse` does, and what the file has of single calls. Raises Unusable."""
    data = _decoded(content)
    rows = _taken(data, with_calls=True)
    return rows.table(_header(data, path, rows.problems)), rows.calls()


class _Beginning(msgspec.Struct):
    """What a file says of itself, in whatever order: foreign data. The rest is passed over, which takes no time."""

    version: Any = None
    commit_hash: Any = None
    env_name: Any = None
    date: Any = None
    params: Any = None
    python: Any = None
    requirements: Any = None
    env_vars: Any = None
    result_columns: Any = None
    results: msgspec.Raw = msgspec.Raw()


_NULL = b"null"
_beginnings = msgspec.json.Decoder(_Beginning)


def look(content: bytes, path: str) -> Header:
    """Return what `parse` says of the file as a whole without parsing its rows. Raises Unusable."""
    strict = content.replace(b"NaN", _NULL) if b"NaN" in content else content
    if b"Infinity" in content:
        strict = strict.replace(b"-Infinity", _NULL).replace(b"Infinity", _NULL)
    try:
        data: dict[str, Any] = msgspec.structs.asdict(_beginnings.decode(strict))
    except (ValueError, RecursionError):  # the lenient parser takes more, and knows what is wrong
        data = _decoded(content)
    else:
        results = data.pop("results")
        data["results"] = {} if bytes(memoryview(results)[:1]) == b"{" else None
        if strict is not content and _NULL in msgspec.json.encode(_texts_of(data)):
            data = _decoded(content)  # the word may have stood in a name
    _check(data)
    return _header(data, path, [])


def look_at(path: Path) -> Header:
    """Return what `look` says of the file `path` in its machine's folder. Raises Unusable."""
    return look(_bytes(path), f"{path.parent.name}/{path.name}")


def read(path: Path) -> Table:
    """Return what `parse` says of the file `path` in its machine's folder. Raises Unusable."""
    return parse(_bytes(path), f"{path.parent.name}/{path.name}")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unusable(f"cannot be read: {error.strerror or error}") from error


def _texts_of(data: Mapping[str, Any]) -> list[Any]:
    return [data[name] or "" for name in ("commit_hash", "env_name", "python", "params", "requirements", "env_vars")]


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except RecursionError as error:
        raise Unusable("is not an asv result file") from error
    except ValueError as error:
        raise Unusable("is empty" if not content.strip() else "is not valid JSON, perhaps half-written") from error


def _taken(data: Any, *, with_calls: bool) -> Rows:
    columns, given = _check(data)
    rows = Rows(with_calls=with_calls)
    for benchmark, row in given.items():
        rows.add(benchmark, row, columns)
    return rows


def _check(data: Any) -> tuple[dict[str, int], Mapping[str, Any]]:
    """Return the positions of the columns, and the rows. Raises Unusable where `data` has another shape."""
    if not isinstance(data, dict) or "commit_hash" not in data or "results" not in data:
        raise Unusable("is not an asv result file")
    version = data.get("version")
    if version == 1:
        raise Unusable("is in asv's old format (version 1): 'asv update' converts it")
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise Unusable(f"has format version {short(version)} instead of {FORMAT_VERSION}")
    columns, rows = data.get("result_columns"), data["results"]
    if not isinstance(columns, list) or not {"result", "params"} <= {item for item in columns if isinstance(item, str)}:
        raise Unusable("is not an asv result file: it has no result_columns")
    if not isinstance(rows, dict):
        raise Unusable("is not an asv result file: its results are no object")
    if not isinstance(data["commit_hash"], str) or not data["commit_hash"]:
        raise Unusable("names no commit")
    return {name: number for number, name in enumerate(columns) if isinstance(name, str)}, rows


def _header(data: Mapping[str, Any], path: str, problems: list[str]) -> Header:
    noted = data.get("params")
    params: dict[str, Any] = noted if isinstance(noted, dict) else {}
    name = data.get("env_name")
    python = data.get("python")
    machine = params.get("machine")
    return Header(
        path=path,
        folder=path.rpartition("/")[0],
        machine=machine if isinstance(machine, str) and machine else None,
        commit=data["commit_hash"],
        date=milliseconds(data.get("date")),
        environment=name if isinstance(name, str) else "",
        python=python if isinstance(python, str) else "",
        requirements=_texts(data.get("requirements")),
        variables=_texts(data.get("env_vars")),
        facts=_texts({fact: params[fact] for fact in _MACHINE_FACTS if fact in params}),
        problems=tuple(problems),
    )


def _texts(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        return ()
    return tuple(sorted((str(name), "" if text is None else str(text)) for name, text in value.items()))
