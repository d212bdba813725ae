"""What a configuration must keep to, read from the words of a command line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from machmeter.errors import BadSetting
from machmeter.recommend.candidates import Candidate

Kind = Literal["latency", "agreement", "throughput", "memory"]

_MILLISECONDS = {"s": 1e3, "ms": 1.0, "us": 1e-3, "µs": 1e-3}
_MEGABYTES = {"MB": 1.0, "GB": 1e3, "MiB": 2**20 / 1e6, "GiB": 2**30 / 1e6}

_OPTIONS: dict[Kind, str] = {
    "agreement": "--min-agreement",
    "latency": "--max-latency",
    "throughput": "--min-throughput",
    "memory": "--max-memory",
}
_VALUES: dict[Kind, Callable[[Candidate], float | None]] = {
    "agreement": lambda candidate: candidate.top1_agreement,
    "latency": lambda candidate: candidate.latency_ms,
    "throughput": lambda candidate: candidate.images_per_second,
    "memory": lambda candidate: candidate.facts.get("peak_memory_mb"),
}


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One limit: milliseconds, a share of images, images per second, or megabytes (10^6 bytes)."""

    kind: Kind
    bound: float
    written: str  # as the user wrote it

    @property
    def option(self) -> str:
        """Return the option that set it, as on the command line."""
        return f"{_OPTIONS[self.kind]} {self.written}"

    @property
    def at_most(self) -> bool:
        """Return whether less is better."""
        return self.kind in ("latency", "memory")

    def value(self, candidate: Candidate) -> float | None:
        """Return what the limit is applied to, None where it was not measured."""
        return _VALUES[self.kind](candidate)

    def met(self, candidate: Candidate) -> bool:
        """Return whether `candidate` keeps to it; what was not measured does not."""
        value = self.value(candidate)
        if value is None:
            return False
        return value <= self.bound if self.at_most else value >= self.bound

    def described(self, candidate: Candidate) -> str:
        """Return the value of `candidate` in words."""
        value = self.value(candidate)
        if value is None:
            return f"{self.kind} not measured"
        if self.kind == "latency":
            return f"{candidate.latency_is} {value:.2f} ms"
        return {"agreement": f"top-1 {value:.3f}", "memory": f"{value:.0f} MB"}.get(self.kind, f"{value:.1f} images/s")


def parse(words: Mapping[Kind, str | None]) -> list[Limit]:
    """Return the limits that `words` set, such as {"latency": "50ms"}. Raises BadSetting for what cannot be used."""
    return [
        Limit(kind=kind, bound=_bound(kind, text), written=text.strip())
        for kind, text in words.items()
        if text is not None
    ]


def _bound(kind: Kind, text: str) -> float:
    if kind == "latency":
        return _with_unit(kind, text, _MILLISECONDS)
    if kind == "memory":
        return _with_unit(kind, text, _MEGABYTES)
    number = _number(text)
    if kind == "agreement" and not (number is not None and 0.0 <= number <= 1.0):
        raise BadSetting(f"{_OPTIONS[kind]} is {text!r}: give a share of images between 0 and 1, such as 0.99")
    if number is None or (number <= 0.0 and kind == "throughput"):
        raise BadSetting(f"{_OPTIONS[kind]} is {text!r}: give images per second, such as 100")
    return number


def _with_unit(kind: Kind, text: str, units: Mapping[str, float]) -> float:
    found = re.fullmatch(r"\s*([\d.]+)\s*([^\W\d]+)\s*", text)
    number = _number(found[1]) if found and found[2] in units else None
    if found is None or not number:
        *most, last = units
        raise BadSetting(
            f"{_OPTIONS[kind]} is {text!r}: give a number above 0 with {', '.join(most)} or {last}, "
            f"such as {'50ms' if kind == 'latency' else '1GB'}"
        )
    return number * units[found[2]]


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
