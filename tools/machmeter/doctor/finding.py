"""What a check of the doctor found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# "unknown" is where the kernel or a program does not tell: nobody looked, so it is never "ok".
State = Literal["ok", "change", "unknown", "n/a", "accepted"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The state of one thing that numbers depend on, what to do about it and why."""

    check: str
    state: State
    found: str
    do: str = ""  # the command, or what to ask for where no command does it
    why: str = ""


def unknown(check: str, found: str, why: str, do: str = "") -> Finding:
    """Return the finding for what could not be seen."""
    return Finding(check=check, state="unknown", found=found, do=do, why=why)


def judged(check: str, good: bool, found: str, *, do: str, why: str) -> Finding:
    """Return the finding for what could be seen; `do` and `why` are told where it is not `good`."""
    return (
        Finding(check=check, state="ok", found=found)
        if good
        else Finding(check=check, state="change", found=found, do=do, why=why)
    )


def numbers(text: str) -> set[int]:
    """Return the numbers of a list as the kernel writes it, such as "0-3,8"."""
    found: set[int] = set()
    for part in text.replace("\n", ",").split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            found |= set(range(int(first), int(last or first) + 1))
    return found
