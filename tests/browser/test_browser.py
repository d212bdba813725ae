"""Every page in a real browser: no error, no foreign request, and what a reader does there."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from helpers import asv_files, stores
from machmeter.site import build, serve

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
AXE = ROOT / "node_modules/axe-core/axe.min.js"


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    """A page of its own that fails the test on any error in it or any request to another host."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "response", lambda answer: problems.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None
    )
    page.on("request", lambda request: problems.append(f"foreign: {request.url}") if _foreign(request.url) else None)
    yield page
    context.close()
    assert problems == []


def _foreign(address: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme in ("http", "https", "ws", "wss") and parts.hostname != "127.0.0.1"


def every(shown: Any) -> list[str]:
    """Return every page of a site."""
    return sorted(path.relative_to(shown.folder).as_posix() for path in shown.folder.rglob("*.html"))


def history_page(shown: Any, part: str) -> str:
    return next(path for name, path in shown.history.items() if part in name)


def open_history(tab: Any, shown: Any, part: str, fragment: str = "") -> None:
    tab.goto(shown.address + history_page(shown, part) + fragment)
    tab.wait_for_selector("[data-chart][data-drawn]")
    tab.wait_for_selector("#points-live")


@pytest.mark.parametrize("name", ["foreign", "own"])
def test_every_page_loads_without_an_error_or_a_foreign_request(tab: Any, name: str, request: Any) -> None:
    shown = request.getfixturevalue(name)
    for page in every(shown):
        tab.goto(shown.address + page, wait_until="networkidle")
        assert tab.locator("h1").count() == 1, page


@pytest.mark.parametrize("name", ["foreign", "own"])
def test_no_page_is_wider_than_a_small_screen(tab: Any, name: str, request: Any) -> None:
    shown = request.getfixturevalue(name)
    tab.set_viewport_size({"width": 360, "height": 740})
    for page in every(shown):
        tab.goto(shown.address + page, wait_until="networkidle")
        assert tab.evaluate("document.documentElement.scrollWidth") == 360, page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["foreign", "own"])
def test_axe_finds_nothing(browser: Any, name: str, scheme: str, request: Any) -> None:
    assert AXE.is_file(), "axe-core is not installed: run 'npm ci'"
    shown = request.getfixturevalue(name)
    # The checker is a script of its own, which the pages' policy rightly refuses.
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)
    tab = context.new_page()
    found = []
    for page in every(shown):
        tab.goto(shown.address + page, wait_until="networkidle")
        tab.add_script_tag(path=str(AXE))
        violations = tab.evaluate("axe.run().then((found) => found.violations)")
        found += [f"{page}: {item['id']}: {item['nodes'][0]['html'][:160]}" for item in violations]
    context.close()
    assert found == []


def column(tab: Any, table: str, number: int) -> list[str]:
    rows = tab.locator(f"#{table} tbody tr:not([hidden])")
    return [rows.nth(n).locator("th, td").nth(number).inner_text() for n in range(rows.count())]


def test_a_table_is_sorted_by_its_heads(tab: Any, own: Any) -> None:
    tab.goto(own.address + "model/box/ResNet50.html")
    assert column(tab, "cells", 5) == ["181.8", "57.1", "55.6", "33.3", "28.6"]
    head = tab.locator("#cells thead th").nth(8)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert column(tab, "cells", 8) == ["280.00", "140.00", "30.00", "18.00", "5.50"]
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert column(tab, "cells", 8) == ["5.50", "18.00", "30.00", "140.00", "280.00"]
    tab.locator("#cells thead th").nth(7).get_by_role("button").click()
    assert column(tab, "cells", 7)[-1] == "–"  # what has no value stays last


def test_a_table_is_filtered_by_words_and_by_column(tab: Any, own: Any) -> None:
    tab.goto(own.address + "model/box/ResNet50.html")
    tools = tab.locator("section[aria-labelledby=table] .tools")
    tools.get_by_label("Backend").select_option("openvino")
    assert column(tab, "cells", 0) == ["openvino", "openvino", "openvino"]
    tools.get_by_label("Filter").fill("int8")
    assert column(tab, "cells", 1) == ["int8"]
    assert tools.get_by_role("status").inner_text() == "1 of 5 rows"


def test_a_plot_is_zoomed_and_its_address_shows_exactly_that(tab: Any, foreign: Any) -> None:
    open_history(tab, foreign, "time_sum")
    assert tab.locator("[data-chart]").get_attribute("data-drawn") == "40"
    box = tab.locator(".u-over").bounding_box()
    tab.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 40)
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 60, steps=4)
    tab.mouse.up()
    tab.get_by_role("button", name="time", exact=True).click()
    tab.get_by_role("button", name="log", exact=True).click()
    tab.get_by_label("normalise").check()
    fragment = urlsplit(tab.url).fragment
    assert re.search(r"x=time&y=log&norm=1&from=[0-9a-f]{12}&to=[0-9a-f]{12}$", fragment)
    caption = tab.locator("#points-live caption").inner_text()
    assert re.fullmatch(r"(19|20|21) of (19|20|21) commits in the plot, newest first", caption)
    other = tab.context.new_page()
    other.goto(tab.url)
    other.wait_for_selector("#points-live")
    assert urlsplit(other.url).fragment == fragment
    assert other.locator("#points-live caption").inner_text() == caption
    assert other.locator("#points-live").inner_text() == tab.locator("#points-live").inner_text()


def test_a_link_to_a_series_shows_it_alone(tab: Any, foreign: Any) -> None:
    page = (foreign.folder / "changes.html").read_text()
    href = re.search(r'href="(history/suite\.Time\.time_sum[^"]*#s=[0-9a-f]{12})"', page)
    assert href
    tab.goto(foreign.address + href[1])
    tab.wait_for_selector("#points-live")
    assert tab.locator("[data-legend] li").all_inner_texts() == ["small · 1"]


def test_series_are_chosen_by_parameter(tab: Any, foreign: Any) -> None:
    open_history(tab, foreign, "time_sum")
    assert tab.locator("[data-legend] li").count() == 3
    tab.get_by_role("group", name="size").get_by_label("large").uncheck()
    expect(tab.locator("[data-legend] li")).to_have_count(2)
    assert tab.locator("[data-legend] li").all_inner_texts() == ["1", "10"]
    assert tab.locator("#points-live thead th").all_inner_texts() == ["Commit", "Date", "1", "10"]


def test_the_table_below_has_the_numbers_of_the_plot(tab: Any, foreign: Any) -> None:
    open_history(tab, foreign, "time_sort")
    first = tab.locator("#points-live tbody tr").nth(0).inner_text().split("\t")
    fourth = tab.locator("#points-live tbody tr").nth(3).inner_text().split("\t")
    assert first == ["00000027", "2023-12-23", "failed"]
    assert fourth == ["00000024", "2023-12-20", "200.0 ms ± 2.0 %"]


def test_a_plot_is_read_and_zoomed_by_keys(tab: Any, foreign: Any) -> None:
    open_history(tab, foreign, "track_score")
    tab.locator("[data-chart]").focus()
    tab.keyboard.press("ArrowLeft")
    assert tab.locator("[data-readout]").inner_text().startswith("00000026 2023-12-22")
    assert "00000026c0ff^!" in tab.locator("[data-reproduce]").inner_text()
    tab.keyboard.press("Home")
    assert tab.locator("[data-readout]").inner_text().startswith("00000000 2023-11-14")
    tab.keyboard.press("+")
    assert "from=00000000c0ff" in tab.url
    tab.keyboard.press("0")
    assert "from=" not in tab.url


def test_numbers_are_downloaded_as_csv_and_json(tab: Any, foreign: Any) -> None:
    open_history(tab, foreign, "track_score")
    for name, begins in (("Download CSV", "benchmark,machine,environment"), ("Download JSON", "[\n {\n")):
        with tab.expect_download() as download:
            tab.get_by_role("button", name=name).click()
        text = Path(download.value.path()).read_text(encoding="utf-8")
        assert text.startswith(begins)
        assert text.count("suite.Track.track_score") == 40


def test_two_runs_are_compared_and_the_link_is_kept(tab: Any, foreign: Any) -> None:
    tab.goto(foreign.address + "compare.html")
    tab.wait_for_selector("#comparison")
    base = tab.locator('[data-pick="base"]')
    base.select_option(index=30)
    expect(tab.locator("#comparison tbody tr td").first).to_have_text("failed")
    assert column(tab, "comparison", 0) == ["failed", "worse", "change", "same", "same"]
    assert column(tab, "comparison", 1)[1:3] == ["+50.0 %", "+20.0 %"]
    text, address = tab.locator("#comparison").inner_text(), tab.url
    other = tab.context.new_page()
    other.goto(address)
    other.wait_for_selector("#comparison")
    assert other.locator("#comparison").inner_text() == text


def test_swept_versions_are_compared(tab: Any, own: Any) -> None:
    tab.goto(own.address + "compare.html#m=box&a=openvino%402025.0.0&b=openvino%402026.1.0")
    tab.wait_for_selector("#comparison")
    rows = tab.locator("#comparison tbody tr").all_inner_texts()
    assert rows[0].split("\t")[:3] == ["better", "+33.4 %", "ResNet50 openvino int8 batch 1: throughput"]


def test_all_benchmarks_are_searched(tab: Any, foreign: Any) -> None:
    tab.goto(foreign.address + "benchmarks.html")
    tab.get_by_label("Search benchmarks").fill("track score")
    assert tab.locator("tbody tr:visible th").all_inner_texts() == ["track_score"]


def test_the_first_stop_of_the_keyboard_skips_to_the_content(tab: Any, foreign: Any) -> None:
    tab.goto(foreign.address + "index.html")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the content"
    tab.keyboard.press("Enter")
    assert tab.evaluate("location.hash") == "#content"


def test_the_theme_is_kept(tab: Any, foreign: Any) -> None:
    tab.goto(foreign.address + "index.html")
    tab.get_by_role("button", name="Switch to the dark theme").click()
    tab.goto(foreign.address + "changes.html")
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"


def test_an_old_history_says_so(tab: Any, foreign: Any) -> None:
    """J16."""
    tab.goto(foreign.address + "index.html")
    assert re.fullmatch(
        r"The newest result is \d+ days old: nobody has measured since\.", tab.locator("[data-stale]").inner_text()
    )


def test_without_javascript_the_numbers_and_a_plot_are_there(browser: Any, foreign: Any, own: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(foreign.address + history_page(foreign, "time_sum"))
    assert tab.locator("#points-static").is_visible()
    assert "15.06 ms" in tab.locator("#points-static").inner_text()
    assert tab.locator("figure svg.plot").is_visible()
    assert not tab.locator("[data-app]").is_visible()
    tab.goto(own.address + "model/box/ResNet50.html")
    assert tab.locator("#cells").is_visible()
    assert tab.locator("svg.plot").count() >= 4
    context.close()


def test_from_disk_the_pages_can_be_read(browser: Any, foreign: Any) -> None:
    context = browser.new_context()
    tab = context.new_page()
    tab.goto((foreign.folder / history_page(foreign, "time_sum")).as_uri())
    assert "15.06 ms" in tab.locator("#points-static").inner_text()
    assert tab.locator("figure svg.plot").is_visible()
    assert tab.evaluate("getComputedStyle(document.querySelector('table')).borderCollapse") == "collapse"
    tab.get_by_role("link", name="Failures").click()
    assert tab.locator("h1").inner_text() == "Failures"
    context.close()


def test_every_hostile_name_is_inert(browser: Any, tmp_path: Path) -> None:
    """R13 in a browser: nothing runs, no image is asked for."""
    evil = "<img src=x onerror=alert(1)>"
    for number in range(3):
        rows: dict[str, tuple[list[list[str]], list[Any]]] = {
            f"s.{evil}.time_x": ([[f"'{evil}'", "'b'"]], [1.0 + number, 2.0])
        }
        stores.write_result(tmp_path / "results", number, rows, machine=evil, environment=evil, file=f"{number}.json")
    asv_files.write_catalogue(
        tmp_path / "results", {f"s.{evil}.time_x": {"params": [[f"'{evil}'", "'b'"]], "param_names": [evil]}}
    )
    output = tmp_path / "html"
    build.run(build.Request(results=tmp_path / "results", output=output, title=evil), lambda *_: None)
    server = serve.server(output, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    context = browser.new_context()
    tab = context.new_page()
    ran: list[str] = []
    tab.on("dialog", lambda dialog: (ran.append(dialog.message), dialog.dismiss()))
    for path in sorted(output.rglob("*.html")):
        tab.goto(
            f"http://127.0.0.1:{server.server_port}/{path.relative_to(output).as_posix()}", wait_until="networkidle"
        )
        assert tab.locator("img").count() == 0
    context.close()
    server.shutdown()
    assert ran == []
