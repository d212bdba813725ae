"""Which measured configuration to use under given limits, and the program that loads it without machmeter."""

from machmeter.recommend.candidates import Candidate, at_batch, measured
from machmeter.recommend.choose import Excluded, Verdict, judge
from machmeter.recommend.demands import Limit, parse
from machmeter.recommend.described import as_json, as_text
from machmeter.recommend.program import snippet

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
