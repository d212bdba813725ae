"""Whether a ratio of two sides or two runs means anything at all, and which libraries may explain it."""

from __future__ import annotations

from machmeter.compare.documents import Difference, Side
from machmeter.history import environment_changes
from machmeter.history.data import Run

# Facts of the machine that both sides must share, under the names that `environment_changes.recorded` gives them.
SAME = ("machine", *environment_changes.INCOMPARABLE, "CPU as asv has it")

# What installs, measures or draws, and never runs a model.
_NOISE = {"pip", "setuptools", "wheel", "machmeter", "asv", "asv-runner", "pytest", "ruff", "mypy"}


def differences(base: Side, head: Side) -> list[Difference]:
    """Return the libraries whose installed versions differ, those that the change pins first."""
    if not base.versions or not head.versions:
        return []
    found = [
        Difference(
            name=name,
            base=base.versions.get(name, ""),
            head=head.versions.get(name, ""),
            pinned=base.pins.get(name) != head.pins.get(name),
        )
        for name in sorted({*base.versions, *head.versions})
        if name not in _NOISE and base.versions.get(name) != head.versions.get(name)
    ]
    return sorted(found, key=lambda item: not item.pinned)


def reasons(base: Side, head: Side) -> list[str]:
    """Return why base and head cannot be compared, nothing where they can.

    What only one side has on record of the machine is no difference.
    """
    found = [
        f"{name} differs: {_short(base.host[name])} and {_short(head.host[name])}"
        for name in SAME
        if name in base.host and name in head.host and base.host[name] != head.host[name]
    ]
    unasked = _unasked(base, head)
    if unasked:
        listed = ", ".join(f"{item.name} {item.base or 'none'} and {item.head or 'none'}" for item in unasked[:6])
        more = f" and {len(unasked) - 6} more" if len(unasked) > 6 else ""
        found.append(f"libraries differ that the change does not pin: {listed}{more}")
    return found


def between_runs(base: Run, head: Run) -> str:
    """Return why two runs of a history cannot be compared, "" where they can."""
    if base.machine.key != head.machine.key:
        return f"not comparable: measured on {base.machine.name} and on {head.machine.name}"
    named = {difference[0]: difference for difference in environment_changes.host(base, head)}
    listed = [named[name] for name in environment_changes.INCOMPARABLE if name in named]
    words = ", ".join(environment_changes.told(*difference) for difference in listed)
    return f"not comparable: {words}" if words else ""


def _unasked(base: Side, head: Side) -> list[Difference]:
    """Return the libraries that moved though nobody asked them to.

    A library without a pin may come along with one whose pin changed.
    """
    if not base.pins or not head.pins:
        return []
    changed = dict(base.pins) != dict(head.pins)
    return [
        item
        for item in differences(base, head)
        if not item.pinned and (not changed or item.name in base.pins or item.name in head.pins)
    ]


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:199] + "…"
