"""Tables with many columns: they fit a laptop's screen at first, and nothing is lost on a phone's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.browser

OPEN = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
TOO_WIDE = """[...document.querySelectorAll('.scroll')]
    .filter((box) => box.scrollWidth > box.clientWidth).map((box) => box.getAttribute('aria-label'))"""

# Of every table: the heads that cannot be brought into view, once all columns are asked for.
OUT_OF_REACH = """[...document.querySelectorAll('.scroll')].flatMap((box) => {
    const frame = box.getBoundingClientRect();
    return [...(box.checkVisibility() ? box.querySelectorAll('thead th') : [])].filter((head) => {
        box.scrollLeft += head.getBoundingClientRect().left - frame.left;
        const place = head.getBoundingClientRect();
        const end = Math.min(place.right, place.left + frame.width);
        return place.width === 0 || place.left < frame.left - 1 || end > frame.right + 1;
    }).map((head) => `${box.getAttribute('aria-label')}: ${head.textContent}`);
})"""


@pytest.fixture(params=[True, False], ids=["with scripts", "without scripts"])
def tab(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, java_script_enabled=request.param)
    yield context.new_page()
    context.close()


def pages(shown: Any) -> list[str]:
    return sorted(path.relative_to(shown.folder).as_posix() for path in shown.folder.rglob("*.html"))


@pytest.mark.parametrize("name", ["foreign", "own"])
def test_every_table_fits_a_screen_of_1280_pixels(tab: Any, name: str, request: Any) -> None:
    shown = request.getfixturevalue(name)
    found = {}
    for page in pages(shown):
        tab.goto(shown.address + page, wait_until="networkidle")
        tab.evaluate(OPEN)
        if wide := tab.evaluate(TOO_WIDE):
            found[page] = wide
    assert found == {}


@pytest.mark.parametrize("name", ["foreign", "own"])
def test_every_column_can_be_reached_on_a_screen_of_360_pixels(tab: Any, name: str, request: Any) -> None:
    shown = request.getfixturevalue(name)
    tab.set_viewport_size({"width": 360, "height": 740})
    found = {}
    for page in pages(shown):
        tab.goto(shown.address + page, wait_until="networkidle")
        tab.evaluate(OPEN)
        for box in tab.locator(".more").all():
            box.check()
        if lost := tab.evaluate(OUT_OF_REACH):
            found[page] = lost
        assert tab.evaluate("document.documentElement.scrollWidth") == 360, page
    assert found == {}


def test_the_columns_that_are_not_there_at_first_come_on_request(tab: Any, own: Any) -> None:
    tab.goto(own.address + "model/box/ResNet50.html")
    hidden = tab.locator("#cells thead th.extra")
    assert [text.strip() for text in hidden.all_text_contents()] == [
        "Stack", "p95 ms", "load s", "first call s", "% of peak",
    ]  # fmt: skip
    assert not any(head.is_visible() for head in hidden.all())
    tab.get_by_label("All columns").first.check()
    assert all(head.is_visible() for head in hidden.all())
    assert tab.evaluate(TOO_WIDE) == ["Every measured configuration of ResNet50 on box, fastest first"]
