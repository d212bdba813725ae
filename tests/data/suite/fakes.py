"""Backends that misbehave in one way each, for a real asv run. They stand in for faults, not for runtimes."""

import ctypes
import os
import signal
import threading
import time

import numpy as np

from machmeter.machine.nvml import GpuState
from machmeter.workload import models
from machmeter.workload.artifacts import Recipe
from machmeter.workload.read_back import DeviceFacts, Effective

SMALL = models.Model(
    name="Small", version=1, packages=(), build=lambda pretrained: None, family="convolutional", input_shape=(3, 8, 8)
)


class Session:
    """A session whose behaviour is the function it is given: (number of the call, batch) -> seconds to sleep."""

    channels_last = False

    def __init__(self, behave, batch, compute=None, compiled=lambda calls: 0, threads=1):
        self._threads = threads
        self._behave, self._calls, self._compute, self._compiled = behave, 0, compute or {}, compiled
        self._output = np.zeros((batch, 4), np.float32)

    def __call__(self, batch):
        self._calls += 1
        time.sleep(self._behave(self._calls, batch) or 0.0)
        return self._output

    def effective(self):
        return Effective(compute=self._compute, threads=self._threads)

    def compilations(self):
        return self._compiled(self._calls)


class Fake:
    """A backend around one behaviour."""

    device = "cpu"
    version = 1
    stack = "cpu"
    options = {}
    on_request = ()
    answers = False
    distributions = ()
    may_fork = True

    def __init__(
        self, name, behave, *, precisions=("fp32",), packages=(), compute=None, compiled=lambda calls: 0, threads=1
    ):
        self.name, self.precisions, self.packages = name, precisions, packages
        self._behave, self._compute, self._compiled, self._threads = behave, compute, compiled, threads

    def unsupported(self, model, precision, **options):
        return None

    def prepare(self, model, precision, store, *, batch, **options):
        return store.obtain(Recipe(kind="fake", identity={"name": self.name}), lambda folder: None)

    def load(self, model, artifact, precision, *, batch, threads, **options):
        return Session(self._behave, batch, self._compute, self._compiled, self._threads)


class DeviceSession(Session):
    """A session on a device that works for `seconds` after it is started; `waits` says whether a call waits for it."""

    def __init__(self, seconds, waits, batch):
        super().__init__(lambda calls, batch: 0.0, batch)
        self._seconds, self._waits, self._ends = seconds, waits, 0.0
        self._placed = {}

    def place(self, batch):
        self._placed[len(self._placed)] = batch.copy()
        return len(self._placed) - 1

    def run(self, placed):
        self._placed[placed]  # a host array is no place on the device
        self._ends = time.perf_counter() + self._seconds
        if self._waits:
            time.sleep(self._seconds)

    def __call__(self, batch):
        self.run(self.place(batch))
        return self._output

    def pending(self):
        return time.perf_counter() < self._ends

    def device_seconds(self):
        return self._seconds

    def least_seconds(self, operations, precision, family):
        return operations / 1e12

    def state(self):
        return GpuState(at=time.time(), clock_reasons=("power cap",), missing={"power_watts": "no"})

    def evidence(self):
        return DeviceFacts(gpu="a fake", peak_bytes=123_000_000, peak_bytes_from="the fake", peak_rate=1e12)


def sleep_10_ms(calls, batch):
    return 0.010


def slow_start(calls, batch):
    return 0.300 if calls <= 2 else 0.003


def crash(calls, batch):
    ctypes.string_at(0)


def killed(calls, batch):
    os.kill(os.getpid(), signal.SIGKILL)


def out_of_memory(calls, batch):
    np.ones(1 << 46, np.uint8)  # 64 TiB: no machine gives them


def out_of_memory_at_batch_8(calls, batch):
    if len(batch) == 8:
        np.ones(1 << 46, np.uint8)


def hang(calls, batch):
    return 10_000.0


def allocate_500_mb(calls, batch):
    block = np.ones(500_000_000, np.uint8)
    block[:: 1 << 12] = 2
    del block


def two_busy_threads(calls, batch):
    """Keep two threads computing until 50 ms have passed, and note elapsed and CPU seconds."""
    start, cpu = time.perf_counter(), time.process_time()
    end = start + 0.050

    def compute():
        while time.perf_counter() < end:
            np.sort(np.arange(20_000)[::-1])  # outside the interpreter's lock

    workers = [threading.Thread(target=compute) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    with open(os.environ["MACHMETER_TEST_BUSY"], "a") as notes:
        notes.write(f"{time.perf_counter() - start} {time.process_time() - cpu}\n")


def stepping_clock(calls, batch):
    """Step the wall clock of this process an hour ahead at every call."""
    real = time.time
    time.time = lambda: real() + 3600.0
    return 0.005


def watch_parent(calls, batch):
    """Note the CPU time asv has used so far, and the time of the note."""
    fields = open(f"/proc/{os.getppid()}/stat").read().rsplit(")", 1)[1].split()
    with open(os.environ["MACHMETER_TEST_PARENT"], "a") as notes:
        notes.write(f"{time.perf_counter()} {(int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')}\n")
    return 0.100


def not_implemented(calls, batch):
    raise NotImplementedError("could not run 'aten::thing' with arguments from the CPU backend")


def record_inputs(calls, batch):
    with open(os.environ["MACHMETER_TEST_INPUTS"], "a") as notes:
        notes.write(f"{batch.ctypes.data} {batch.ctypes.data % 64} {float(batch.sum()):.6f} {batch.shape[0]}\n")


def second_instance_is_killed(calls, batch):
    """Die as the kernel kills for lack of memory, in the instance that does not have the parent's first CPU."""
    if calls > 50 and min(os.sched_getaffinity(0)) != min(os.sched_getaffinity(os.getppid())):
        os.kill(os.getpid(), signal.SIGKILL)
    return 0.010


class DeviceFake(Fake):
    """A backend whose sessions are on a device."""

    def __init__(self, name, *, waits, seconds=0.010):
        super().__init__(name, None)
        self._waits, self._seconds = waits, seconds

    def load(self, model, artifact, precision, *, batch, threads, **options):
        return DeviceSession(self._seconds, self._waits, batch)


BACKENDS = FAKES = (
    DeviceFake("ondevice", waits=True),
    DeviceFake("asynchronous", waits=False),
    Fake("sleeper", sleep_10_ms),
    Fake("slowstart", slow_start),
    Fake("recompiles", sleep_10_ms, compiled=lambda calls: calls),
    Fake("crasher", crash),
    Fake("killed", killed),
    Fake("oom", out_of_memory),
    Fake("oom8", out_of_memory_at_batch_8),
    Fake("hanger", hang),
    Fake("stuck", hang),
    Fake("allocator", allocate_500_mb),
    Fake("busy", two_busy_threads),
    Fake("clock", stepping_clock),
    Fake("parent", watch_parent),
    Fake("inputs", record_inputs),
    Fake("liar", sleep_10_ms, precisions=("fp32", "int8", "bf16"), compute={"fp32": 1, "bf16": 52}),
    Fake("absent", sleep_10_ms, packages=("a_package_that_nobody_has",)),
    Fake("breaker", lambda calls, batch: 1 / 0),
    Fake("unimplemented", not_implemented),
    Fake("mortal", second_instance_is_killed),
    Fake("greedy", sleep_10_ms, threads=1_000_000),
)
