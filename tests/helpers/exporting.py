"""A small store, exported, for the tests of the data of a site."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from helpers.asv_files import result, write
from helpers.project import ROOT
from machmeter.changes import of_history
from machmeter.history.data import History
from machmeter.site.data import export

SCHEMAS = ROOT / "site" / "static" / "schema"


NAN = float("nan")


def schema_of(path: str) -> jsonschema.Draft202012Validator:
    folder, _, name = path.removeprefix("data/").partition("/")
    kind = {"series": "series", "badges": "badge", "columns": "scale" if name.endswith("scale.json") else "columns"}
    found = json.loads((SCHEMAS / f"{kind.get(folder, folder.removesuffix('.json'))}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


def exported(history: History) -> dict[str, bytes]:
    return dict(export.files(history, of_history.find(history)))


def check(files: dict[str, bytes]) -> None:
    """Strict JSON of the published form."""

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    for path, content in files.items():
        data = json.loads(content, parse_constant=refuse)
        problems = [f"{path}: {error.message}" for error in schema_of(path).iter_errors(data)]
        assert problems == []


def small(results: Path) -> None:
    params = [["'int8'", "'fp32'"], ["8"]]
    ours = "cpu.openvino.ResNet50.time_forward"
    for number, (int8, fp32) in enumerate([(0.04, 0.1), (0.05, None), (NAN, 1 / 3)]):
        row = result([int8, fp32], params, low=[0.03, None], high=[0.06, None], version="ab"[number // 2])
        write(results, number, {ours: row, "m.track_<b>": result(["x", 0][number % 2])})
