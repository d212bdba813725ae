"""The GPU as its driver and NVML tell it: what is n/a and why, and nothing that is not told is a number.

The answers of NVML here are written by hand in the form that its header describes: none was recorded on a GPU.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from machmeter import backends, errors
from machmeter.machine import gpu, nvml
from machmeter.running import selection
from machmeter.tables import available
from machmeter.workload import models

HOPPER = gpu.Gpu(name="NVIDIA H200", capability=(9, 0), memory_bytes=150 << 30, bus="00000000:01:00.0", cuda="13.0")
TURING = gpu.Gpu(name="Tesla T4", capability=(7, 5), memory_bytes=15 << 30, bus="00000000:00:1E.0", cuda="13.0")
VOLTA = gpu.Gpu(name="Tesla V100", capability=(7, 0), memory_bytes=16 << 30, bus="00000000:00:1E.0", cuda="12.4")


@pytest.mark.parametrize(
    ("found", "precision", "reason"),
    [
        (HOPPER, "fp32", None),
        (HOPPER, "tf32", None),
        (HOPPER, "bf16", None),
        (TURING, "fp16", None),
        (TURING, "int8", None),
        (TURING, "bf16", "Tesla T4 (compute capability 7.5) has no bf16 hardware: it needs 8.0"),
        (TURING, "tf32", "Tesla T4 (compute capability 7.5) has no tf32 hardware: it needs 8.0"),
        (VOLTA, "fp16", "Tesla V100 (compute capability 7.0) is too old: CUDA 13 needs 7.5"),
        ("no NVIDIA driver on this machine", "fp32", "no NVIDIA driver on this machine"),
    ],
)
def test_a_gpu_that_is_missing_or_too_old_is_not_available_with_the_reason(
    found: gpu.Gpu | str, precision: str, reason: str | None
) -> None:
    assert gpu.judge(found, precision) == reason


def test_without_a_driver_every_gpu_backend_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver library is what is missing, so that is said, and not that some package is."""
    monkeypatch.setattr(gpu, "DRIVER", "libnothing.so.1")
    gpu.find.cache_clear()
    try:
        for name in backends.names():
            if name.startswith("cuda."):
                backend = backends.get(name)
                options = {option: choices[0] for option, choices in backend.options.items()}
                reason = backends.unsupported(backend, models.get("ResNet50"), "fp32", **options)
                assert reason == "no NVIDIA driver on this machine (libnothing.so.1 cannot be loaded)"
        lines = [line for line in available.lines() if "cuda." in line]
        assert len(lines) == 4  # one for each backend, and not one for each configuration
        assert [part.title for part in selection.plan([models.get("ResNet50")], [], None, None)][-1].startswith(
            "ResNet50 on torchao"
        )
    finally:
        gpu.find.cache_clear()


def test_a_gpu_that_was_asked_for_and_is_missing_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not hundreds of n/a cells; those of the CPU need no GPU."""
    monkeypatch.setattr(gpu, "find", lambda: "no NVIDIA driver on this machine")
    model = [models.get("ResNet50")]
    for names, device in ([], "cuda"), (["eager", "cuda.tensorrt"], None):
        with pytest.raises(errors.NoDevice, match="there is no GPU to measure on: no NVIDIA driver") as caught:
            selection.check_devices(selection.plan(model, names, None, None, device=device))
        assert caught.value.exit_code == 47
    selection.check_devices(selection.plan(model, [], None, None))
    monkeypatch.setattr(gpu, "find", lambda: HOPPER)
    selection.check_devices(selection.plan(model, [], None, None, device="cuda"))


def test_the_device_decides_which_backends_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a GPU both devices by default; a GPU is measured at more batches; a CPU's table is not drowned."""

    def titles(device: str | None, found: gpu.Gpu | str) -> list[str]:
        monkeypatch.setattr(gpu, "find", lambda: found)
        return [part.title for part in selection.plan([models.get("ViTB16")], [], None, None, device=device)]

    on_cpu = [f"ViTB16 on {name}" for name in ("eager", "inductor", "onnxruntime", "openvino", "torchao")]
    on_gpu = [f"ViTB16 on cuda.{name}" for name in ("eager", "inductor", "onnxruntime", "tensorrt")]
    assert titles(None, "none") == on_cpu
    assert titles(None, HOPPER) == on_cpu + on_gpu
    assert titles("cuda", "none") == on_gpu
    assert titles("cpu", HOPPER) == on_cpu
    parts = selection.plan([models.get("ViTB16")], [], None, None, device="cuda")
    assert {cell.batch for part in parts for cell in part.cells} == {1, 8, 32, 64, 128}
    assert {cell.options.get("mode") for cell in parts[1].cells} == {"default"}  # max-autotune only when asked for
    with pytest.raises(errors.UnknownName, match="unknown device 'tpu': known devices are cpu, cuda"):
        selection.plan([models.get("ViTB16")], [], None, None, device="tpu")


class Recorded:
    """NVML as it would answer: `answers` by function, exceptions are raised."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self, **changes: Any) -> None:
        self.answers: dict[str, Any] = {
            "nvmlDeviceGetHandleByPciBusId": "handle",
            "nvmlSystemGetDriverVersion": b"580.65.06",
            "nvmlDeviceGetClockInfo": lambda handle, kind: {1: 1755, 2: 3201}[kind],
            "nvmlDeviceGetMaxClockInfo": 1980,
            "nvmlDeviceGetPowerUsage": 412_345,
            "nvmlDeviceGetEnforcedPowerLimit": 700_000,
            "nvmlDeviceGetTemperature": 58,
            "nvmlDeviceGetCurrentClocksEventReasons": 0x4 | 0x20,
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=97, memory=40),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=9_000_000_000, total=150 << 30),
            "nvmlDeviceGetComputeRunningProcesses": [
                SimpleNamespace(pid=10, usedGpuMemory=3_000_000_000),
                SimpleNamespace(pid=11, usedGpuMemory=None),
            ],
        } | changes

    def __getattr__(self, name: str) -> Any:
        answer = self.answers[name]
        if answer is None:
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer(*arguments) if callable(answer) else answer

        return call


def test_a_snapshot_has_units_and_names() -> None:
    state = nvml.snapshot(HOPPER.bus, Recorded())
    assert state.missing == {}
    assert (state.sm_clock_mhz, state.sm_clock_max_mhz, state.memory_clock_mhz) == (1755, 1980, 3201)
    assert (state.power_watts, state.power_limit_watts) == (412.345, 700.0)
    assert (state.temperature_celsius, state.driver) == (58, "580.65.06")
    assert state.clock_reasons == ("power cap", "temperature (software)")
    assert nvml.slowed([state]) == ["power cap", "temperature (software)"]
    assert nvml.others(state, own=10) == [nvml.GpuProcess(pid=11)]
    assert (nvml.own_memory(state, own=10), nvml.own_memory(state, own=11)) == (3_000_000_000, None)


def test_what_the_driver_does_not_tell_is_null_with_the_reason_and_never_0() -> None:
    silent = Recorded(nvmlDeviceGetPowerUsage=RuntimeError("Not Supported"), nvmlDeviceGetMaxClockInfo=OSError(""))
    state = nvml.snapshot(HOPPER.bus, silent)
    assert (state.power_watts, state.sm_clock_max_mhz) == (None, None)
    assert state.missing == {"power_watts": "Not Supported", "sm_clock_max_mhz": "OSError"}
    assert state.temperature_celsius == 58
    unknown = nvml.snapshot(HOPPER.bus, Recorded(nvmlDeviceGetHandleByPciBusId=RuntimeError("Not Found")))
    assert set(unknown.missing.values()) == {"NVML does not know this GPU: Not Found"}
    assert nvml.others(unknown) is None
    without = nvml.snapshot(HOPPER.bus, "nvidia-ml-py is not installed")
    assert all(getattr(without, name) is None for name in nvml._QUESTIONS)
    assert set(without.missing.values()) == {"nvidia-ml-py is not installed"}


def test_an_old_driver_is_asked_by_the_old_name() -> None:
    old = Recorded(nvmlDeviceGetCurrentClocksEventReasons=None, nvmlDeviceGetCurrentClocksThrottleReasons=0x40)
    assert nvml.snapshot(HOPPER.bus, old).clock_reasons == ("temperature (hardware)",)


def test_a_gpu_is_busy_only_where_others_compute_on_it_all_the_time() -> None:
    working = nvml.snapshot(HOPPER.bus, Recorded())
    idle = nvml.snapshot(HOPPER.bus, Recorded(nvmlDeviceGetUtilizationRates=SimpleNamespace(gpu=0, memory=0)))
    silent = nvml.snapshot(HOPPER.bus, "no NVML")
    reason = "other programs use the GPU (97 to 97 % of the time; 2 other processes compute on it)"
    assert (nvml.busy([working, working]) or "").startswith(reason)
    assert nvml.busy([working, idle]) is None
    assert nvml.busy([silent]) is None
    assert nvml.busy([]) is None
    assert len(nvml.look(HOPPER.bus, Recorded(nvmlDeviceGetUtilizationRates=SimpleNamespace(gpu=0)))) == 1


def test_the_real_package_has_what_is_asked_of_it() -> None:
    """nvidia-ml-py itself, whose names a fake cannot prove; where it has no driver it says so."""
    import pynvml

    for name in Recorded().answers:
        assert callable(getattr(pynvml, name)), name
    assert callable(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
    for constant in ("NVML_CLOCK_SM", "NVML_CLOCK_MEM", "NVML_TEMPERATURE_GPU"):
        assert getattr(pynvml, constant) == getattr(Recorded, constant)
    for bit in nvml.REASONS:
        assert bit in {value for name, value in vars(pynvml).items() if name.startswith("nvmlClocksEventReason")}
    if isinstance(gpu.find(), str):
        assert "NVML cannot be used" in str(nvml.open_library())
