"""The scripts of the pages say what Python says: the same cases through both."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.asv_files import result, write
from helpers.browser_modules import needs_node, run_module
from helpers.number_pairs import PAIRS
from machmeter.compare import runs
from machmeter.history.data import History
from machmeter.history.read import read
from machmeter.machine.host import Cpu, HostFacts, Limits
from machmeter.site import build
from machmeter.site.data import compare_columns, encode, export
from machmeter.site.pages import compare
from machmeter.text import numbers, two_numbers

NAN = math.nan


@needs_node
def test_the_browser_writes_values_as_the_build_does(tmp_path: Path) -> None:
    some = [0.0, 1.2e-9, 3.456e-7, 0.0372, 0.99949, 0.99951, 59.9999, 1234.6, 1e9, 245_400_000, -0.5, 7e-12, 3e12]
    some += [0.04, -0.04, 6.25, 6.75, -12.25, 1234.5, 1235.5, 12_345_000_000, -1e308, 5e-324]  # ties, and the ends
    units = ["seconds", "bytes", "fraction", "images/s", "operations/s", "dB", "", "constructor"]
    program = (
        'import { value, signed } from "MODULES/words.js";\n'
        f"const numbers = {json.dumps(some)}, units = {json.dumps(units)};\n"
        "console.log(JSON.stringify(numbers.flatMap((n) => [signed(n), ...units.map((u) => value(n, u))])));"
    )
    expected = [text for n in some for text in (numbers.signed(n), *(numbers.value(n, unit) for unit in units))]
    assert run_module(tmp_path, program) == expected


@needs_node
@pytest.mark.parametrize(("spread", "width"), [(0.01, 2), (0.1, 2.5), (1.0, 3)])
def test_the_browser_reads_columns_as_they_were_written(tmp_path: Path, spread: float, width: float) -> None:
    generator = np.random.default_rng(5)
    values = np.exp(spread * generator.normal(size=501).clip(-3, 3))
    positions = np.flatnonzero(generator.random(900) < 0.6).astype(np.int32)[:501]
    file = {
        "commit": encode.positions(positions),
        "state": encode.runs(np.zeros(len(positions), np.uint8)),
        "version": encode.runs(np.repeat([0, 1], [10, len(positions) - 10])),
        "current": 1,
        "value": encode.pack(values[: len(positions)]),
        "bounds": encode.bounds(
            values[: len(positions)], values[: len(positions)] * 0.9, np.full(len(positions), np.nan)
        ),
    }
    program = f'import {{ decode }} from "MODULES/decode.js";\nconsole.log(JSON.stringify(decode({json.dumps(file)})));'
    found = run_module(tmp_path, program)
    assert isinstance(found, dict)
    assert found["position"] == positions.tolist()
    assert file["value"]["width"] == width
    np.testing.assert_allclose(found["value"], encode.unpack(file["value"], len(positions)), rtol=1e-12)
    np.testing.assert_allclose(found["low"], values[: len(positions)] * 0.9, rtol=0.02)
    assert set(found["high"]) == {None}
    assert found["old"] == [True] * 10 + [False] * (len(positions) - 10)


# ------------------------------------------------------------------ two numbers

EXTREMES = [0.0, 1.0, 1.25, 3.0, 20.0, -1.0, -1.25, -20.0, 1e308, -1e308, 5e-324, -5e-324, NAN, math.inf]


@needs_node
def test_the_browser_tells_two_numbers_as_python_does(tmp_path: Path) -> None:
    units = ["seconds", "images/s", "dB", "fraction", "points", ""]
    cases = [(pair.before, pair.after, pair.unit, pair.direction, 0.0) for pair in PAIRS]
    for before, after in itertools.product(EXTREMES, repeat=2):
        cases += [(before, after, unit, "lower", 0.0) for unit in units]
        cases += [(before, after, "", direction, least) for direction in ("higher", None) for least in (0.25, 1e-9)]
    program = (
        'import { outcome, size, words } from "MODULES/two_numbers.js";\n'
        f"const rules = {json.dumps(two_numbers.rules())};\n"
        f"const told = {json.dumps(cases)}.map(([before, after, unit, direction, least]) => "
        "[outcome(before, after, direction, least), words(before, after, unit, rules), String(size(before, after))]);\n"
        "console.log(JSON.stringify(told));"
    )
    told = run_module(tmp_path, program)
    assert isinstance(told, list)
    assert len(told) == len(cases) > 1500
    for case, (outcome, words, size) in zip(cases, told, strict=True):
        before, after, unit, direction, least = case
        assert (outcome, words) == (
            two_numbers.outcome(before, after, direction, least),  # type: ignore[arg-type]
            two_numbers.words(before, after, unit),
        ), case
        assert float(size.replace("Infinity", "inf")) == pytest.approx(two_numbers.size(before, after), rel=1e-12)


# ------------------------------------------------------------------ two runs


def compared_store(results: Path) -> None:
    """Write four runs of everything that can become of a number, and one on another CPU."""
    units = {f"m.track_{number}": pair.unit for number, pair in enumerate(PAIRS) if pair.unit not in ("dB", "fraction")}
    units |= {"m.track_sqnr": "dB", "m.track_top1_agreement": "fraction", "m.track_none": ""}
    for number in range(5):
        older = number % 2 == 0
        rows: dict[str, Any] = {
            name: result(
                [PAIRS[int(name.rpartition("_")[2])].before if older else PAIRS[int(name.rpartition("_")[2])].after]
            )
            for name in units
            if name.rpartition("_")[2].isdigit()
        }
        rows["m.track_sqnr"] = (
            result([30.0, 30.0, -500.0, 0.0], [["1", "2", "3", "4"]])
            if older
            else result([29.5, 28.5, 0.5, 0.0], [["1", "2", "3", "4"]])
        )
        rows["m.track_top1_agreement"] = (
            result([0.99, 0.99], [["1", "2"]]) if older else result([0.986, 0.98], [["1", "2"]])
        )
        rows["m.track_none"] = result([1.0 + 0.03 * number, 1.0 + 0.06 * number], [["1", "2"]])
        rows["m.time_forward"] = result([1.0 + 0.0199 * number, 1.0 + 0.0201 * number], [["1", "2"]])
        # Wide intervals hide a difference.
        wide = {"low": [0.5, None], "high": [1.6, None]}
        rows["m.time_wide"] = result([1.0 + 0.2 * number, 1.0 + 0.2 * number], [["1", "2"]], **wide)
        states = [[1.0, None, NAN, 1.0, None], [None, 1.0, 1.0, NAN, None], [NAN, NAN, None, 1.0, 1.0]]
        rows["m.time_states"] = result(states[number % 3], [["1", "2", "3", "4", "5"]])
        rows["m.time_versions"] = result([1.0 + number], version="old" if number < 2 else "new")
        if number in (1, 2):
            rows["m.time_sometimes"] = result([1.0 + number, None], [["1", "2"]])
        cpu = "Other CPU" if number == 3 else "Some CPU"
        write(results, number, rows, params={"machine": "here", "cpu": cpu, "os": "Linux"})
    described = {name: {"unit": unit} for name, unit in units.items()}
    (results / "benchmarks.json").write_text(json.dumps(described), encoding="utf-8")


def told_by_python(history: History, base: int, head: int) -> dict[str, Any]:
    found = runs.compare(
        *(runs.column(history, history.runs[number], compare_columns.as_read) for number in (base, head))
    )
    return {
        "rows": [[row.verdict, row.name, row.words, row.before, row.after] for row in found.rows],
        "summary": found.summary,
        "differs": found.incomparable.removeprefix("not comparable: "),
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    compared_store(folder / "results")
    build.run(build.Request(results=folder / "results", output=folder / "html", title="suite"), lambda *_: None)
    return folder


@needs_node
def test_the_browser_compares_any_two_runs_as_python_does(site: Path, tmp_path: Path) -> None:
    """From the exported files: better, worse, failed, mended, another version, another CPU; values at the ends."""
    history = read(site / "results")
    data = site / "html/data"
    (folder,) = (data / "columns").glob("*/*")
    files = {
        path.stem: json.loads(path.read_text())
        for path in (*folder.glob("*.json"), data / "index.json", data / "runs.json")
    }
    page = (site / "html/compare.html").read_text(encoding="utf-8")
    rules = re.search(r'data-rules="([^"]+)"', page)
    assert rules
    program = (
        'import { column } from "MODULES/decode.js";\n'
        'import { compare, differences, summary } from "MODULES/two_runs.js";\n'
        f"const files = {json.dumps(files)}, rules = {unescape(rules[1])};\n"
        "const { scale, index, runs } = files, group = runs.runs[0];\n"
        "const sides = (place) => new Map(column(scale, files['000'], place).flatMap((point, at) => {\n"
        "  const about = index.benchmarks[scale.benchmark[at]];\n"
        "  const name = `${about.name}(${about.params[scale.params[at]].join(', ')})`;\n"
        "  return point ? [[name, { ...point, ...about, label: name }]] : [];\n"
        "}));\n"
        "const host = (place) => ({ facts: runs.hosts[group.host[place]], noted: runs.noted[group.host[place]] });\n"
        "const told = {};\n"
        "for (const base of group.commit) for (const head of group.commit) {\n"
        "  const differs = differences(host(base), host(head), rules);\n"
        "  const rows = compare(sides(base), sides(head), differs.length === 0, rules);\n"
        "  told[`${base} ${head}`] = { differs: differs.join(', '), summary: summary(rows, rules),\n"
        "    rows: rows.map((row) => [row.verdict, row.about.label, row.words, row.before, row.after]) };\n"
        "}\n"
        "console.log(JSON.stringify(told));"
    )
    told = run_module(tmp_path, program)
    assert isinstance(told, dict)
    assert len(told) == 25
    for pair, found in told.items():
        base, head = map(int, pair.split())
        expected = told_by_python(history, base, head)
        assert (found["summary"], found["differs"]) == (expected["summary"], expected["differs"]), pair
        assert found["rows"] == expected["rows"], pair
    verdicts = {row[0] for found in told.values() for row in found["rows"]}
    assert verdicts == set(runs.ORDER)


HOSTS = (
    None,
    HostFacts(cpu=Cpu(model="A", features=("avx2",)), kernel="6.1"),
    HostFacts(cpu=Cpu(model="A", features=("avx2",)), kernel="6.12"),
    HostFacts(cpu=Cpu(model="B", features=("avx2", "amx")), thread_budget=2),
    HostFacts(cpu=Cpu(model="A", features=tuple(f"feature{number}" for number in range(90))), thread_budget=4),
    HostFacts(cpu=Cpu(model="A"), limits=Limits(memory_bytes=8_000_000_000, cpu_quota=1.5)),
    HostFacts(cpu=Cpu(model="A"), limits=Limits(memory_bytes=16_000_000_000)),
)


@needs_node
def test_the_browser_finds_the_same_hosts_comparable(site: Path, tmp_path: Path) -> None:
    """Hosts with and without evidence: asv and the evidence name a CPU differently."""
    history = read(site / "results")
    machines = [{"machine": "here", "cpu": "A CPU"}, {"machine": "here", "cpu": "Another CPU"}, {"machine": "here"}]
    hosts = tuple(
        replace(history.runs[0], host=host, params=noted, commit=number)
        for number, (host, noted) in enumerate(itertools.product(HOSTS, machines))
    )
    told = {
        f"{base.commit} {head.commit}": runs.compare(
            runs.Column(run=base, points={}), runs.Column(run=head, points={})
        ).incomparable.removeprefix("not comparable: ")
        for base in hosts
        for head in hosts
    }
    data = export.runs(replace(history, runs=hosts))
    program = (
        'import { differences } from "MODULES/two_runs.js";\n'
        f"const runs = {json.dumps(data)}, rules = {json.dumps(runs.rules())}, group = runs.runs[0];\n"
        "const host = (place) => ({ facts: runs.hosts[group.host[place]], noted: runs.noted[group.host[place]] });\n"
        "console.log(JSON.stringify(Object.fromEntries(group.commit.flatMap((base) => group.commit.map(\n"
        "  (head) => [`${base} ${head}`, differences(host(base), host(head), rules).join(', ')])))));"
    )
    assert run_module(tmp_path, program) == told
    assert "CPU features differ" in " ".join(told.values())
    assert {"", "CPU A CPU → Another CPU", "memory limit 8000000000 bytes → 16000000000 bytes"} < set(told.values())


def test_the_table_without_a_script_is_what_the_script_would_show(site: Path) -> None:
    history = read(site / "results")
    base, head = compare.newest_pair(history, history.machines[0]) or pytest.fail("two runs are there")
    expected = told_by_python(history, history.runs.index(base), history.runs.index(head))
    page = (site / "html/compare.html").read_text(encoding="utf-8")
    body = re.search(r"<tbody>(.*?)</tbody>", page, re.DOTALL)
    assert body
    told = [
        [unescape(re.sub("<[^>]+>", "", cell)) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)[:2]]
        for row in body[1].split("</tr>")
        if row.strip()
    ]
    assert told == [[row[0], row[2] or "–"] for row in expected["rows"] if row[0] != "same"][: compare.SHOWN]
    assert len({verdict for verdict, _ in told}) > 3
    assert expected["summary"] in unescape(page)
