"""Images per second from the begin and end of every call of every instance. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from machmeter.backends.base import Interval
from machmeter.errors import CellFailed

MOST_SLICES = 20


def common_window(instances: Sequence[Sequence[Interval]]) -> Interval:
    """Return the time in which every instance was fully at work. Raises CellFailed where there is none.

    It ends when the first of them begins its last call: from then on an instance with several requests in
    flight has fewer.
    """
    begin = max(min(start for start, _ in calls) for calls in instances)
    end = min(max(start for start, _ in calls) for calls in instances)
    if begin >= end:
        raise CellFailed("the instances never ran at the same time, so their throughputs do not add up")
    return begin, end


def rates(instances: Sequence[Sequence[Interval]], batch: int) -> list[float]:
    """Return images per second, summed over the instances, in equal slices of their common window.

    A call counts in each slice by the share of its time that lies there: without that, a slice of three
    calls would jump by a third with the position of its edge. There are as many slices as the instance with
    the fewest calls has whole ones, 20 at most, so that each holds about one call of every instance or more.
    """
    begin, end = common_window(instances)
    whole = min(sum(begin <= start and stop <= end for start, stop in calls) for calls in instances)
    count = max(1, min(MOST_SLICES, whole))
    images = [0.0] * count
    width = (end - begin) / count
    for start, stop in (call for calls in instances for call in calls):
        first = max(0, int((start - begin) // width))
        last = min(count - 1, int((stop - begin) // width))
        for number in range(first, last + 1):
            edge = begin + number * width
            overlap = min(stop, edge + width) - max(start, edge)
            if overlap > 0:
                images[number] += batch * overlap / (stop - start)
    return [count_of / (width / 1e9) for count_of in images]
