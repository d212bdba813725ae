"""Which copy counts where a store has several of the same: the one rule for results, and the one for runs.

The results branch has a file for each state of a growing file of asv's, and what was pulled lies beside the file that
it came from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from machmeter.measure.evidence_shape import Run
from machmeter.store.columns import SKIPPED


def claim(state: int, started: float) -> tuple[bool, float]:
    """Return what is compared between results of one cell, commit and environment; of equal ones the later in order.

    The newest counts, but what it only skipped does not hide what an older one measured.
    """
    return state != SKIPPED, started


def newest(again: NDArray[np.bool_], state: NDArray[np.uint8], started: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return for each result which one counts in its place, by their `claim`; None where each counts.

    Results of the same stand one after the other; `again` says which of them (but the first) is of the same as the
    one before it.
    """
    if not again.any():
        return None
    counts = np.arange(len(state))
    several = np.flatnonzero(np.append(again, False) | np.concatenate([[False], again]))
    group = np.cumsum(np.concatenate([[True], ~again]))[several]
    order = np.lexsort((several, started[several], state[several] != SKIPPED, group))  # each group's best comes last
    ordered, group_in_order = several[order], group[order]
    best = np.append(group_in_order[1:] != group_in_order[:-1], True)
    counts[ordered] = ordered[best][np.searchsorted(group_in_order[best], group_in_order)]
    return counts


def progress(run: Run) -> tuple[int, int]:
    """Return what is compared between two states of one run: how many records it has, and how many of them ended."""
    records = [record for processes in run.cells.values() for record in processes.values()]
    return len(records), sum(record.status != "running" for record in records)
