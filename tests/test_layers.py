"""The rules of import that the contracts in pyproject.toml cannot say, read from the code."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import machmeter

PACKAGE = Path(machmeter.__file__).parent
BENCHMARKS = PACKAGE.parents[1] / "benchmarks"


def imports(path: Path, *, everywhere: bool) -> Iterator[str]:
    """Yield the modules that a file imports: when it is imported itself, or `everywhere` in it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: list[ast.AST] = list(ast.walk(tree)) if everywhere else [*tree.body]
    for node in found:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def modules(*rooms: str) -> list[Path]:
    return [path for room in rooms for path in sorted((PACKAGE / room).rglob("*.py"))]


@pytest.mark.parametrize("path", modules("machine", "workload", "backends", "measure"), ids=str)
def test_what_runs_beside_a_measurement_loads_no_framework_by_itself(path: Path) -> None:
    """A framework is imported by the function that needs it: listing benchmarks and reading attributes need none."""
    allowed = {"machmeter", "numpy", "threadpoolctl", *sys.stdlib_module_names}
    assert {name.split(".")[0] for name in imports(path, everywhere=False)} <= allowed


def test_benchmarks_import_nothing_of_the_package_but_its_suite() -> None:
    """asv pairs the newest benchmarks with older packages: what they use stays where it is."""
    found = {name for path in BENCHMARKS.rglob("*.py") for name in imports(path, everywhere=True)}
    assert {name for name in found if name.split(".")[0] == "machmeter"} == {"machmeter.suite"}


@pytest.mark.parametrize("path", modules("history", "changes", "compare", "tables", "recommend", "text"), ids=str)
def test_what_reads_and_judges_asks_no_clock_and_no_environment(path: Path) -> None:
    """The same files give the same answer anywhere and at any time."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    named = {"os.environ", "os.getenv", "time.time", "time.monotonic", "datetime.now", "date.today", "datetime.utcnow"}
    assert used & named == set()
    assert "subprocess" not in set(imports(path, everywhere=True))


@pytest.mark.parametrize("name", ["push", "pull", "verify"])
def test_who_moves_results_loads_nothing_that_measures(name: str) -> None:
    """The shape of the evidence and what settles it are needed; no backend is, and nothing that starts a process."""
    script = f"import sys, machmeter.results_branch.{name}; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    needed = {"", ".evidence_shape", ".record_parts", ".dead_processes"}
    assert f"machmeter.results_branch.{name}" in loaded
    assert [module for module in loaded if module.startswith("machmeter.backends")] == []
    assert {module.removeprefix("machmeter.measure") for module in loaded if "machmeter.measure" in module} <= needed


# Who decodes JSON outside `store/`, and what: none of it is one of asv's files of results, and of the evidence only
# the process that writes it reads it back, and the results branch, which passes on every byte that it does not know.
DECODERS = {
    "asv_names.py": "asv's configuration, and its note of the machines of this home",
    "backends/cuda/_engine.py": "TensorRT's description of an engine",
    "backends/cuda/onnxruntime.py": "ONNX Runtime's profile",
    "backends/onnxruntime.py": "ONNX Runtime's profile",
    "changes/of_history.py": "its own cache of steps",
    "compare/documents.py": "a document of measurements",
    "github/requests.py": "the event of a workflow",
    "measure/dead_processes.py": "the evidence that this machine is writing",
    "measure/instance.py": "orders of the process that started it",
    "measure/instances.py": "answers of the instances",
    "pull_request/command.py": "its own note of a comparison that goes on",
    "results_branch/checks.py": "what is pushed, unchanged",
    "running/releases.py": "the releases of a library that were kept",
    "running/waiting.py": "what a measuring process tells while it runs",
    "site/build.py": "asv's configuration, for the project's name",
    "workload/artifacts.py": "the manifest of an artifact",
    "workload/pinned.py": "the list of artifacts of a sweep",
}


def test_the_store_alone_reads_results_and_evidence() -> None:
    """One reader for each format: whoever decodes JSON elsewhere says in DECODERS what it is."""
    decoders = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "json.loads",
                "json.load",
                "msgspec.json.decode",
            ):
                decoders.add(name)
    outside = {name for name in decoders if not name.startswith("store/")}
    assert outside == set(DECODERS)
    assert any(name.startswith("store/") for name in decoders)
