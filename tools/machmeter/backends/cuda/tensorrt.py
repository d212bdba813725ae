"""TensorRT's own builder and runtime: strongly typed engines from the model's one ONNX export.

What it is told and what it answers is decided in `_engine.py`; here are the calls of its API alone. Written for
TensorRT 10.16 and 11.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from machmeter import atomic
from machmeter.backends import _snippet
from machmeter.backends import _torch as torch_on_cpu
from machmeter.backends.cuda import BATCHES, _device, _engine, _networks, _peak, _session
from machmeter.errors import CellFailed
from machmeter.machine import gpu
from machmeter.workload import shared_artifacts
from machmeter.workload.artifacts import Artifact, Recipe, Store
from machmeter.workload.manifest import Details
from machmeter.workload.models import Model
from machmeter.workload.read_back import Effective

ENGINE = "model.engine"


class TensorRtSession(_session.GpuSession):
    """An execution context on torch's memory and stream, for one batch size."""

    def __init__(
        self,
        path: Path,
        model: Model,
        profiles: Sequence[_engine.Profile],
        *,
        batch: int,
        peak: _peak.Peak,
        details: Details,
    ) -> None:
        super().__init__(batch=batch, peak=peak, details=details)
        import tensorrt

        self._logger = tensorrt.Logger(tensorrt.Logger.ERROR)
        self._runtime = tensorrt.Runtime(self._logger)
        self._engine = self._runtime.deserialize_cuda_engine(path.read_bytes())
        if self._engine is None:
            raise CellFailed(f"TensorRT {tensorrt.__version__} cannot load its engine {path}")
        self._context = self._engine.create_execution_context()
        if self._context is None:
            raise CellFailed("TensorRT cannot make an execution context: out of memory on the GPU, most likely")
        number = _engine.profile_of(batch, profiles)
        stream = self._stream.cuda_stream
        if not self._context.set_optimization_profile_async(number, stream):
            raise CellFailed(f"TensorRT refuses profile {number}")
        self._stream.synchronize()
        self._context.set_input_shape("input", (batch, *model.input_shape))
        classes = tuple(self._context.get_tensor_shape("logits"))[1]
        with _session.memory_told():
            self._output = self._torch.empty((batch, classes), device="cuda")
        self._context.set_tensor_address("logits", self._output.data_ptr())

    def _enqueue(self, placed: Any) -> Any:
        self._context.set_tensor_address("input", placed.data_ptr())
        if not self._context.execute_async_v3(self._stream.cuda_stream):
            raise CellFailed("TensorRT could not run the batch")
        return self._output

    def effective(self) -> Effective:
        """Return what the engine's own inspector says of its layers. Raises CellFailed."""
        import tensorrt

        inspector = self._engine.create_engine_inspector()
        inspector.execution_context = self._context
        text = inspector.get_engine_information(tensorrt.LayerInformationFormat.JSON)
        try:
            layers = _engine.parse_layers(text)
        except ValueError as error:
            raise CellFailed(str(error)) from error
        return self.read_back(
            layers.compute, kernels=layers.kernels, layers=layers.count, tensorrt=tensorrt.__version__
        )


class TensorRt:
    """Engines whose types are the network's own: the export, its float16 form, or explicit quantization."""

    name = "tensorrt"
    device = "cuda"
    version = 1
    stack = "cuda"
    packages = ("tensorrt", "torch")
    distributions = ("tensorrt", "tensorrt-cu12", "tensorrt-cu13", "onnx")
    may_fork = False
    precisions = ("fp32", "fp16", "int8")
    batches = BATCHES
    options: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - read-only by contract
    on_request: tuple[str, ...] = ()
    answers = True

    def unsupported(self, model: Model, precision: str, **options: str) -> str | None:
        """Return None: whatever exports to ONNX is tried."""
        return None

    def prepare(self, model: Model, precision: str, store: Store, *, batch: int, **options: str) -> Artifact:
        """Build one engine for all batches, with a profile for each. Raises CellFailed."""
        network = _networks.network(model, precision, store)
        known, on, version = _engine.profiles(self.batches), _device.identity(), _version()
        recipe = Recipe(
            kind="tensorrt",
            identity=shared_artifacts.identity(
                model,
                backend="cuda.tensorrt",
                recipe=self.version,
                precision=precision,
                **_engine.identity(on, version, known),
            ),
            parents=(network,),
        )
        path = network.path(_networks.FILE)
        cache = store.root / "tensorrt-timing" / _engine.timing_cache_name(on, version)

        def build(folder: Path) -> Details:
            problems = _networks.problems(path) if precision == "int8" else []
            if reason := _engine.refused(_networks.types(path), precision, problems):
                raise CellFailed(reason)
            found = gpu.find()
            assert isinstance(found, gpu.Gpu)
            _device.ready()
            told = _engine.settings(precision, found.memory_bytes)
            return {**network.details, **_build(path, folder / ENGINE, model, known, told, cache)}

        return store.obtain(recipe, build)

    def load(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> TensorRtSession:
        """Load the engine with the profile of `batch`."""
        torch_on_cpu.set_threads(threads)
        return TensorRtSession(
            artifact.path(ENGINE),
            model,
            _engine.profiles(self.batches),
            batch=batch,
            peak=_peak.peak(artifact.store(), precision),
            details=artifact.details,
        )

    def snippet(
        self, model: Model, artifact: Artifact, precision: str, *, batch: int, threads: int, **options: str
    ) -> str:
        """Return a program that loads the engine; GPU, driver and TensorRT must be those that built it."""
        number = _engine.profile_of(batch, _engine.profiles(self.batches))
        shape = ", ".join(map(str, (batch, *model.input_shape)))
        return _snippet.program(
            model,
            batch=batch,
            imports=["tensorrt", "torch"],
            constants=[f"ENGINE = {_snippet.literal(str(artifact.path(ENGINE).resolve()))}"],
            setup=[
                "logger = tensorrt.Logger(tensorrt.Logger.ERROR)",
                "runtime = tensorrt.Runtime(logger)",
                'engine = runtime.deserialize_cuda_engine(open(ENGINE, "rb").read())',
                "context = engine.create_execution_context()",
                "stream = torch.cuda.Stream()",
                f"context.set_optimization_profile_async({number}, stream.cuda_stream)",
                f'context.set_input_shape("input", ({shape}))',
                'answers = torch.empty(tuple(context.get_tensor_shape("logits")), device="cuda")',
                'context.set_tensor_address("logits", answers.data_ptr())',
            ],
            run=[
                'images = torch.from_numpy(batch).to("cuda").contiguous()',
                "stream.wait_stream(torch.cuda.current_stream())",
                'context.set_tensor_address("input", images.data_ptr())',
                "context.execute_async_v3(stream.cuda_stream)",
                "stream.synchronize()",
                "return answers.cpu().numpy()",
            ],
        )


def _version() -> str:
    import tensorrt

    return str(tensorrt.__version__)


def _build(
    network: Path, target: Path, model: Model, known: Sequence[_engine.Profile], told: _engine.Settings, cache: Path
) -> Details:
    """Build the engine of the ONNX file `network` into `target`; return what the manifest should say of it."""
    import tensorrt

    logger = tensorrt.Logger(tensorrt.Logger.ERROR)
    builder = tensorrt.Builder(logger)
    # TensorRT 11 is always strongly typed and ignores the flag; 10 needs it.
    definition = builder.create_network(1 << int(tensorrt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = tensorrt.OnnxParser(definition, logger)
    if not parser.parse_from_file(str(network)):
        errors = "; ".join(parser.get_error(number).desc() for number in range(parser.num_errors))
        raise CellFailed(f"TensorRT cannot parse {model.name}: {errors[:300]}")
    tensors = [definition.get_input(number) for number in range(definition.num_inputs)]
    tensors += [definition.get_output(number) for number in range(definition.num_outputs)]
    names, shapes = [tensor.name for tensor in tensors], [tuple(tensor.shape) for tensor in tensors]
    if problem := _engine.checked_input(names, shapes, model.input_shape):
        raise CellFailed(problem)
    config = builder.create_builder_config()
    config.profiling_verbosity = tensorrt.ProfilingVerbosity.DETAILED  # so that the layers can be read back
    config.builder_optimization_level = told.optimization_level
    config.set_memory_pool_limit(tensorrt.MemoryPoolType.WORKSPACE, told.workspace_bytes)
    (config.set_flag if told.tf32 else config.clear_flag)(tensorrt.BuilderFlag.TF32)
    for profile in known:
        shapes_of_it = [(size, *model.input_shape) for size in (profile.least, profile.best, profile.most)]
        described = builder.create_optimization_profile()
        described.set_shape("input", *shapes_of_it)
        config.add_optimization_profile(described)
    with _timing_cache(config, cache) as warm:
        serialized = builder.build_serialized_network(definition, config)
    if serialized is None:
        raise CellFailed(f"TensorRT {tensorrt.__version__} cannot build an engine for {model.name}")
    target.write_bytes(memoryview(serialized))
    return {
        "tensorrt": str(tensorrt.__version__),
        "profiles": [[profile.least, profile.best, profile.most] for profile in known],
        "tf32_allowed": told.tf32,
        "warm_cache": warm,
    }


@contextlib.contextmanager
def _timing_cache(config: Any, path: Path) -> Iterator[bool]:
    """Let the builder use and extend the timing cache at `path`. Yields whether it had anything in it.

    What was built with a warm cache says so, and its time is not called cold preparation.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = path.read_bytes() if path.is_file() else b""
        times = config.create_timing_cache(before)
        config.set_timing_cache(times, ignore_mismatch=False)
        yield bool(before)
        atomic.replace(path, bytes(memoryview(config.get_timing_cache().serialize())))


BACKEND = TensorRt()
