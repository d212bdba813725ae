"""Checks of NVIDIA GPUs, by what their driver's own program says."""

from __future__ import annotations

import csv
from collections.abc import Mapping

from machmeter.doctor.finding import Finding, judged, unknown

FIELDS = (
    "index",
    "name",
    "driver_version",
    "persistence_mode",
    "mig.mode.current",
    "temperature.gpu",
    "clocks.max.graphics",
)
QUERY = ("nvidia-smi", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")  # fmt: skip
PROCESSES = ("nvidia-smi", "--query-compute-apps=gpu_uuid,pid,process_name", "--format=csv,noheader")
CHECKS = ("gpu driver", "gpu persistence", "gpu clocks", "gpu processes")


def parse(text: str) -> list[dict[str, str]]:
    """Return the fields of each GPU from the answer to QUERY. A line of another length is left out."""
    lines = csv.reader(text.splitlines(), skipinitialspace=True)
    return [dict(zip(FIELDS, line, strict=True)) for line in lines if len(line) == len(FIELDS)]


def examine(gpus: list[Mapping[str, str]] | None, processes: list[str] | None, reason: str) -> list[Finding]:
    """Check the GPUs. `gpus` is None, with its `reason`, where the driver did not answer; empty without a GPU."""
    if gpus is None:
        return [
            unknown(check, reason, "what the driver does not tell cannot be trusted to be right") for check in CHECKS
        ]
    if not gpus:
        return [Finding(check=check, state="n/a", found="no NVIDIA GPU") for check in CHECKS]
    names = ", ".join(f"{gpu['name']} (driver {gpu['driver_version']})" for gpu in gpus)
    sleeping = [gpu["index"] for gpu in gpus if gpu["persistence_mode"] != "Enabled"]
    fastest = gpus[0]["clocks.max.graphics"]
    found = [
        Finding(check="gpu driver", state="ok", found=names),
        judged(
            "gpu persistence",
            not sleeping,
            f"off on GPU {', '.join(sleeping)}" if sleeping else "on",
            do="sudo nvidia-smi --persistence-mode=1",
            why="otherwise the driver is loaded anew for each process: a slow first call, and clocks are forgotten",
        ),
        unknown(
            "gpu clocks",
            f"the driver does not tell whether they are locked (fastest: {fastest} MHz)",
            "a free clock follows temperature and power, and so do the numbers",
            do="sudo nvidia-smi --lock-gpu-clocks=F,F with an F below the fastest that the card keeps up for hours",
        ),
    ]
    if processes is None:
        return [*found, unknown("gpu processes", "the driver does not say who uses it", "others share its units")]
    return [
        *found,
        judged(
            "gpu processes",
            not processes,
            f"{len(processes)}: {'; '.join(processes[:3])}" if processes else "none",
            do="end them, or wait until they have ended",
            why="they share its units, its memory and its power",
        ),
    ]
