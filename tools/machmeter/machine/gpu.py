"""The NVIDIA GPU that this process can use: whether there is one, what it is, and why a precision is n/a on it.

CUDA's driver library is asked, not NVML: only it obeys `CUDA_VISIBLE_DEVICES`. It is asked in a child, because a
process that has begun with CUDA cannot fork any more, and what is prepared is prepared in forked children.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass

from machmeter.isolation import in_child

DRIVER = "libcuda.so.1"  # comes with NVIDIA's driver, and with nothing else

# Compute capability from which hardware multiplies in a precision. CUDA 13 begins at 7.5 (Turing).
LEAST = {
    "fp32": (7, 5),
    "tf32": (8, 0),
    "bf16": (8, 0),
    "fp16": (7, 5),
    "int8": (7, 5),
    "int8-dynamic": (7, 5),
}
OLDEST = min(LEAST.values())


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """What the driver says of the first GPU that this process may use."""

    name: str
    capability: tuple[int, int]
    memory_bytes: int
    bus: str  # PCI address, by which NVML finds the same one
    cuda: str  # the newest CUDA that the driver can run, such as "13.0"

    def identity(self) -> dict[str, str]:
        """Return what a compiled artifact depends on."""
        return {"gpu": self.name, "capability": f"{self.capability[0]}.{self.capability[1]}"}


_NOT_INITIALIZED = 3  # the answer of CUDA's driver library before cuInit, in cuda.h


class _Refused(Exception):
    """The driver library answered with an error."""


def no_driver() -> str | None:
    """Return a reason where this machine has no NVIDIA driver, without starting CUDA."""
    try:
        ctypes.CDLL(DRIVER)
    except OSError:
        return f"no NVIDIA driver on this machine ({DRIVER} cannot be loaded)"
    return None


@functools.cache
def find() -> Gpu | str:
    """Return the GPU, or the reason why there is none."""
    return no_driver() or in_child(_ask_driver, fork=not _is_started())


def _is_started() -> bool:
    """Return whether this process uses CUDA already: then a child of its cannot, and asking here starts nothing."""
    answer: int = ctypes.CDLL(DRIVER).cuDeviceGetCount(ctypes.byref(ctypes.c_int()))
    return answer != _NOT_INITIALIZED


def unsupported(precision: str) -> str | None:
    """Return why nothing can run in `precision` on a GPU here, or None where it can be tried."""
    return judge(find(), precision)


def judge(found: Gpu | str, precision: str) -> str | None:
    """Return why `found` cannot multiply in `precision`: there is no GPU, or it is too old."""
    if isinstance(found, str):
        return found
    named = f"{found.name} (compute capability {found.capability[0]}.{found.capability[1]})"
    if found.capability < OLDEST:
        return f"{named} is too old: CUDA 13 needs {OLDEST[0]}.{OLDEST[1]}"
    least = LEAST[precision]
    if found.capability < least:
        return f"{named} has no {precision} hardware: it needs {least[0]}.{least[1]}"
    return None


def _ask_driver() -> Gpu | str:
    """Ask CUDA's driver library. The constants are those of its header, cuda.h."""
    library = ctypes.CDLL(DRIVER)

    def call(name: str, *arguments: object) -> None:
        if code := getattr(library, name)(*arguments):
            text = ctypes.c_char_p()
            library.cuGetErrorString(code, ctypes.byref(text))
            raise _Refused(f"{name}: {(text.value or b'').decode() or 'error'} ({code})")

    number, device = ctypes.c_int(), ctypes.c_int()
    try:
        call("cuInit", 0)
        call("cuDeviceGetCount", ctypes.byref(number))
        if number.value == 0:
            return "the NVIDIA driver shows no GPU to this process"
        call("cuDeviceGet", ctypes.byref(device), 0)
        name, bus = ctypes.create_string_buffer(256), ctypes.create_string_buffer(64)
        call("cuDeviceGetName", name, len(name), device)
        call("cuDeviceGetPCIBusId", bus, len(bus), device)
        memory = ctypes.c_size_t()
        call("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
        major, minor, version = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        call("cuDeviceGetAttribute", ctypes.byref(major), 75, device)  # COMPUTE_CAPABILITY_MAJOR
        call("cuDeviceGetAttribute", ctypes.byref(minor), 76, device)  # COMPUTE_CAPABILITY_MINOR
        call("cuDriverGetVersion", ctypes.byref(version))
    except _Refused as error:
        return f"the NVIDIA driver gives no GPU to this process: {error}"
    return Gpu(
        name=name.value.decode("utf-8", "replace"),
        capability=(major.value, minor.value),
        memory_bytes=memory.value,
        bus=bus.value.decode("ascii", "replace"),
        cuda=f"{version.value // 1000}.{version.value % 1000 // 10}",
    )
