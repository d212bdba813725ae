"""The pages of a small foreign store and of our own: links, policy, what they say."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from urllib.parse import unquote

import pytest

from helpers import stores
from helpers.site_pages import Parsed, built, pages, rows
from machmeter.site.render import POLICY


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("foreign")
    stores.foreign(folder / "results")
    return built(folder)[0]


def test_a_foreign_project_has_every_page_but_those_of_models(foreign: Path) -> None:
    top = {"benchmarks", "changes", "compare", "data", "failures", "index", "machines", "method"}
    assert {path.stem for path in foreign.glob("*.html")} == top
    assert len(list((foreign / "history").glob("*.html"))) == 3
    assert not (foreign / "model").exists()
    assert "Versions" not in (foreign / "index.html").read_text()


def test_a_change_is_good_or_bad_only_where_the_direction_is_known(foreign: Path) -> None:
    """Seconds are better lower; nobody said which way points are better (J1)."""
    listed = rows((foreign / "changes.html").read_text(), "changes")
    assert [row.partition(" ms")[0].partition(" points")[0] for row in listed[1:]] == [
        "regression +50.0 % suite.Time.time_sum small, n=1 10.00",
        "change +20.0 % suite.Track.track_score 10.00",
    ]
    data = json.loads((foreign / "data/changes.json").read_text())["changes"]
    assert [(row["verdict"], row["first"], row["commit"]) for row in data] == [
        ("regression", "00000013c0ff", "00000014c0ff"),
        ("change", "00000013c0ff", "00000014c0ff"),
    ]


def test_the_newest_number_of_each_series(foreign: Path) -> None:
    page = next(text for name, text in pages(foreign).items() if "suite.Time.time_sum" in name)
    assert rows(page, "all-series") == [
        "Parameters Newest 99 % interval Date State Points Last change Data",
        "small, n=1 15.06 ms ± 2.0 % 2023-12-23 ok 40 regression +50.0 % JSON",
        "small, n=10 2.000 ms ± 2.0 % 2023-12-23 ok 40 – JSON",
        "large, n=1 502.0 ms ± 2.0 % 2023-12-23 ok 40 – JSON",
    ]
    assert "1 combinations more" in page  # NaN: n/a or not run, never a failure (R7)


def test_a_failure_has_its_reason_and_since_when(foreign: Path) -> None:
    page = (foreign / "failures.html").read_text()
    (row,) = [row for row in rows(page, "series-without") if "time_sort" in row]
    assert row == "failed virtualenv-py3.11 suite.Time.time_sort asv keeps no reason 2023-12-21 00000025 2023-12-20"


def test_every_link_of_every_page_leads_somewhere(foreign: Path, own: Path) -> None:
    for site in (foreign, own):
        for name, text in pages(site).items():
            for _, attributes in Parsed(text).elements:
                target = attributes.get("href") or attributes.get("src") or ""
                if not target or target.startswith("#"):
                    continue
                path = unquote(re.split("[#?]", target)[0])
                assert not path.startswith(("/", "http")), f"{name}: {target} is not relative"
                assert ((site / name).parent / path).resolve().is_file(), f"{name}: {target}"


def test_every_page_has_the_policy_and_nothing_that_it_forbids(foreign: Path, own: Path) -> None:
    for site in (foreign, own):
        for name, text in pages(site).items():
            page = Parsed(text)
            policies = [
                a.get("content") for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"
            ]
            assert policies == [POLICY], name
            assert page.inline == [], name
            for tag, attributes in page.elements:
                assert "style" not in attributes, f"{name}: <{tag} style>"
                assert not [key for key in attributes if key.startswith("on")], f"{name}: <{tag} on...>"


def test_every_data_file_is_strict_json(foreign: Path, own: Path) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    for site in (foreign, own):
        files = list((site / "data").rglob("*.json"))
        assert len(files) > 5
        for path in files:
            json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def test_the_feed_is_well_formed_and_names_an_entry_by_series_and_commit(foreign: Path) -> None:
    feed = ElementTree.fromstring((foreign / "changes.atom").read_text(encoding="utf-8"))
    atom = "{http://www.w3.org/2005/Atom}"
    entries = feed.findall(f"{atom}entry")
    assert sorted(entry.findtext(f"{atom}title") or "" for entry in entries) == [
        "change +20.0 %: suite.Track.track_score",
        "regression +50.0 %: suite.Time.time_sum small, n=1",
    ]
    for entry in entries:
        assert re.fullmatch(r"urn:machmeter:change:[0-9a-f]{12}:00000014c0ff", entry.findtext(f"{atom}id") or "")
        assert entry.findtext(f"{atom}updated") == "2023-12-04T22:13:20Z"


def test_points_are_named_by_hash_and_the_command_measures_one_again(foreign: Path) -> None:
    """R12: nothing on a page depends on how many commits there are."""
    page = next(text for name, text in pages(foreign).items() if "time_sum" in name)
    assert "asv run -b" in page
    assert "00000027c0ff^!" in page
    assert rows(page, "points-static")[1].startswith("00000027 2023-12-23 15.06 ms")
