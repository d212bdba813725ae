"""A change is told alike wherever it is told: pages, feed, data, the comment of a pull request, and issues."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from helpers.asv_files import result, write
from helpers.measurements import measured, row
from helpers.number_pairs import MINUS, PAIRS, Pair
from machmeter.changes import of_history, regressions
from machmeter.compare import figures, judge
from machmeter.github import issues
from machmeter.history.read import read
from machmeter.site import build

# Steps between the smallest and the largest numbers that there are are none to the detector.
STEPS = [pair for pair in PAIRS if pair.outcome != "same" and max(pair.before, pair.after) < 1e300]
VERDICTS = {"better": "improvement", "worse": "regression", "change": "change"}


def benchmark(number: int) -> str:
    """Return the benchmark whose series goes from one number of a pair to the other."""
    return f"m{number}.{ {'dB': 'track_sqnr', 'fraction': 'track_top1_agreement'}.get(STEPS[number].unit, 'track_x') }"


def store(results: Path) -> None:
    for commit in range(40):
        write(
            results,
            commit,
            {
                benchmark(number): result([pair.before if commit < 20 else pair.after])
                for number, pair in enumerate(STEPS)
            },
        )
    described = {benchmark(number): {"unit": pair.unit} for number, pair in enumerate(STEPS)}
    (results / "benchmarks.json").write_text(json.dumps(described), encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("told")
    store(made / "results")
    build.run(build.Request(results=made / "results", output=made / "html", title="suite"), lambda *_: None)
    return made


def changes_of(site: Path) -> dict[str, dict[str, Any]]:
    """Return the change of each benchmark that has one, from its data file."""
    found = {}
    for path in (site / "data/series").glob("*.json"):
        series = json.loads(path.read_text())
        if series["changes"]:
            (found[series["benchmark"]],) = series["changes"]
    return found


def text_of(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_a_step_is_told_alike_on_every_page_and_in_the_feed(folder: Path, number: int) -> None:
    """A fall of decibels below zero was "improvement +100.2 %" on the page of its history."""
    pair, site = STEPS[number], folder / "html"
    verdict, name = VERDICTS[pair.outcome], benchmark(number)
    change = changes_of(site)[name]
    assert (change["verdict"], change["words"]) == (verdict, pair.words)
    (feed,) = re.findall(rf"<title>([^<]*: {re.escape(name)})</title>", (site / "changes.atom").read_text())
    assert unescape(feed) == f"{verdict} {pair.words}: {name}"
    assert f"{verdict} {pair.words} {name} " in text_of((site / "changes.html").read_text())
    (history,) = (site / "history").glob(f"{name}-*.html")
    page = history.read_text()
    assert f"<title>{verdict}: {pair.words}</title>" in unescape(page)
    assert text_of(page).count(f"{verdict} {pair.words} ") == 2  # among its changes, and in the list of its series
    percents = set(re.findall(rf"[+{MINUS}-][0-9.]+ %", text_of(page)))
    assert percents <= {pair.words}


def test_every_regression_is_told_alike_in_its_issue(folder: Path) -> None:
    history = read(folder / "results")
    found = regressions.find(history, of_history.find(history))
    told = {name: some[0].words for name, some in found.items()}
    worse = [(number, pair) for number, pair in enumerate(STEPS) if pair.outcome == "worse"]
    assert told == {benchmark(number): pair.words for number, pair in worse}
    for message in issues.messages(found, issues.Where(repository="o/r")):
        words = message.regressions[0].words
        assert f"| {words} (20 commits) |" in message.body or f"| `{words}` (20 commits) |" in message.body


@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("pair", PAIRS)
def test_two_sides_are_told_alike_in_the_comment(pair: Pair, count: int) -> None:
    """Whether they were measured once or in rounds; nothing is said of what no number in this unit can be."""
    metric = {"dB": "track_sqnr", "fraction": "track_top1_agreement", "bytes": "track_artifact_size"}
    about = {"metric": metric.get(pair.unit, "track_x"), "unit": pair.unit, "better": pair.direction or "unknown"}
    base, head = row([pair.before] * count, **about), row([pair.after] * count, side="head", **about)
    (finding,) = judge.compare(measured([base], [head])).findings
    verdicts = {**VERDICTS, "change": "changed", "same": "no change"}
    change = figures.change(finding)
    if finding.verdict in ("not judged", "undecided"):
        assert count == 1 or min(pair.before, pair.after) < 0 or max(pair.before, pair.after) >= 1e300
    else:
        assert finding.verdict == verdicts[pair.outcome]
        assert change.startswith((pair.words, f"`{pair.words}`", "0.0 %"))
    if "%" in change:
        assert finding.base > 0
        assert finding.head > 0
