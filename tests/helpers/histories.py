"""What the tests of reading a store share."""

from __future__ import annotations

from helpers.asv_files import result

NAN = float("nan")


GOOD = {"m.time_x": result([1.0])}
