"""`machmeter compare`: exit codes, what is printed, and documents that nobody can be trusted to have written well."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import jsonschema
import msgspec
import pytest
from rich.console import Console

from helpers.measurements import BASE, CELL, SAME, failed, measured, row, timed
from helpers.stores import commit, foreign
from helpers.verdicts import everywhere
from machmeter.cli import main
from machmeter.compare import documents, judge, terminal
from machmeter.compare.documents import Comparison, Measurements
from machmeter.errors import MeasurementsUnreadable
from machmeter.text import inert


def machmeter(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in this process."""
    told = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["machmeter", "compare", *arguments]),
        mock.patch.dict(os.environ, {"COLUMNS": "100"}),
        contextlib.redirect_stdout(told[0]),
        contextlib.redirect_stderr(told[1]),
        pytest.raises(SystemExit) as ending,
    ):
        main()
    return subprocess.CompletedProcess(arguments, int(ending.value.code or 0), told[0].getvalue(), told[1].getvalue())


def written(folder: Path, measurements: Measurements) -> str:
    path = folder / "measurements.json"
    path.write_bytes(msgspec.json.encode(measurements))
    return str(path)


@pytest.mark.parametrize(
    ("factor", "more", "code", "result"),
    [
        (1.0, {}, 0, "no regression"),
        (0.9, {}, 0, "no regression"),
        (1.1, {}, 1, "regression"),
        (0.5, {"metric": "track_throughput", "unit": "images/s"}, 1, "regression"),
        (2.0, {"metric": "track_throughput", "unit": "images/s"}, 0, "no regression"),
    ],
)
def test_exit_codes_follow_the_direction(
    tmp_path: Path, factor: float, more: dict[str, str], code: int, result: str
) -> None:
    """J1: through the command's exit code, and in its last line."""
    done = machmeter("--measurements", written(tmp_path, timed(factor, **more)))
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.splitlines()[-1].startswith(f"{result}: 1 compared")


def test_a_failure_is_exit_code_1(tmp_path: Path) -> None:
    """What worked in base and fails in head is a regression, and comes first."""
    both = measured(
        [row(BASE), row(BASE, cell="a")], [failed(), row([1.2 * value for value in SAME], cell="a", side="head")]
    )
    done = machmeter("--measurements", written(tmp_path, both))
    assert done.returncode == 1
    lines = [line for line in done.stdout.splitlines() if line]
    assert lines[3:6] == ["failed in head, worked in base: 1", f"  {CELL} latency: killed (signal 9)", "regression: 1"]
    assert lines[-1] == "regression: 1 compared (1 regression), 1 failed"


def test_what_cannot_be_judged_is_exit_code_2(tmp_path: Path) -> None:
    """No common cell, another machine: with the reason."""
    nothing = machmeter("--measurements", written(tmp_path, measured([row(BASE)], [row(SAME, cell="other")])))
    assert nothing.returncode == 2
    assert "note: there is nothing to compare" in nothing.stdout
    other = measured(
        [row(BASE)], [row(SAME, side="head")], of_base={"host": {"CPU": "a"}}, of_head={"host": {"CPU": "b"}}
    )
    done = machmeter("--measurements", written(tmp_path, other))
    assert done.returncode == 2
    assert "not comparable: CPU differs: a and b" in done.stdout


def test_json_is_strict_and_has_a_schema(tmp_path: Path) -> None:
    """`--json` is what `--schema` describes, and nothing else is printed."""
    described = json.loads(machmeter("--schema").stdout)
    jsonschema.Draft202012Validator.check_schema(described)
    done = machmeter("--json", "--measurements", written(tmp_path, timed(1.1)))
    assert done.returncode == 1
    told = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    jsonschema.validate(told, described)
    assert (told["result"], told["findings"][0]["verdict"]) == ("regression", "regression")


def test_commits_of_any_asv_project_are_compared(tmp_path: Path) -> None:
    """From its results folder, with the machine named."""
    foreign(tmp_path / "results")
    done = machmeter(commit(1), commit(2), "--results", str(tmp_path / "results"), "--machine", "box")
    assert done.returncode == 2
    assert "not judged: time_sum of 3 cells: samples of one process: at least 6 rounds are needed" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 21, "two sides are needed: machmeter compare BASE HEAD"),
        (["a"], 21, "two sides are needed"),
        (["a", "b", "--measurements", "x"], 21, "has both sides already"),
        (["a", "b", "--results", "/nonexistent", "--machine", "m"], 21, "there are no results of the machine m"),
        (["--measurements", "/nonexistent"], 22, "cannot read /nonexistent"),
        (["--measurements", "/"], 22, "cannot read /measurements.json: No such file"),
        (["--measurements", "/dev/null"], 22, "/dev/null is not a file"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], code: int, words: str) -> None:
    """With its own exit code, and never a traceback."""
    done = machmeter(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


# ------------------------------------------------------------------ documents


def whole() -> dict[str, object]:
    told: dict[str, object] = json.loads(msgspec.json.encode(timed()))
    return told


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"{", "holds no measurements"),
        (b"[" * 100_000, "holds no measurements"),
        (b"\xff\xfe", "holds no measurements"),
        (b'{"machine": NaN}', "holds no measurements"),
        (json.dumps({**whole(), "schema": 2}).encode(), "schema"),
        (json.dumps({**whole(), "more": 1}).encode(), "unknown field"),
        (json.dumps({**whole(), "notes": ["x"] * 101}).encode(), "length <= 100"),
        (json.dumps(whole()).replace("0.01,", "1e999,", 1).encode(), "holds no measurements"),
        (json.dumps(whole()).replace('"lower"', '"best"', 1).encode(), "'best'"),
        (b" " * 50_000_001, "has more than 50 MB"),
    ],
    ids=["empty", "blank", "cut", "deep", "no text", "NaN", "version", "field", "length", "finite", "word", "large"],
)
def test_hostile_documents_are_one_line(content: bytes, words: str) -> None:
    """Empty, cut, deep, no text, not finite, another version, other fields, too much: never a traceback."""
    with pytest.raises(MeasurementsUnreadable) as told:
        documents.parse(content, "measurements.json")
    assert words in str(told.value)
    assert len(str(told.value)) < 400


def test_a_folder_is_what_it_holds(tmp_path: Path) -> None:
    """`machmeter pr` writes a folder, and `machmeter github comment` takes one."""
    written(tmp_path, timed())
    assert machmeter("--measurements", str(tmp_path)).returncode == 0


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nobody will ever write into it."""
    os.mkfifo(tmp_path / "measurements.json")
    for path in (tmp_path, tmp_path / "measurements.json"):
        done = machmeter("--measurements", str(path))
        assert (done.returncode, done.stdout) == (22, "")
        assert "measurements.json is not a file" in done.stderr


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    """A sparse file of a terabyte."""
    path = tmp_path / "huge.json"
    with path.open("wb") as stream:
        stream.truncate(2**40)
    with pytest.raises(MeasurementsUnreadable, match="more than 50 MB"):
        documents.read(path)


def test_large_tables_are_judged_and_stay_documents() -> None:
    """2,000 cells with three metrics each."""
    sides = {
        side: [
            row([value * (1.0 + number) for value in values], cell=f"c{number}", side=side, metric=metric, unit=unit)
            for number in range(2000)
            for metric, unit in (("time_forward", "seconds"), ("time_b", "seconds"), ("track_artifact_size", "bytes"))
        ]
        for side, values in (("base", BASE), ("head", SAME))
    }
    found = judge.compare(measured(sides["base"], sides["head"]))
    assert len(found.findings) == 6000
    assert {item.verdict for item in found.findings} == {"no change"}
    assert msgspec.json.decode(documents.as_json(found), type=Comparison) == found


# ------------------------------------------------------------------ the table


def printed(found: Comparison, width: int) -> str:
    console = Console(width=width, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    terminal.print_comparison(found, console)
    return console.export_text()


def test_the_table_is_no_wider_than_the_terminal() -> None:
    """80 columns hold a long cell's name with all figures; markup in names is text."""
    name = "cpu.[red]onnxruntime.EfficientNetLite0(int8-dynamic, channels_last, 32)"
    base = [row([0.01 * value for value in BASE], cell=name)]
    head = [row([0.012 * value for value in SAME], cell=name, side="head")]
    text = printed(judge.compare(measured(base, head)), 80)
    table = text.split("regression: 1\n", 1)[1].split("\n\n")[0].splitlines()
    assert max(map(len, table)) <= 80
    assert "10.00 ms 12.01 ms 1.200 1.196–1.204" in text
    assert "cpu.[red]onnxruntime" in text


def test_values_are_written_as_in_a_comment() -> None:
    """Four digits, kept where they are zeros; what is judged in its own unit shows its difference as such."""
    size = {"cell": "a", "metric": "track_artifact_size", "unit": "bytes"}
    sqnr = {"cell": "s", "metric": "track_sqnr", "unit": "dB", "better": "higher"}
    base = [row([0.0399 * value for value in BASE], cell="t"), row([1064e6], **size), row([38.4], **sqnr)]
    head = [
        row([0.0418 * value for value in SAME], cell="t", side="head"),
        row([2e9], side="head", **size),
        row([19.2], side="head", **sqnr),
    ]
    text = printed(judge.compare(measured(base, head)), 100)
    assert [" ".join(line.split()) for line in text.splitlines() if line.startswith(("t ", "a ", "s "))] == [
        "s SQNR 38.40 dB 19.20 dB \N{MINUS SIGN}19.2 dB –",
        "a artifact size 1.064 GB 2.000 GB 1.880 –",
        "t latency 39.92 ms 41.82 ms 1.048 1.044–1.051",
    ]


def test_a_name_is_divided_where_it_can_be_read() -> None:
    """Between backend and model, not within the parameters."""
    name = "cpu.openvino.EfficientNetLite0(int8, 1)"
    base, head = [row(BASE, cell=name)], [row([1.2 * value for value in SAME], cell=name, side="head")]
    lines = [line.rstrip() for line in printed(judge.compare(measured(base, head)), 70).splitlines()]
    assert "EfficientNetLite0(int8, 1)" in lines
    assert [line.split()[0] for line in lines if "1.200" in line] == ["cpu.openvino."]


@pytest.mark.parametrize("text", ["\u202eevil", "a\x1b[2Jb", "a\rb\nc", "\x07\x9b31m", "[red]x[/red]"])
def test_nothing_in_the_measurements_moves_the_terminal(text: str) -> None:
    """Bidirectional overrides, control and escape characters are named, wherever text may stand."""
    found = everywhere(text)
    told = msgspec.structs.replace(found, incomparable=[text], notes=[text])
    shown = printed(told, 120)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)
    if "\n" not in text:
        assert shown.count(inert.plain(text)) > 20


def test_undecided_and_not_judged_are_in_the_result() -> None:
    """Exit code 0, as something was judged and nothing got worse; the line says how much is not known."""
    noisy = [1.0, 1.1, 0.9, 1.05, 0.95, 1.08, 0.92, 1.0]
    base = [row(BASE), *(row(noisy, cell=f"n{number}") for number in range(4))]
    head = [row(SAME, side="head"), *(row(noisy[::-1], cell=f"n{number}", side="head") for number in range(4))]
    found = judge.compare(measured(base, head))
    assert found.result == "no regression"
    last = printed(found, 100).splitlines()[-1]
    assert last == "no regression found; 4 of 5 undecided: 5 compared (4 undecided, 1 no change)"


def test_a_shift_of_the_machine_and_libraries_are_told() -> None:
    """Beside the numbers they may explain."""
    control = {"cell": "control.Machine", "metric": "time_matrix_product", "control": True}
    found = judge.compare(
        measured(
            [row(BASE, **control), row(BASE)],
            [row([1.08 * value for value in SAME], side="head", **control), row(SAME, side="head")],
            of_base={"versions": {"openvino": "1"}, "pins": {"openvino": "1"}},
            of_head={"versions": {"openvino": "2"}, "pins": {"openvino": "2"}},
        )
    )
    text = printed(found, 100)
    assert "the machine itself moved: control.Machine by a factor of 1.080 (1.0" in text
    assert "libraries: openvino 1 → 2\n" in text
