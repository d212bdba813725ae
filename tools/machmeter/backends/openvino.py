"""OpenVINO on the CPU: fp32 and bf16 as told, int8 by NNCF post-training quantization."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from machmeter.backends import _snippet
from machmeter.backends.base import Interval
from machmeter.workload import shared_artifacts
from machmeter.workload.artifacts import Artifact, Recipe, Store
from machmeter.workload.manifest import Details
from machmeter.workload.models import Model
from machmeter.workload.precision import DEFAULT
from machmeter.workload.read_back import Effective

IR = "model.xml"

_COMPUTE_LAYERS = {
    "Convolution", "Deconvolution", "GroupConvolution", "FullyConnected", "MatMul", "ScaledDotProductAttention",
    "ScaledDotProductAttentionWithKVCache", "RNNSeq",
}  # fmt: skip
_TYPES = {"f32": "fp32", "bf16": "bf16", "f16": "fp16", "i8": "int8", "u8": "int8"}


class OpenVinoSession:
    """A compiled model with a fixed batch and one inference request."""

    channels_last = False

    def __init__(self, compiled: Any, details: Details) -> None:
        self._compiled = compiled
        self._details = details
        self._request = compiled.create_infer_request()

    def __call__(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Infer synchronously. Input and output share memory with the runtime: nothing is copied."""
        output: NDArray[np.float32] = self._request.infer(batch, share_inputs=True, share_outputs=True)[0]
        return output

    def effective(self) -> Effective:
        """Read the executed graph back from the runtime, and the settings it really uses."""
        compute: Counter[str] = Counter()
        kernels: Counter[str] = Counter()
        for node in self._compiled.get_runtime_model().get_ops():
            info = node.get_rt_info()
            layer = info["layerType"].astype(str)
            if layer in _COMPUTE_LAYERS:
                kind = info["runtimePrecision"].astype(str)
                compute[_TYPES.get(kind, kind)] += 1
                kernels[f"{layer} {info['primitiveType'].astype(str)}"] += 1
        properties = {
            name: str(self._compiled.get_property(name))
            for name in ("INFERENCE_PRECISION_HINT", "PERFORMANCE_HINT", "NUM_STREAMS")
        }
        return Effective(
            compute=dict(compute),
            kernels=dict(kernels.most_common(8)),
            threads=int(self._compiled.get_property("INFERENCE_NUM_THREADS")),
            settings={"properties": properties, **self._details},
        )

    def compilations(self) -> int:
        """Return 0: the model is compiled once, when it is loaded."""
        return 0


class OpenVinoParallelSession(OpenVinoSession):
    """A compiled model with as many requests as the runtime calls optimal."""

    def __init__(self, compiled: Any, details: Details) -> None:
        import openvino

        super().__init__(compiled, details)
        self._queue = openvino.AsyncInferQueue(compiled)

    def effective(self) -> Effective:
        """Add the number of requests in flight."""
        found = super().effective()
        return replace(found, settings={**found.settings, "requests": len(self._queue)})

    def stream(self, batches: Sequence[NDArray[np.float32]], end: int, least: int) -> list[Interval]:
        """Keep every request busy."""
        intervals: list[Interval] = []
        self._queue.set_callback(lambda request, begin: intervals.append((begin, time.perf_counter_ns())))
        number = 0
        while time.perf_counter_ns() < end or number < least:
            self._queue.get_idle_request_id()  # waits for one, so that the begin is that of the work
            begin = time.perf_counter_ns()
            self._queue.start_async(batches[number % len(batches)], begin, share_inputs=True)
            number += 1
        self._queue.wait_all()
        return intervals


class OpenVino:
    """The model's one ONNX export as OpenVINO IR, in the precision the runtime is told to use."""

    name = "openvino"
    device = "cpu"
    version = 1
    stack = "cpu"
    packages = ("openvino",)
    distributions = ("openvino", "nncf", "onnx")
    may_fork = False
    precisions = ("fp32", "bf16", "int8")
    chooses_precision = True
    options: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - read-only by contract
    on_request: tuple[str, ...] = ()
    answers = True

    def unsupported(self, model: Model, precision: str, **options: str) -> str | None:
        """Return None: every model that exports to ONNX runs."""
        return None

    def prepare(self, model: Model, precision: str, store: Store, *, batch: int, **options: str) -> Artifact:
        """Return the IR in float32, or quantized by NNCF."""
        exported = shared_artifacts.onnx(model, store)
        plain = store.obtain(
            Recipe(
                kind="openvino",
                identity=shared_artifacts.identity(model, backend=self.name, recipe=self.version, precision="fp32"),
                packages=("openvino",),
                parents=(exported,),
            ),
            lambda folder: _convert(exported, folder),
        )
        if precision != "int8":
            return plain
        settings = quantization_settings(model)
        calibration = shared_artifacts.reference(model, store).calibration  # before the clock of the quantization runs
        return store.obtain(
            Recipe(
                kind="openvino",
                identity=shared_artifacts.identity(
                    model, backend=self.name, recipe=self.version, precision=precision, settings=settings
                ),
                packages=("openvino", "nncf"),
                parents=(plain,),
            ),
            lambda folder: _quantize(plain, calibration, settings, folder),
        )

    def load(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> OpenVinoSession:
        """Compile for latency with a fixed batch."""
        compiled = _compiled(model, artifact, precision, batch, threads, "LATENCY")
        return OpenVinoSession(compiled, artifact.details)

    def load_parallel(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> OpenVinoParallelSession:
        """Compile for throughput: the runtime splits its threads into streams and says how many requests it likes."""
        compiled = _compiled(model, artifact, precision, batch, threads, "THROUGHPUT")
        return OpenVinoParallelSession(compiled, artifact.details)

    def snippet(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> str:
        """Return a program that compiles the IR of `artifact` with the same settings."""
        return _snippet.program(
            model,
            batch=batch,
            imports=["openvino"],
            constants=[f"MODEL = {_snippet.literal(str(artifact.path(IR).resolve()))}"],
            setup=[
                "core = openvino.Core()",
                "network = core.read_model(MODEL)",
                f"network.reshape({[batch, *model.input_shape]})",
                f"settings = {_snippet.literal(runtime_settings(precision, threads))}",
                'compiled = core.compile_model(network, "CPU", settings)',
                "request = compiled.create_infer_request()",
            ],
            run=[
                "# The result lies in the runtime's own memory: the next call overwrites it.",
                "return request.infer(batch, share_inputs=True, share_outputs=True)[0]",
            ],
        )


def _compiled(model: Model, artifact: Artifact, precision: str, batch: int, threads: int, hint: str) -> Any:
    """Compile the IR for batches of `batch`."""
    import openvino

    core = openvino.Core()
    network = core.read_model(artifact.path(IR))
    network.reshape([batch, *model.input_shape])
    return core.compile_model(network, "CPU", runtime_settings(precision, threads, hint))


def runtime_settings(precision: str, threads: int, hint: str = "LATENCY") -> dict[str, str | int]:
    """Return what the CPU plugin is told.

    The precision is told: left alone, the plugin computes "fp32" in bf16 where the CPU can. For int8 it is left
    alone, so that what is not quantized runs as a user of the IR would see it, and for "default" too.
    """
    settings: dict[str, str | int] = {"PERFORMANCE_HINT": hint, "INFERENCE_NUM_THREADS": threads}
    if precision not in ("int8", DEFAULT):
        settings["INFERENCE_PRECISION_HINT"] = {"fp32": "f32", "bf16": "bf16"}[precision]
    return settings


def quantization_settings(model: Model) -> dict[str, str]:
    """Return NNCF's settings for `model`. A transformer quantized without its preset loses its accuracy."""
    if model.family == "transformer":
        return {"preset": "mixed", "model_type": "transformer"}
    return {"preset": "performance", "model_type": "none"}


def _convert(exported: Artifact, folder: Path) -> None:
    import openvino

    network = openvino.convert_model(exported.path("model.onnx"))
    openvino.save_model(network, folder / IR, compress_to_fp16=False)


def _quantize(plain: Artifact, calibration: Path, settings: dict[str, str], folder: Path) -> Details:
    import nncf
    import openvino

    network = openvino.Core().read_model(plain.path(IR))
    images = np.load(calibration)
    quantized = nncf.quantize(
        network,
        nncf.Dataset([images[i : i + 1] for i in range(len(images))]),
        preset=nncf.QuantizationPreset(settings["preset"]),
        model_type=None if settings["model_type"] == "none" else nncf.ModelType(settings["model_type"]),
        subset_size=len(images),
    )
    openvino.save_model(quantized, folder / IR, compress_to_fp16=False)
    inserted = sum(node.get_type_name() == "FakeQuantize" for node in quantized.get_ops())
    return {"quantization": "NNCF post-training", **settings, "fake_quantize_nodes": inserted}


BACKEND = OpenVino()
