"""The documents of a comparison as files: read within bounds, written as strict JSON, described by a schema."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import msgspec

from machmeter.compare.documents import Comparison, Measurements
from machmeter.errors import MeasurementsUnreadable
from machmeter.text.inert import plain

NAME = "measurements.json"
LARGEST = 50_000_000  # bytes; 2,000 cells with five metrics and 20 rounds are 15 MB


def read(path: Path) -> Measurements:
    """Return the measurements in the file `path`, or in a folder of 'machmeter pr'. Raises MeasurementsUnreadable."""
    if path.is_dir():
        path = path / NAME
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe must not be waited for
        with os.fdopen(handle, "rb") as stream:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise MeasurementsUnreadable(f"{path} is not a file")
            content = stream.read(LARGEST + 1)
    except OSError as error:
        raise MeasurementsUnreadable(f"cannot read {path}: {error.strerror or error}") from error
    return parse(content, str(path))


def parse(content: bytes, where: str) -> Measurements:
    """Return the measurements in `content`, as read from `where`. Raises MeasurementsUnreadable."""
    again = "it must be what 'machmeter pr' has written"
    if len(content) > LARGEST:
        raise MeasurementsUnreadable(f"{where} has more than {LARGEST // 1_000_000} MB: {again}")
    if not content.strip():
        raise MeasurementsUnreadable(f"{where} is empty: {again}")
    try:
        return msgspec.json.decode(content, type=Measurements)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        told = plain(str(error), 200)
        raise MeasurementsUnreadable(f"{where} holds no measurements ({told}): {again}") from error


def as_json(found: Comparison) -> str:
    """Return the judgement as strict JSON."""
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode()


def schema() -> str:
    """Return the JSON schema of the judgement."""
    described: dict[str, Any] = msgspec.json.schema(Comparison)
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **described}, indent=2)
