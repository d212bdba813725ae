"""Which measured configuration to use under given limits, and the program that loads it without machmeter."""

from machmeter.recommend.candidates import Candidate, at_batch, measured
from machmeter.recommend.judge import Excluded, Verdict, judge
from machmeter.recommend.limits import Limit, parse
from machmeter.recommend.program import snippet
from machmeter.recommend.render import as_json, as_text

__all__ = [
    "Candidate",
    "Excluded",
    "Limit",
    "Verdict",
    "as_json",
    "as_text",
    "at_batch",
    "judge",
    "measured",
    "parse",
    "snippet",
]
