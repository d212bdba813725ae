"""The artifact store: built once, found again, checked by hash, safe for several processes."""

from __future__ import annotations

import errno
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from machmeter import errors
from machmeter.machine import host
from machmeter.workload.artifacts import Artifact, Recipe, Store, default_root
from machmeter.workload.pinned import Listing

RECIPE = Recipe(kind="thing", identity={"model": "M", "recipe": 1}, packages=("numpy",))


def writer(text: str, built: list[str] | None = None) -> Callable[[Path], dict[str, str]]:
    def build(folder: Path) -> dict[str, str]:
        (folder / "sub").mkdir()
        (folder / "sub" / "data.bin").write_text(text)
        (built if built is not None else []).append(text)
        return {"text": text}

    return build


def test_built_once_then_found(tmp_path: Path) -> None:
    built: list[str] = []
    first = Store(tmp_path).obtain(RECIPE, writer("a", built))
    again = Store(tmp_path).obtain(RECIPE, writer("b", built))
    assert built == ["a"]
    assert again == first
    assert first.path("sub/data.bin").read_text() == "a"
    assert (first.size, first.details) == (1, {"text": "a"})


def test_the_cold_time_stays_the_cold_time(tmp_path: Path) -> None:
    """M4: finding an artifact again does not make its preparation faster."""

    def slow(folder: Path) -> None:
        time.sleep(0.2)

    first = Store(tmp_path).obtain(RECIPE, slow)
    again = Store(tmp_path).obtain(RECIPE, slow)
    assert first.prepare_seconds >= 0.2
    assert again.prepare_seconds == first.prepare_seconds


def test_preparation_counts_the_steps_before_but_not_what_is_given(tmp_path: Path) -> None:
    def slow(folder: Path) -> None:
        time.sleep(0.1)

    store = Store(tmp_path)
    given = store.obtain(Recipe(kind="weights", identity={}, given=True), slow)
    export = store.obtain(Recipe(kind="onnx", identity={}, parents=(given,)), slow)
    quantized = store.obtain(Recipe(kind="int8", identity={}, parents=(export,)), slow)
    assert given.prepare_seconds == 0.0
    assert quantized.prepare_seconds > export.prepare_seconds >= 0.1


@pytest.mark.parametrize("damage", ["flip", "shorten", "remove", "manifest"])
def test_damage_is_noticed_and_mended_with_a_message(
    tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path)
    file = store.obtain(RECIPE, writer("good")).path("sub/data.bin")
    if damage == "flip":
        file.write_text("evil")
    elif damage == "shorten":
        file.write_text("go")
    elif damage == "remove":
        file.unlink()
    else:
        (file.parents[1] / "manifest.json").write_text('{"files": ')
    mended = store.obtain(RECIPE, writer("good"))
    assert mended.path("sub/data.bin").read_text() == "good"
    assert "is damaged: building it again" in capsys.readouterr().err


def test_a_build_that_was_killed_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    unfinished = tmp_path / "thing" / f"{RECIPE.key()}.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "half").write_text("x")
    artifact = Store(tmp_path).obtain(RECIPE, writer("a"))
    assert sorted(path.name for path in artifact.folder.iterdir()) == ["manifest.json", "sub"]


def test_a_build_that_fails_leaves_no_artifact(tmp_path: Path) -> None:
    def fails(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        Store(tmp_path).obtain(RECIPE, fails)
    assert not list((tmp_path / "thing").glob("*/"))


def _obtain(root: str, log: str) -> None:
    def build(folder: Path) -> None:
        with Path(log).open("a") as stream:
            stream.write(f"{os.getpid()}\n")
        time.sleep(0.5)
        (folder / "data").write_text("x")

    Store(Path(root)).obtain(RECIPE, build)


def test_processes_that_want_the_same_artifact_build_it_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_obtain, args=(str(tmp_path / "store"), str(log))) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0, 0]
    assert len(log.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    "other",
    [
        Recipe(kind="other", identity=RECIPE.identity, packages=("numpy",)),
        Recipe(kind="thing", identity={"model": "M", "recipe": 2}, packages=("numpy",)),
        Recipe(kind="thing", identity=RECIPE.identity, packages=("numpy", "pytest")),
        Recipe(kind="thing", identity=RECIPE.identity, packages=("numpy",), cpu_dependent=True),
        Recipe(kind="thing", identity=RECIPE.identity, packages=("numpy",), threads=2),
    ],
)
def test_the_key_covers_identity_and_toolchain(other: Recipe) -> None:
    assert other.key() != RECIPE.key()


def test_the_key_of_what_is_made_from_something_covers_its_content(tmp_path: Path) -> None:
    first = Store(tmp_path / "a").obtain(RECIPE, writer("a"))
    second = Store(tmp_path / "b").obtain(RECIPE, writer("b"))
    assert first.key == second.key
    assert first.digest != second.digest
    keys = {Recipe(kind="onnx", identity={}, parents=(parent,)).key() for parent in (first, second)}
    assert len(keys) == 2


def test_a_small_environment_uses_what_a_full_one_made(tmp_path: Path) -> None:
    """Without the exporter its key is unknown: the newest artifact of the same identity serves."""
    made = Store(tmp_path).obtain(RECIPE, writer("a"))
    lacking = Recipe(kind="thing", identity=RECIPE.identity, packages=("numpy", "an-exporter-nobody-has"))
    assert Store(tmp_path).obtain(lacking, writer("b")) == made


def test_a_small_environment_says_what_it_lacks(tmp_path: Path) -> None:
    lacking = Recipe(kind="thing", identity={}, packages=("an-exporter-nobody-has",))
    with pytest.raises(errors.Unsupported, match="needs an-exporter-nobody-has"):
        Store(tmp_path).obtain(lacking, writer("b"))


def test_a_compiled_artifact_of_another_cpu_does_not_serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = Recipe(kind="aot", identity={}, packages=("numpy",), cpu_dependent=True)
    Store(tmp_path).obtain(compiled, writer("a"))
    lacking = Recipe(kind="aot", identity={}, packages=("numpy", "nobody-has-this"), cpu_dependent=True)
    other = host.Cpu(model="other", features=("avx2",), physical_cores=1, logical_cpus=1)
    monkeypatch.setattr(host, "cpu", lambda: other)
    with pytest.raises(errors.Unsupported):
        Store(tmp_path).obtain(lacking, writer("b"))


def test_a_full_disk_is_one_clear_error_and_no_artifact(tmp_path: Path) -> None:
    def full(folder: Path) -> None:
        with open("/dev/full", "w") as stream:  # noqa: PTH123 - the kernel's own full disk
            stream.write("x" * 10_000)

    with pytest.raises(errors.DiskFull, match="no space left"):
        Store(tmp_path).obtain(RECIPE, full)
    assert not list((tmp_path / "thing").glob("*/"))


def test_an_unwritable_store_is_one_clear_error() -> None:
    with pytest.raises(errors.StoreUnwritable, match="set MACHMETER_STORE"):
        Store(Path("/dev/null/store")).obtain(RECIPE, writer("a"))


def test_other_disk_errors_are_told_too() -> None:
    error = errors.from_os_error(OSError(errno.EROFS, os.strerror(errno.EROFS)), Path("/x"), "evidence")
    assert isinstance(error, errors.StoreUnwritable)
    assert "Read-only file system" in str(error)


def test_the_store_lies_in_the_users_cache_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MACHMETER_STORE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_root() == Path("/somewhere/machmeter")
    monkeypatch.setenv("MACHMETER_STORE", "/elsewhere")
    assert default_root() == Path("/elsewhere")


def test_an_artifact_knows_its_store(tmp_path: Path) -> None:
    artifact: Artifact = Store(tmp_path).obtain(RECIPE, writer("a"))
    assert artifact.store().root == tmp_path


# A sweep gives all versions of a library the same bytes.


def listed_store(root: Path, monkeypatch: pytest.MonkeyPatch, *artifacts: Artifact) -> Store:
    """Return the store of a process that was given a list of `artifacts`."""
    path = root / "list.json"
    Listing(path=path).replaced(artifacts).write()
    monkeypatch.setenv("MACHMETER_ARTIFACTS", str(path))
    return Store(root)


def test_a_listed_artifact_serves_whatever_versions_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version would have another key and build another artifact; the listed one has the same digest for all."""
    made = Store(tmp_path).obtain(RECIPE, writer("a"))
    monkeypatch.setattr("machmeter.workload.artifacts.installed_version", lambda name: "0.0.1")
    assert Store(tmp_path).obtain(RECIPE, writer("b")).digest != made.digest
    built: list[str] = []
    found = listed_store(tmp_path, monkeypatch, made).obtain(RECIPE, writer("b", built))
    assert (found.digest, built) == (made.digest, [])
    monkeypatch.setattr("machmeter.workload.artifacts.installed_version", lambda name: None)
    assert Store(tmp_path).obtain(RECIPE, writer("b", built)).key == made.key
    assert built == []


def test_with_a_list_nothing_else_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = listed_store(tmp_path, monkeypatch, Store(tmp_path).obtain(RECIPE, writer("a")))
    with pytest.raises(errors.CellFailed, match="no thing artifact of this cell is listed"):
        store.obtain(Recipe(kind="thing", identity={"model": "N"}, packages=("numpy",)), writer("b"))


def test_with_a_list_every_version_compiles_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = Recipe(kind="aot", identity={}, packages=("numpy",), cpu_dependent=True)
    old = Store(tmp_path).obtain(compiled, writer("old"))
    store = listed_store(tmp_path, monkeypatch, old)
    monkeypatch.setattr("machmeter.workload.artifacts.installed_version", lambda name: "0.0.1")
    assert store.obtain(compiled, writer("new")).digest != old.digest


def test_a_listed_artifact_that_was_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Store(tmp_path).obtain(RECIPE, writer("good"))
    store = listed_store(tmp_path, monkeypatch, made)
    made.path("sub/data.bin").write_text("evil")
    with pytest.raises(errors.CellFailed, match="was changed"):
        store.obtain(RECIPE, writer("good"))


@pytest.mark.parametrize("text", [None, "[]", "{", '{"schema": 2}', '{"schema": 1, "artifacts": [{}]}'])
def test_a_list_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    if text is not None:
        (tmp_path / "list.json").write_text(text)
    monkeypatch.setenv("MACHMETER_ARTIFACTS", str(tmp_path / "list.json"))
    with pytest.raises(errors.BadSetting, match="MACHMETER_ARTIFACTS names"):
        Store(tmp_path)


def test_a_new_artifact_takes_the_place_of_the_one_that_was_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Store(tmp_path).obtain(RECIPE, writer("a"))
    other = Store(tmp_path).obtain(Recipe(kind="thing", identity={"model": "N"}), writer("n"))
    monkeypatch.setattr("machmeter.workload.artifacts.installed_version", lambda name: "0.0.1")
    second = Store(tmp_path).obtain(RECIPE, writer("b"))
    replaced = Listing(path=tmp_path / "list.json").replaced([first, other]).replaced([second])
    assert [entry.key for entry in replaced.entries] == [other.key, second.key]
