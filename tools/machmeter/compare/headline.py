"""The verdict of a comparison in a few words, which a terminal and a comment share."""

from __future__ import annotations

from collections import Counter

from machmeter.compare.documents import Comparison
from machmeter.text.numbers import grouped


def result(found: Comparison) -> str:
    """Return the result in words: that there is none is only said where everything was judged."""
    return "no regression found" if found.result == "no regression" and open_ones(found) else found.result


def open_ones(found: Comparison) -> list[str]:
    """Return how much of what was compared nothing is known of: "4 of 5 undecided"."""
    counts = Counter(item.verdict for item in found.findings)
    whole = grouped(len(found.findings))
    return [
        f"{grouped(counts[verdict])} of {whole} {verdict}"
        for verdict in ("undecided", "not judged")
        if counts[verdict] and not found.incomparable
    ]
