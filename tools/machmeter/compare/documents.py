"""The two documents of a comparison: what was measured (`Measurements`), and what that means (`Comparison`).

Both travel as strict JSON between machines that do not trust each other, so the types below are their schema: sizes
are bounded, numbers are finite, unknown fields are refused. Decoding raises `msgspec.ValidationError` with the path of
what is wrong.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from machmeter.errors import MeasurementsUnreadable
from machmeter.text.inert import plain

# Names come from whoever wrote the benchmarks; they are bounded here and made inert where they are rendered.
Name = Annotated[str, Meta(min_length=1, max_length=300)]
Text = Annotated[str, Meta(max_length=1000)]
# Empty where a side is not a commit. "$" also matches before a newline that ends the text: no other character may begin
# it, and none may follow.
Commit = Annotated[str, Meta(pattern="^(?![^0-9a-f])([0-9a-f]{40})?$", max_length=40)]
Number = Annotated[float, Meta(ge=-1e300, le=1e300)]
Positive = Annotated[float, Meta(gt=0, le=1e300)]
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Names = Annotated[dict[Name, Text], Meta(max_length=2000)]

Better = Literal["lower", "higher", "unknown"]
Status = Literal["ok", "failed", "n/a", "not run"]


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What every part of both documents is."""


class Process(Document, frozen=True, kw_only=True):
    """What one process found of one metric: the unit of judgement, as samples within one are not independent.

    `round` pairs it with the other side's process of the same round; `order` is its place in the whole sequence of
    processes of both sides. A metric that is known once (a size, an agreement) has one process.
    """

    round: Count
    order: Count
    value: Number  # the median of its samples, in the metric's unit
    samples: Count = 1
    disturbed: Share | None = None  # share of the CPUs that other programs had meanwhile; None where unknown


class Row(Document, frozen=True, kw_only=True):
    """One metric of one cell on one side."""

    cell: Name  # "cpu.openvino.ResNet50(int8, 8)"; of a foreign asv project its benchmark and parameters
    metric: Name  # the benchmark method, as in metrics.py: "time_forward"
    unit: Annotated[str, Meta(max_length=40)]
    better: Better
    version: Annotated[str, Meta(max_length=200)] = ""  # of the benchmark; two versions measure two different things
    status: Status = "ok"
    reason: Text = ""  # why there is no number
    processes: Annotated[list[Process], Meta(max_length=1000)] = []
    control: bool = False  # measures the machine, not the change


class Side(Document, frozen=True, kw_only=True):
    """One side of a comparison."""

    label: Name  # as it was asked for: a branch, a version, a file
    commit: Commit = ""
    environment: Text = ""
    stack: Annotated[str, Meta(max_length=100)] = ""
    host: Names = {}  # facts of the machine that decide whether two sides are comparable, as text
    versions: Names = {}  # installed libraries, from the evidence
    pins: Names = {}  # what this side's requirements file asks for
    error: Text = ""  # why nothing of this side could be measured: "does not build: ..."
    rows: Annotated[list[Row], Meta(max_length=50_000)] = []


class Measurements(Document, frozen=True, kw_only=True, omit_defaults=False):
    """Everything that was measured of base and head on one machine, and nothing that was concluded."""

    schema: Literal[1] = 1
    machine: Name
    base: Side
    head: Side
    rounds: Count = 0
    interleaved: bool = False  # in balanced order; otherwise the sides were measured at different times
    started: Annotated[str, Meta(max_length=40)] = ""  # UTC, ISO 8601
    seconds: Number = 0.0
    notes: Annotated[list[Text], Meta(max_length=100)] = []  # "the time budget ended after 5 of 8 rounds"


Verdict = Literal["regression", "improvement", "changed", "no change", "undecided", "not judged"]


class Finding(Document, frozen=True, kw_only=True):
    """What may be said about one metric of one cell that both sides have."""

    cell: Name
    metric: Name
    unit: Annotated[str, Meta(max_length=40)]
    better: Better
    verdict: Verdict  # "changed" is a significant change of a metric whose direction nobody knows
    base: Number
    head: Number
    ratio: Positive | None = None  # head over base; None where a value is zero or negative
    low: Positive | None = None  # 95 % interval of the ratio, from processes
    high: Positive | None = None
    p: Share | None = None
    q: Share | None = None  # p after Benjamini-Hochberg over the whole table
    minimum: Number = 0.0  # smallest relative change that counts for this metric
    pairs: Count = 0
    words: Text = ""  # where a ratio says nothing: "from 0 ns to 5.000 s"; or why this was not judged


class Lone(Document, frozen=True, kw_only=True):
    """A cell, or a metric of it, that cannot be put side by side, and why."""

    cell: Name
    metric: Name
    kind: Literal["failed", "fixed", "new", "removed", "refused", "failing", "n/a"]
    reason: Text = ""


class Difference(Document, frozen=True, kw_only=True):
    """A library whose version differs. `pinned` where the change itself says so in its requirements."""

    name: Name
    base: Text = ""  # empty where it is not installed
    head: Text = ""
    pinned: bool = False


class Shift(Document, frozen=True, kw_only=True):
    """How far the machine's own controls moved between the sides: nothing finer can be judged."""

    ratio: Positive
    low: Positive
    high: Positive
    control: Name


class Mean(Document, frozen=True, kw_only=True):
    """The geometric mean of the ratios of one metric over the cells that both sides have."""

    metric: Name
    ratio: Positive
    cells: Count


class Described(Document, frozen=True, kw_only=True):
    """A side as a comparison names it."""

    label: Name
    commit: Commit = ""
    environment: Text = ""
    stack: Annotated[str, Meta(max_length=100)] = ""
    error: Text = ""


class Comparison(Document, frozen=True, kw_only=True, omit_defaults=False):
    """The judgement. Lists are in the order in which they should be read: failures first, then by effect."""

    schema: Literal[1] = 1
    machine: Name
    base: Described
    head: Described
    result: Literal["no regression", "regression", "could not judge"]
    incomparable: Annotated[list[Text], Meta(max_length=50)] = []  # why no ratio of the sides means anything
    shift: Shift | None = None
    findings: Annotated[list[Finding], Meta(max_length=50_000)] = []
    lone: Annotated[list[Lone], Meta(max_length=50_000)] = []
    packages: Annotated[list[Difference], Meta(max_length=2000)] = []
    means: Annotated[list[Mean], Meta(max_length=100)] = []
    host: Names = {}  # what the machine is: "cpu": "Intel ...", "threads": "4"
    rounds: Count = 0
    interleaved: bool = False
    seconds: Number = 0.0
    notes: Annotated[list[Text], Meta(max_length=100)] = []


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
