"""The site for readers with a keyboard, a screen reader, paper, or without script."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from test_site import COLLECT, PAGES

LIGHT_ON_PAPER = "rgb(255, 255, 255)"
MODES = [("light", 1400), ("dark", 1400), ("light", 360)]


@pytest.mark.parametrize(("scheme", "width"), MODES)
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(tab: Page, served, name, scheme, width):
    tab.set_viewport_size({"width": width, "height": 900})
    tab.emulate_media(color_scheme=scheme)
    tab.goto(f"{served}/{name}")
    expect(tab.locator("html")).to_have_attribute("data-theme", scheme)
    found = [
        f"{rule['id']}: {node['html']}"
        for rule in Axe().run(tab).response["violations"]
        for node in rule["nodes"]
    ]
    assert found == []


def focused(tab: Page, what: str):
    """What a script says of the element that has the focus."""
    return tab.evaluate(f"(e => {what})(document.activeElement)")


def test_the_keyboard_comes_to_the_text_first(tab: Page, served):
    tab.goto(f"{served}/{COLLECT}")
    tab.keyboard.press("Tab")
    link = tab.get_by_role("link", name="Skip to main content")
    expect(link).to_be_focused()
    expect(link).to_be_in_viewport()
    tab.keyboard.press("Enter")
    assert tab.url.endswith("#main-content")


def test_each_stop_of_the_keyboard_can_be_seen(tab: Page, served):
    tab.goto(f"{served}/{COLLECT}")
    shown = "getComputedStyle(e).outlineStyle + getComputedStyle(e).boxShadow"
    stops = []
    for _ in range(30):
        tab.keyboard.press("Tab")
        name = focused(tab, "e.tagName + ' ' + (e.ariaLabel || e.innerText)")
        assert focused(tab, shown) != "nonenone", name
        stops.append(name)
    assert len(set(stops)) > 20


def test_search_opens_and_closes_with_the_keyboard(tab: Page, served):
    tab.goto(f"{served}/{COLLECT}")
    button = tab.locator("header .search-button__button:visible")
    button.focus()
    tab.keyboard.press("Enter")
    expect(tab.locator("#pst-search-dialog input")).to_be_focused()
    tab.keyboard.press("Escape")
    expect(tab.locator("#pst-search-dialog")).to_be_hidden()
    expect(button).to_be_focused()


def test_the_colour_mode_is_chosen_with_the_keyboard_and_kept(tab: Page, served):
    tab.emulate_media(color_scheme="light")
    tab.goto(f"{served}/{COLLECT}")
    group = tab.locator("header").get_by_role("group", name="Colour mode")
    expect(group.get_by_role("button", pressed=True)).to_have_accessible_name(
        "As the system"
    )
    dark = group.get_by_role("button", name="Dark")
    dark.focus()
    tab.keyboard.press("Enter")
    expect(tab.locator("html")).to_have_attribute("data-theme", "dark")
    expect(dark).to_have_attribute("aria-pressed", "true")
    tab.goto(f"{served}/index.html")
    expect(tab.locator("html")).to_have_attribute("data-theme", "dark")


def test_folds_open_with_the_keyboard(tab: Page, served):
    tab.goto(f"{served}/{COLLECT}")
    for fold in tab.locator(".bd-article details").all():
        summary = fold.locator("summary").first
        before = fold.evaluate("e => e.open")
        summary.focus()
        tab.keyboard.press("Enter")
        assert fold.evaluate("e => e.open") != before


def test_wide_code_is_reached_by_keyboard_on_a_phone(tab: Page, served):
    tab.set_viewport_size({"width": 320, "height": 800})
    tab.goto(f"{served}/{COLLECT}")
    wide = [
        block
        for block in tab.locator(".bd-article pre:visible").all()
        if block.evaluate("e => e.scrollWidth > e.clientWidth")
    ]
    assert wide
    assert all(block.get_attribute("tabindex") == "0" for block in wide)


@pytest.mark.parametrize("name", ["index.html", COLLECT])
def test_paper_is_light_and_cuts_no_code(tab: Page, served, name):
    tab.emulate_media(color_scheme="dark")
    tab.goto(f"{served}/{name}")
    tab.emulate_media(media="print", color_scheme="dark")
    tab.set_viewport_size({"width": 700, "height": 1000})
    colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == LIGHT_ON_PAPER
    for block in tab.locator(".bd-article pre:visible").all():
        assert block.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    for image in tab.locator(".only-dark").all():
        expect(image).to_be_hidden()
    expect(tab.locator("#pst-header")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 360])
def test_a_page_is_read_without_script(chromium, served, scheme, width):
    context = chromium.new_context(
        java_script_enabled=False,
        color_scheme=scheme,
        viewport={"width": width, "height": 900},
    )
    tab = context.new_page()
    tab.goto(f"{served}/{COLLECT}")
    expect(tab.locator("h1")).to_be_visible()
    assert tab.locator("button:visible").count() == 0
    lights, darks = tab.locator("img.only-light"), tab.locator("img.only-dark")
    shown, hidden = (lights, darks) if scheme == "light" else (darks, lights)
    expect(shown.first).to_be_visible()
    expect(hidden.first).to_be_hidden()
    tab.locator("#drawing summary").click()
    expect(tab.locator("#drawing pre")).to_be_visible()
    context.close()
