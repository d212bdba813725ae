"""How much time may be spent on measuring."""

from __future__ import annotations

import re

from machmeter.errors import BadBudget

_FORM = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+)s)?", re.ASCII)


def parse(text: str) -> float:
    """Return the seconds that `text` stands for: "30m", "1h30m", "90s". Raises BadBudget."""
    found = _FORM.fullmatch(text.strip().lower())
    hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0)
    total = 3600.0 * hours + 60.0 * minutes + seconds
    if not 0.0 < total <= 1e7:
        raise BadBudget(f"--budget is {text!r}: write a time such as 30m, 1h30m or 90s")
    return total


def shown(seconds: float) -> str:
    """Return `seconds` as a person says it: "1 h 5 min", "12 min", "40 s"."""
    if seconds < 90:
        return f"{max(0, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
