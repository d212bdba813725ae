"""A cell: one (device, backend, model, precision, further options, batch), and how it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The coordinates of one measurement."""

    device: str
    backend: str
    model: str
    precision: str
    batch: int
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def series(self) -> str:
        """Return asv's name of the class that measures it, such as `cpu.openvino.ResNet50`."""
        return f"{self.device}.{self.backend}.{self.model}"

    @property
    def runtime(self) -> str:
        """Return the name of its backend among those of all devices: `openvino`, `cuda.tensorrt`."""
        return runtime(self.device, self.backend)

    def key(self) -> str:
        """Return its name, such as `cpu.eager.ResNet50(bf16, channels_last, 8)`."""
        return f"{self.series}({', '.join([self.precision, *self.options.values(), str(self.batch)])})"


def runtime(device: str, backend: str) -> str:
    """Return the name of `backend` among those of all devices. Those of the CPU have no prefix."""
    return f"{device}.{backend}" if device == "cuda" else backend


def device(runtime: str) -> str:
    """Return the device of a backend that is called as `runtime` does."""
    return runtime.partition(".")[0] if "." in runtime else "cpu"


_KEY = re.compile(r"^(?P<device>\w+)\.(?P<backend>\w+)\.(?P<model>\w+)\((?P<values>[^()]*)\)$")


def parse(key: str) -> Cell | None:
    """Return the cell called `key`, or None where it is not the name of a cell.

    A name carries the values of options and not the options' names; they are numbered here.
    """
    found = _KEY.match(key)
    values = [value.strip() for value in found["values"].split(",")] if found else []
    if not found or len(values) < 2 or not values[-1].isdigit():
        return None
    precision, *options, batch = values
    return Cell(
        device=found["device"],
        backend=found["backend"],
        model=found["model"],
        precision=precision,
        batch=int(batch),
        options={f"option{number}": value for number, value in enumerate(options, 1)},
    )
