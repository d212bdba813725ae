"""The contract between backends, models and the asv suite, and what works without any framework."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.project import ROOT, make_project
from helpers.without_frameworks import BLOCKER
from machmeter import backends
from machmeter.backends import grid
from machmeter.machine import gpu
from machmeter.running import selection
from machmeter.workload import cells, models


def test_every_backend_has_a_benchmark_module_and_the_reverse() -> None:
    for device in ("cpu", "cuda"):
        modules = {path.stem for path in (ROOT / "benchmarks" / device).glob("*.py")} - {"__init__"}
        assert modules == {item.name for item in map(backends.get, backends.names()) if item.device == device}


@pytest.mark.parametrize("name", backends.names())
def test_backends_keep_the_contract(name: str) -> None:
    backend = backends.get(name)
    assert backends.name_of(backend) == name
    assert isinstance(backend.version, int)
    assert set(backend.precisions) <= {"fp32", "tf32", "bf16", "fp16", "int8", "int8-dynamic"}
    assert all(isinstance(choices, tuple) and choices for choices in backend.options.values())
    for member in ("unsupported", "prepare", "load", "snippet"):
        assert callable(getattr(backend, member))


def test_models_are_named_once_and_have_a_version() -> None:
    names = [model.name.lower() for model in models.MODELS]
    assert len(set(names)) == len(names)
    assert all(model.version >= 1 and re.fullmatch(r"\w+", model.name) for model in models.MODELS)
    assert {"ResNet50", "ViTB16", "EfficientNetLite0", "ResNet18"} <= {model.name for model in models.MODELS}


@pytest.fixture(scope="module")
def discovered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """What asv itself discovers in the repository's suite, where no framework can be imported."""
    target = tmp_path_factory.mktemp("discovery") / "benchmarks.json"
    program = (
        f"{BLOCKER}\nfrom asv_runner.discovery import _discover\nfrom asv_runner._aux import update_sys_path\n"
        f"update_sys_path({str(ROOT / 'benchmarks')!r})\n_discover([{str(ROOT / 'benchmarks')!r}, {str(target)!r}])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    return {item["name"]: item for item in json.loads(target.read_text())}


def test_listing_needs_no_framework(discovered: dict[str, dict[str, object]]) -> None:
    assert "cpu.openvino.ResNet50.time_forward" in discovered
    assert "control.Null.time_forward" in discovered
    assert "cuda.tensorrt.ResNet50.time_forward" in discovered
    assert [name for name in discovered if ".transfer." in name] == ["cuda.transfer.ResNet50.time_forward"]
    assert "control.Machine.time_matrix_product" in discovered
    peak = discovered["control.MachinePeak.track_matrix_product_peak"]
    assert (peak["unit"], peak["params"]) == ("operations/s", [["'fp32'", "'bf16'", "'int8'"]])
    assert discovered["control.MachinePeak.track_memory_bandwidth"]["unit"] == "bytes/s"


def test_every_cell_has_every_metric(discovered: dict[str, dict[str, object]]) -> None:
    wanted = ["time_forward", "peakmem_forward", "track_prepare_time", "track_load_time", "track_first_inference_time"]
    wanted += ["track_artifact_size", "track_top1_agreement", "track_sqnr"]
    own = {"cpu": ["track_throughput_offline"], "cuda": ["track_device_memory"]}
    for backend in map(backends.get, backends.names()):
        if backend.answers:
            for model in models.MODELS:
                for method in [*wanted, *own[backend.device]]:
                    name = f"{backend.device}.{backend.name}.{model.name}.{method}"
                    assert (name in discovered) is model.benchmarked


def test_without_a_driver_asv_starts_one_process_for_a_gpu_benchmark(
    discovered: dict[str, dict[str, object]],
) -> None:
    """It starts one for every combination, even to be told n/a: hundreds of them would take many minutes."""
    if gpu.no_driver() is None:
        pytest.skip("this machine has an NVIDIA driver")
    found = {name: benchmark["params"] for name, benchmark in discovered.items() if name.startswith("cuda.")}
    assert found["cuda.eager.ResNet50.time_forward"] == [["'fp32'"], ["'contiguous'"], ["1"]]
    assert all(len(choices) == 1 for params in found.values() for choices in params)  # type: ignore[attr-defined]


def test_versions_follow_backend_and_model(discovered: dict[str, dict[str, object]]) -> None:
    """Without an explicit version all generated classes share one hash, and a new recipe would go unnoticed."""
    for name, benchmark in discovered.items():
        if name.startswith(("cpu.", "cuda.")):
            device, backend, model, _ = name.split(".")
            assert (
                benchmark["version"]
                == f"{backends.get(cells.runtime(device, backend)).version}.{models.get(model).version}"
            )


def test_the_selection_of_a_cell_hits_it_and_no_other(discovered: dict[str, dict[str, object]]) -> None:
    """`machmeter bench` selects by regular expression, as asv matches it."""
    backend, model = backends.get("onnxruntime"), models.get("ResNet50")
    cell = next(c for c in grid.all_cells(backend, model) if (c.precision, c.batch) == ("int8", 1))
    pattern, with_offline = (
        re.compile(selection.pattern_of(cell, selection.LATENCY)),
        re.compile(selection.pattern_of(cell)),
    )
    params = discovered["cpu.onnxruntime.ResNet50.time_forward"]["params"]
    names = [
        f"cpu.onnxruntime.ResNet50.{method}({precision}, {batch})"
        for method in ("time_forward", "track_sqnr", "track_throughput_offline")
        for precision in params[0]  # type: ignore[index]
        for batch in params[1]  # type: ignore[index]
    ]
    assert [name for name in names if pattern.search(name)] == [
        "cpu.onnxruntime.ResNet50.time_forward('int8', 1)",
        "cpu.onnxruntime.ResNet50.track_sqnr('int8', 1)",
    ]
    assert "cpu.onnxruntime.ResNet50.track_throughput_offline('int8', 1)" in filter(with_offline.search, names)


def test_names_of_cells_can_be_read_back() -> None:
    for backend in map(backends.get, backends.names()):
        for model in models.MODELS:
            for cell in grid.all_cells(backend, model):
                parsed = cells.parse(cell.key())
                assert parsed is not None
                assert parsed.key() == cell.key()
                assert (parsed.precision, parsed.batch) == (cell.precision, cell.batch)
    assert cells.parse("control.Machine") is None
    assert cells.parse("cpu.openvino.ResNet50(int8, many)") is None


def test_the_null_backend_is_measured_as_asv_measures(tmp_path: Path) -> None:
    """Its samples are the harness's own cost per call: `make bench-harness` prints it."""
    program = (
        "from asv_runner.discovery import get_benchmark_from_name\nfrom asv_runner._aux import update_sys_path\n"
        f"root = {str(ROOT / 'benchmarks')!r}\nupdate_sys_path(root)\n"
        "b = get_benchmark_from_name(root, 'control.Null.time_forward-0')\nb.do_setup()\n"
        "samples = b.do_run()['samples']\nprint(len(samples), min(samples))"
    )
    variables = {**os.environ, "MACHMETER_STORE": str(tmp_path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", env=variables)
    assert done.returncode == 0, done.stderr
    count, fastest = done.stdout.split()
    assert int(count) == 1000
    assert float(fastest) > 0.0


def test_pins_are_exact_and_stack_follows_the_variable() -> None:
    """Each commit brings its own pins; `${STACK}` is expanded by pip."""
    assert (ROOT / "requirements/stack.txt").read_text().splitlines()[-1] == "-r ${STACK}.txt"
    for path in (ROOT / "requirements").glob("*.txt"):
        for line in path.read_text().splitlines():
            if line and not line.startswith(("#", "-r ")):
                assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][^\s]*", line), f"{path.name}: {line}"


@pytest.mark.network
def test_asv_installs_the_project_and_the_pins_of_a_small_stack(tmp_path: Path) -> None:
    """A plain `asv run` in a virtualenv of its own: with no framework installed every cell is n/a, with the reason.

    It also proves ASV_COMMIT, ASV_ENV_NAME and ASV_CONF_DIR: the evidence lies beside the results.
    """
    project = make_project(tmp_path / "project", tmp_path / "home", {})
    clone = tmp_path / "clone"
    done = project.command("git", "clone", "--quiet", str(ROOT), str(clone))
    assert done.returncode == 0, done.stderr
    project.folder = clone
    configuration = json.loads((clone / "asv.conf.json").read_text())
    configuration["matrix"] = {"env": {"STACK": ["minimal"]}}
    (clone / "asv.conf.json").write_text(json.dumps(configuration))
    controls, cells = r"^control\.(Null|Machine)\.", r"^cpu\.\w+\.ResNet50\.(time_forward|track_sqnr)\(.*, 1\)"
    done = project.asv("run", "--show-stderr", "-b", controls, "-b", cells)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed" not in done.stdout
    (theirs,) = [path for path in project.results.glob("*/*.json") if path.name != "machine.json"]
    (ours,) = project.evidence.glob("*/*.json")
    assert ours.relative_to(project.evidence) == theirs.relative_to(project.results)
    content = json.loads(ours.read_text())
    (run,) = content["runs"].values()
    assert run["stack_mismatches"] == []
    assert content["commit"] == json.loads(theirs.read_text())["commit_hash"]
    shown = project.machmeter("show", "--json")
    rows = json.loads(shown.stdout)["rows"]
    assert {row["backend"] for row in rows} == {"eager", "inductor", "ipex", "torchao", "onnxruntime", "openvino"}
    assert {row["status"] for row in rows} == {"n/a"}
    assert all("not installed" in row["reason"] for row in rows)
