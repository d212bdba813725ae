"""ONNX Runtime on the GPU: its CUDA provider in fp32 and fp16, and TensorRT as its provider in fp16 and int8."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from machmeter.backends import _snippet
from machmeter.backends import _torch as torch_on_cpu
from machmeter.backends.cuda import BATCHES, _device, _networks, _peak, _session
from machmeter.backends.cuda._onnxruntime_profile import executed
from machmeter.errors import CellFailed
from machmeter.workload.artifacts import Artifact, Store, installed_version
from machmeter.workload.manifest import Details
from machmeter.workload.models import Model
from machmeter.workload.read_back import Effective

PROVIDERS = {"cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider"}

# Makes a session as `load` does, with profiling on, and prints each executed node: operator, provider, types.
_PROFILE = """
import json, pathlib, sys, tempfile
import torch, numpy, onnxruntime
from machmeter.backends.cuda.onnxruntime import session_options
path, threads, shape, providers = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), json.loads(sys.argv[4])
options = session_options(threads)
options.enable_profiling = True
with tempfile.TemporaryDirectory() as folder:
    options.profile_file_prefix = folder + "/profile"
    session = onnxruntime.InferenceSession(path, options, providers=[(name, told) for name, told in providers])
    session.run(None, {session.get_inputs()[0].name: numpy.zeros(shape, numpy.float32)})
    events = json.loads(pathlib.Path(session.end_profiling()).read_text(encoding="utf-8"))
nodes = [event["args"] for event in events if event.get("cat") == "Node" and event["name"].endswith("_kernel_time")]
wanted = ("op_name", "provider", "input_type_shape")
print(json.dumps([{name: node.get(name) for name in wanted} for node in nodes]))
"""


def session_options(threads: int) -> Any:
    """Return the settings of every session. A fallback to another provider is an error, not a warning."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    return options


def providers(provider: str, precision: str, stream: int | None, cache: str) -> list[tuple[str, dict[str, str]]]:
    """Return the providers that a session is made with, best first, and what each is told.

    TF32 is off for fp32. What TensorRT's provider cannot take would go to CUDA, and that is checked afterwards.
    """
    cuda = {"device_id": "0", "use_tf32": "0", **({"user_compute_stream": str(stream)} if stream else {})}
    if provider == "cuda":
        return [(PROVIDERS["cuda"], cuda)]
    engine = {
        "device_id": "0",
        "trt_fp16_enable": "1",
        "trt_int8_enable": "1" if precision == "int8" else "0",
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": cache,
        "trt_timing_cache_enable": "1",
        "trt_timing_cache_path": cache,
        **({"user_compute_stream": str(stream)} if stream else {}),
    }
    return [(PROVIDERS["tensorrt"], engine), (PROVIDERS["cuda"], cuda)]


def fell_back(wanted: str, got: Iterable[str]) -> str | None:
    """Return why a session with the providers `got` is not what was asked for: ONNX Runtime warns and goes on."""
    known = list(got)
    if known and known[0] == wanted:
        return None
    return f"asked for {wanted} and got {', '.join(known) or 'none'}: a number of it would not be the GPU's"


class CudaOrtSession(_session.GpuSession):
    """An InferenceSession whose input and output are bound to torch's memory, on torch's stream."""

    def __init__(
        self,
        path: Path,
        model: Model,
        precision: str,
        provider: str,
        *,
        batch: int,
        threads: int,
        cache: str,
        peak: _peak.Peak,
        details: Details,
    ) -> None:
        super().__init__(batch=batch, peak=peak, details=details)
        import onnxruntime

        self._path, self._shape, self._threads = path, (batch, *model.input_shape), threads
        self._told = [(provider, precision, cache)]
        asked = providers(provider, precision, self._stream.cuda_stream, cache)
        with _session.memory_told():
            self._session = open_session(path, session_options(threads), asked)
        self._runtime = onnxruntime
        self._input, self._output_name = self._session.get_inputs()[0].name, self._session.get_outputs()[0].name
        self._bindings: dict[int, Any] = {}
        self._output: Any = None

    def _enqueue(self, placed: Any) -> Any:
        binding = self._bindings.get(placed.data_ptr())
        if binding is None:
            binding = self._bound(placed)
        self._session.run_with_iobinding(binding)
        return self._output

    def _bound(self, placed: Any) -> Any:
        """Return a binding of `placed` and of the one output. Those of buffers that are gone go with them."""
        import numpy as np

        if self._output is None:
            classes = self._session.get_outputs()[0].shape[-1]
            self._output = self._torch.empty((self._shape[0], classes), device="cuda")
        if len(self._bindings) >= 64:
            self._bindings.clear()
        binding = self._session.io_binding()
        for bind, name, tensor in (
            (binding.bind_input, self._input, placed),
            (binding.bind_output, self._output_name, self._output),
        ):
            bind(
                name=name,
                device_type="cuda",
                device_id=0,
                element_type=np.float32,
                shape=tuple(tensor.shape),
                buffer_ptr=tensor.data_ptr(),
            )
        self._bindings[placed.data_ptr()] = binding
        return binding

    def effective(self) -> Effective:
        """Profile one run of the same network in a process of its own, and count what ran where and in which type.

        Raises CellFailed.
        """
        ((provider, precision, cache),) = self._told
        asked = providers(provider, precision, None, cache)
        settings = [str(self._path), str(self._threads), json.dumps(self._shape), json.dumps(asked)]
        done = subprocess.run([sys.executable, "-c", _PROFILE, *settings], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CellFailed(f"ONNX Runtime could not be profiled: {done.stderr.strip()[-200:]}")
        ran = executed(json.loads(done.stdout.splitlines()[-1]), _networks.types(self._path))
        return self.read_back(
            ran.compute,
            operators=ran.operators,
            proved_by=ran.proved_by,
            providers=self._session.get_providers(),
            onnxruntime=self._runtime.__version__,
        )


def open_session(path: Path, options: Any, asked: list[tuple[str, dict[str, str]]]) -> Any:
    """Return a session on the providers `asked`. Raises CellFailed where the first of them is not used.

    `onnxruntime-gpu` on a machine without CUDA's libraries makes a session on the CPU, with a line in its log.
    """
    import onnxruntime

    wanted = asked[0][0]
    available = onnxruntime.get_available_providers()
    if wanted not in available:
        raise CellFailed(fell_back(wanted, available) or "")
    if hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()  # those that came with torch
    session = onnxruntime.InferenceSession(str(path), options, providers=asked)
    session.disable_fallback()
    if problem := fell_back(wanted, session.get_providers()):
        raise CellFailed(problem)
    return session


class CudaOnnxRuntime:
    """The export, its float16 form or explicit quantization, on the provider that the option `provider` names."""

    name = "onnxruntime"
    device = "cuda"
    version = 1
    stack = "cuda"
    packages = ("onnxruntime", "torch")
    distributions = ("onnxruntime", "onnxruntime-gpu", "onnx")
    may_fork = False
    precisions = ("fp32", "fp16", "int8")
    batches = BATCHES
    options = {"provider": tuple(PROVIDERS)}  # noqa: RUF012 - read-only by contract
    on_request: tuple[str, ...] = ()
    answers = True

    def unsupported(self, model: Model, precision: str, **options: str) -> str | None:
        """Return a reason where the installed ONNX Runtime has no such provider, or the provider no such precision."""
        if installed_version("onnxruntime-gpu") is None:
            return "not installed: onnxruntime-gpu (this onnxruntime is for CPUs)"
        if options["provider"] == "cuda":
            return "ONNX Runtime's CUDA provider has no int8 convolutions" if precision == "int8" else None
        if precision == "fp32":
            return "TensorRT in fp32 is measured by cuda.tensorrt"
        if not tensorrt_libraries():
            return "not installed: TensorRT 10 (libnvinfer.so.10), which ONNX Runtime's provider loads"
        return None

    def prepare(self, model: Model, precision: str, store: Store, *, batch: int, **options: str) -> Artifact:
        """Return the network whose own types say the precision."""
        return _networks.network(model, precision, store)

    def load(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> CudaOrtSession:
        """Make a session; TensorRT's provider builds its engine now, or finds it in its cache."""
        torch_on_cpu.set_threads(threads)
        return CudaOrtSession(
            artifact.path(_networks.FILE),
            model,
            precision,
            options["provider"],
            batch=batch,
            threads=threads,
            cache=self._cache(artifact, options["provider"], batch),
            peak=_peak.peak(artifact.store(), precision),
            details={**artifact.details, "provider_option": options["provider"]},
        )

    def _cache(self, artifact: Artifact, provider: str, batch: int) -> str:
        """Return the folder of the provider's engines: of this network, batch, GPU, driver and runtime alone."""
        if provider == "cuda":
            return ""
        on = "-".join([*_device.identity().values(), installed_version("onnxruntime-gpu") or ""])
        name = "".join(character if character.isalnum() else "_" for character in on)
        folder = artifact.store().root / "onnxruntime-tensorrt" / f"{artifact.key}-{batch}-{name}"
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    def snippet(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> str:
        """Return a program that makes a session on the same providers."""
        asked = providers(options["provider"], precision, None, ".")
        return _snippet.program(
            model,
            batch=batch,
            imports=["onnxruntime"],
            constants=[f"MODEL = {_snippet.literal(str(artifact.path(_networks.FILE).resolve()))}"],
            setup=[
                f"providers = {_snippet.literal([list(item) for item in asked])}",
                "onnxruntime.preload_dlls()",
                "session = onnxruntime.InferenceSession(MODEL, providers=[tuple(item) for item in providers])",
                "assert session.get_providers()[0] == providers[0][0], session.get_providers()",
                "name = session.get_inputs()[0].name",
            ],
            run=["return session.run(None, {name: batch})[0]"],
        )


def tensorrt_libraries() -> bool:
    """Return whether the libraries of TensorRT 10 are installed, as a wheel or in the system."""
    import ctypes.util
    import importlib.util

    return importlib.util.find_spec("tensorrt_libs") is not None or bool(ctypes.util.find_library("nvinfer"))


BACKEND = CudaOnnxRuntime()
