"""Which version of which library a process is asked to measure, and whether that is what is installed.

A sweep says it in `MACHMETER_SWEPT`, as JSON; the evidence keeps it with the run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from machmeter.errors import BadSetting

VARIABLE = "MACHMETER_SWEPT"


def current() -> dict[str, Any] | None:
    """Return {"library", "version", "released"} as this process was told, or None outside a sweep."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    try:
        told = json.loads(text)
        return {"library": str(told["library"]), "version": str(told["version"]), "released": told.get("released")}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadSetting(f"{VARIABLE} is {text!r}: it must be an object with library and version; unset it") from error


def falsehood(told: Mapping[str, Any], installed: Mapping[str, str]) -> str | None:
    """Return why the version that was `told` is not the one measured, or None where it is `installed`."""
    library, version = told["library"], told["version"]
    have = installed.get(library)
    if have is not None and have.split("+")[0] == version:
        return None
    return f"labelled {library} {version}, but {have or 'none'} is installed"
