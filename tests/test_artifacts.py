"""The artifact store: built once, found again, checked by hash, safe for several processes."""

from __future__ import annotations

import errno
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from machmeter import errors, host
from machmeter.artifacts import Artifact, Recipe, Store, default_root

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
