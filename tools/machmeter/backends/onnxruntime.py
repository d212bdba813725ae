"""ONNX Runtime on its CPU provider: fp32, static int8 (QDQ) and dynamic int8."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter.backends import _onnx_quantization, _snippet
from machmeter.backends.base import Interval
from machmeter.errors import CellFailed
from machmeter.machine import host
from machmeter.workload import shared_artifacts
from machmeter.workload.artifacts import Artifact, Recipe, Store
from machmeter.workload.manifest import Details
from machmeter.workload.models import Model
from machmeter.workload.read_back import Effective

PROVIDER = "CPUExecutionProvider"

# Operators that multiply, by the type they multiply in. The names are those of ONNX, of its
# com.microsoft domain and of the fused forms that ONNX Runtime's optimizers write.
_FP32_OPERATORS = {
    "Conv",
    "FusedConv",
    "ConvTranspose",
    "MatMul",
    "FusedMatMul",
    "Gemm",
    "FusedGemm",
    "Attention",
}
_INT8_OPERATORS = {
    "QLinearConv", "ConvInteger", "QLinearMatMul", "MatMulInteger", "MatMulIntegerToFloat", "DynamicQuantizeMatMul",
    "QGemm", "QAttention",
}  # fmt: skip


# Makes the session as `session_options` does, with profiling on.
_PROFILE = """
import json, os, pathlib, sys, tempfile
import numpy, onnxruntime
from machmeter.backends.onnxruntime import session_options
path, threads, shape, provider = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4]
options = session_options(threads)
options.enable_profiling = True
with tempfile.TemporaryDirectory() as folder:
    options.profile_file_prefix = folder + "/profile"
    before = len(os.listdir("/proc/self/task"))
    session = onnxruntime.InferenceSession(path, options, providers=[provider])
    started = len(os.listdir("/proc/self/task")) - before
    session.run(None, {session.get_inputs()[0].name: numpy.zeros(shape, numpy.float32)})
    events = json.loads(pathlib.Path(session.end_profiling()).read_text(encoding="utf-8"))
nodes = [e for e in events if e.get("cat") == "Node" and e["name"].endswith("_kernel_time")]
operators = {}
for node in nodes:
    name = node["args"]["op_name"]
    operators[name] = operators.get(name, 0) + 1
print(json.dumps({"operators": operators, "threads": 1 + started}))
"""


def session_options(threads: int) -> Any:
    """Return the settings of every session: all graph optimisations, `threads` threads within an operator."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    return options


class OrtSession:
    """An InferenceSession with one input and one output."""

    channels_last = False

    def __init__(
        self,
        path: Path,
        threads: int,
        example: NDArray[np.float32],
        details: Details,
        provider: str = PROVIDER,
    ) -> None:
        import onnxruntime

        self._path, self._threads, self._example, self._details = path, threads, example, details
        try:
            self._session = onnxruntime.InferenceSession(str(path), session_options(threads), providers=[provider])
        except Exception as error:
            if (at := str(error).find("Unsupported model")) < 0:
                raise
            # An old version cannot read what new tools write. Its message begins with two lines of C++ names.
            raise CellFailed(f"this ONNX Runtime is too old for the model: {str(error)[at:].strip()}") from error
        # Where a provider cannot be had, ONNX Runtime warns and runs on the CPU.
        if (got := self._session.get_providers())[0] != provider:
            raise CellFailed(f"asked for {provider} and got {', '.join(got)}")
        self._input = self._session.get_inputs()[0].name
        self._run = self._session.run

    def __call__(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Run one batch; ONNX Runtime returns when the output is in host memory."""
        output: NDArray[np.float32] = self._run(None, {self._input: batch})[0]
        return output

    def effective(self) -> Effective:
        """Profile one run of the same model and settings in a process of its own, and count what it executed.

        Not in this process: a second session would count as memory of the first, and profiling costs time at
        every operator. `threads` are those the session really started, with the calling one. Raises CellFailed.
        """
        settings = [str(self._path), str(self._threads), json.dumps(self._example.shape), PROVIDER]
        done = subprocess.run([sys.executable, "-c", _PROFILE, *settings], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CellFailed(f"ONNX Runtime could not be profiled: {done.stderr.strip()[-200:]}")
        profile = json.loads(done.stdout.splitlines()[-1])
        executed: Counter[str] = Counter(profile["operators"])
        return Effective(
            compute={
                label: count
                for label, operators in (("fp32", _FP32_OPERATORS), ("int8", _INT8_OPERATORS))
                if (count := sum(executed[name] for name in operators))
            },
            operators=dict(executed.most_common(12)),
            threads=int(profile["threads"]),
            settings={"provider": self._session.get_providers()[0], **self._details},
        )

    def compilations(self) -> int:
        """Return 0: the graph is optimised once, when the session is made."""
        return 0


class OrtParallelSession(OrtSession):
    """Sessions side by side, one for each thread, each running on the thread that calls it."""

    def __init__(self, path: Path, threads: int, example: NDArray[np.float32], details: Details) -> None:
        super().__init__(path, 1, example, details)
        self._sessions = [self, *(OrtSession(path, 1, example, details) for _ in range(threads - 1))]

    def effective(self) -> Effective:
        """Profile one session; the threads are those of all together."""
        one, sessions = super().effective(), len(self._sessions)
        return replace(one, threads=one.threads * sessions, settings={**one.settings, "sessions": sessions})

    def stream(self, batches: Sequence[NDArray[np.float32]], end: int, least: int) -> list[Interval]:
        """Let every session run one batch after the other, each in a thread of its own."""
        each = -(-least // len(self._sessions))

        def work(number: int) -> list[Interval]:
            session, intervals = self._sessions[number], list[Interval]()
            while (begin := time.perf_counter_ns()) < end or len(intervals) < each:
                session(batches[(number + len(intervals)) % len(batches)])
                intervals.append((begin, time.perf_counter_ns()))
            return intervals

        with ThreadPoolExecutor(len(self._sessions)) as pool:
            return [call for calls in pool.map(work, range(len(self._sessions))) for call in calls]


class OnnxRuntime:
    """The model's one ONNX export, as it is or quantized by ONNX Runtime's own tools."""

    name = "onnxruntime"
    device = "cpu"
    version = 1
    stack = "cpu"
    packages = ("onnxruntime",)
    distributions = ("onnxruntime", "onnxruntime-gpu", "onnx")
    may_fork = False
    precisions = ("fp32", "int8", "int8-dynamic")
    options: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - read-only by contract
    on_request: tuple[str, ...] = ()
    answers = True

    def unsupported(self, model: Model, precision: str, **options: str) -> str | None:
        """Return None: every model that exports to ONNX runs."""
        return None

    def prepare(self, model: Model, precision: str, store: Store, *, batch: int, **options: str) -> Artifact:
        """Return the ONNX export for fp32, or a quantized copy of it."""
        exported = shared_artifacts.onnx(model, store)
        if precision == "fp32":
            return exported
        # Without VNNI two int8 products are added in 16 bits and may saturate: 7-bit weights avoid it.
        reduce_range = not host.cpu().has_int8
        operators = _onnx_quantization.static_operators(model) if precision == "int8" else None
        recipe = Recipe(
            kind="onnxruntime",
            identity=shared_artifacts.identity(
                model,
                backend=self.name,
                recipe=self.version,
                precision=precision,
                reduce_range=reduce_range,
                **({"operators": operators} if operators else {}),
            ),
            packages=("onnxruntime", "onnx"),
            parents=(exported,),
        )
        calibration = shared_artifacts.reference(model, store).calibration  # before the clock of the build runs

        def build(folder: Path) -> Details:
            target = folder / "model.onnx"
            if precision == "int8":
                return _onnx_quantization.quantize_static(exported, calibration, target, reduce_range, operators)
            return _onnx_quantization.quantize_dynamic(model, exported, target, reduce_range)

        return store.obtain(recipe, build)

    def load(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> OrtSession:
        """Make a session with `threads` intra-op threads and all graph optimisations."""
        example = np.zeros((batch, *model.input_shape), np.float32)
        return OrtSession(artifact.path("model.onnx"), threads, example, artifact.details)

    def load_parallel(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> OrtParallelSession:
        """Make as many sessions as there are threads."""
        example = np.zeros((batch, *model.input_shape), np.float32)
        return OrtParallelSession(artifact.path("model.onnx"), threads, example, artifact.details)

    def snippet(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> str:
        """Return a program that makes a session as `session_options` says."""
        return _snippet.program(
            model,
            batch=batch,
            imports=["onnxruntime"],
            constants=[f"MODEL = {_snippet.literal(str(artifact.path('model.onnx').resolve()))}"],
            setup=[
                "options = onnxruntime.SessionOptions()",
                f"options.intra_op_num_threads = {threads}",
                "options.inter_op_num_threads = 1",
                "options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL",
                f"session = onnxruntime.InferenceSession(MODEL, options, providers={_snippet.literal([PROVIDER])})",
                "name = session.get_inputs()[0].name",
            ],
            run=["return session.run(None, {name: batch})[0]"],
        )


BACKEND = OnnxRuntime()
