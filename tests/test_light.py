"""What a first visit costs: bytes, requests, and what has to be there to paint."""

from __future__ import annotations

import gzip
import re
from urllib.parse import urlsplit

import pytest
from audit import KINDS
from playwright.sync_api import Page

BYTES = 120 * 1024  # gzip, without figures that load late
REQUESTS = 10


@pytest.mark.parametrize("name", KINDS.values(), ids=KINDS)
def test_a_first_visit_is_small(tab: Page, served, site, name):
    asked = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(f"{served}/{name}")
    tab.wait_for_load_state("networkidle")
    files = {urlsplit(address).path.lstrip("/") for address in asked}
    files = {file for file in files if not file.startswith("_images/")}
    assert len(files) <= REQUESTS, sorted(files)
    weight = sum(len(gzip.compress((site / file).read_bytes())) for file in files)
    assert weight <= BYTES


def test_one_stylesheet_is_all_that_holds_up_the_first_paint(site):
    for path in site.rglob("*.html"):
        if "_static" in path.parts or path.name == "search.html":
            continue
        html = path.read_text()
        assert html.count('rel="stylesheet"') == 1, path
        for script in re.findall(r"<script[^>]*\bsrc=[^>]*>", html):
            assert "defer" in script, (path, script)


def test_no_page_but_the_search_page_asks_for_what_is_searched(site):
    for file, wanted in (("sections", ["search.html"]), ("searchindex", [])):
        asking = [
            path.name
            for path in site.rglob("*.html")
            if re.search(rf'src="[^"]*{file}\.js', path.read_text())
        ]
        assert asking == wanted
