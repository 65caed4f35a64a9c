"""The built site in a real browser: over http and from the disk."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from conftest import SITE
from playwright.sync_api import Page, expect

PAGES = sorted(
    path.relative_to(SITE).as_posix()
    for path in SITE.rglob("*.html")
    # That of 404 knows where it will be published; test_metadata.py opens it there.
    if "_static" not in path.parts and path != SITE / "404.html"
)
COLLECT = "tutorials/assemble/10_collect.html"


@pytest.fixture(params=["http", "file"])
def start(request, served, site) -> str:
    """The two ways to read the site."""
    return served if request.param == "http" else site.as_uri()


def test_the_list_of_pages_is_not_empty():
    assert {"index.html", "search.html", COLLECT} <= set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_page_opens_without_complaint(tab: Page, start, name):
    tab.goto(f"{start}/{name}")
    expect(tab.locator("h1").first).to_be_visible()
    tab.mouse.wheel(0, 100_000)
    tab.wait_for_load_state("networkidle")


@pytest.mark.parametrize("width", [320, 360, 768])
@pytest.mark.parametrize("name", PAGES)
def test_page_does_not_scroll_sideways(tab: Page, served, name, width):
    tab.set_viewport_size({"width": width, "height": 800})
    tab.goto(f"{served}/{name}")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_navigation_leads_from_home_to_the_tutorial_and_back(tab: Page, start):
    def follow(card: str) -> None:
        tab.locator(".bd-article .sd-card", has_text=card).click()
        expect(tab.locator("h1")).to_contain_text(card)

    tab.goto(f"{start}/index.html")
    tab.locator("header").get_by_role("link", name="Tutorials").first.click()
    expect(tab.locator("h1")).to_contain_text("Tutorials")
    follow("Assemble trajectories")
    follow("Collect your first batch")
    tab.locator(".bd-sidebar-primary").get_by_role("link", name="Assemble").click()
    expect(tab.locator("h1")).to_contain_text("Assemble trajectories")
    tab.locator(".navbar-brand").first.click()
    expect(tab.locator("h1")).to_contain_text("TorchRL Trajectories")


def test_keyboard_leads_from_page_to_page(tab: Page, served):
    tab.goto(f"{served}/{COLLECT}")
    following = tab.locator(".prev-next-footer a.right-next")
    title = following.locator(".prev-next-title").inner_text()
    following.focus()
    tab.keyboard.press("Enter")
    expect(tab.locator("h1")).to_contain_text(title)
    assert title != "Collect your first batch"


@pytest.mark.parametrize("query", ["traj_ids", "SyncDataCollector", "batch edge"])
def test_search_finds_the_page(tab: Page, start, query):
    tab.goto(f"{start}/index.html")
    tab.keyboard.press("Control+k")
    field = tab.locator("dialog input[type=search], .search__overlay input").last
    field.fill(query)
    field.press("Enter")
    results = tab.locator("#search-results li a", has_text="Collect your first batch")
    expect(results.first).to_be_visible()


def test_figure_follows_the_theme(tab: Page, start):
    tab.goto(f"{start}/{COLLECT}")
    light = tab.locator(".figure-pair img.only-light").first
    dark = tab.locator(".figure-pair img.only-dark").first
    for theme, shown, hidden in (("light", light, dark), ("dark", dark, light)):
        tab.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        shown.scroll_into_view_if_needed()
        expect(shown).to_be_visible()
        expect(hidden).to_be_hidden()
        tab.wait_for_function(
            "image => image.naturalWidth > 0", arg=shown.element_handle()
        )


def test_drawing_is_folded_and_opens(tab: Page, served):
    tab.goto(f"{served}/{COLLECT}")
    code = tab.locator("#drawing details pre")
    expect(code).to_be_hidden()
    tab.locator("#drawing summary").click()
    expect(code).to_be_visible()
    expect(code).to_contain_text("def ribbon")


def test_downloads_are_served(tab: Page, served):
    tab.goto(f"{served}/{COLLECT}")
    links = tab.locator("a.download")
    names = []
    for number in range(links.count()):
        address = links.nth(number).evaluate("link => link.href")
        answer = tab.request.get(address)
        assert answer.ok, address
        names.append(Path(urlsplit(address).path).name)
        if address.endswith(".ipynb"):
            assert json.loads(answer.text())["cells"]
    assert sorted(names) == ["10_collect.ipynb", "10_collect.py", "10_collect.zip"]


def test_images_have_an_alt_sentence_a_size_and_load_late(tab: Page, served):
    tab.goto(f"{served}/{COLLECT}")
    images = tab.locator(".figure-pair img")
    assert images.count() == 4
    for number in range(images.count()):
        image = images.nth(number)
        assert re.fullmatch(r"[A-Z].{20,}\.", image.get_attribute("alt"))
        assert int(image.get_attribute("width")) > 100
        assert int(image.get_attribute("height")) > 50
        assert image.get_attribute("loading") == "lazy"
