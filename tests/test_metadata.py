"""What search engines and link previews read, with and without a public address."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import address
import metadata
import pytest
import sites
from conftest import SITE
from playwright.sync_api import expect
from sphinx.errors import ConfigError

ADDRESS = "https://example.org/trajectories/"
INDEX = """
.. note:: Not this.

Title & ``code``
================

.. container:: box

   Nor this.

One *promise* & <kept>.

.. figure-pair:: /images/page_001.svg
   :alt: It goes "up".

.. toctree::

   deep/index
   deep/told
"""
SVG = '<svg width="72pt" height="36pt" xmlns="http://www.w3.org/2000/svg"></svg>'


class Head(HTMLParser):
    """Collects the meta elements, links and base of a page, and its title."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.meta: dict[str, list[str]] = {}
        self.links: dict[str, list[str]] = {}
        self.base: list[str] = []
        self.title, self.in_title = "", False
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        """Note what the head says."""
        attrs = dict(attrs)
        if tag == "meta" and (name := attrs.get("name") or attrs.get("property")):
            self.meta.setdefault(name, []).append(attrs["content"])
        if tag == "link":
            self.links.setdefault(attrs["rel"], []).append(attrs["href"])
        if tag == "base":
            self.base.append(attrs["href"])
        self.in_title = tag == "title" and not self.title

    def handle_data(self, data) -> None:
        """Note the title."""
        if self.in_title:
            self.title += data
            self.in_title = False


@pytest.fixture
def project(tmp_path):
    """Build a small site with an address or without; returns the heads of its pages."""
    source, out = tmp_path / "source", tmp_path / "out"
    for folder in ("deep", "images", "templates"):
        (source / folder).mkdir(parents=True)
    (source / "index.rst").write_text(INDEX)
    (source / "deep" / "index.rst").write_text("Deep\n====\n\nFirst.\n\nSecond.\n")
    (source / "deep" / "told.rst").write_text(
        ".. meta::\n   :description: As told.\n\nTold\n====\n\nNot this.\n"
    )
    for name in ("page_001.svg", "page_001_dark.svg"):
        (source / "images" / name).write_text(SVG)
    (source / "images" / "page_001_card.png").write_bytes(b"PNG")
    (source / "templates" / "404.html").write_text(
        '{% extends "page.html" %}{% block body %}<a href="#x">x</a>{% endblock %}'
    )

    def build(url: str) -> dict[str, Head]:
        warnings = sites.build(
            source,
            out,
            extensions=["figures", "metadata"],
            exclude_patterns=["templates"],
            html_additional_pages={"404": "404.html"},
            html_baseurl=url,
            project="A site",
            templates_path=["templates"],
        )
        assert warnings == ""
        pages = out.rglob("*.html")
        return {p.relative_to(out).as_posix(): Head(p.read_text()) for p in pages}

    build.out = out
    return build


def test_without_an_address_pages_are_described_and_nothing_else(project):
    heads = project("")
    home = heads["index.html"]
    assert home.meta["description"] == ["One promise & <kept>."]
    assert home.meta["og:description"] == ["One promise & <kept>."]
    assert home.meta["og:title"] == ["Title & code"]
    assert home.meta["og:type"] == ["website"]
    assert heads["deep/index.html"].meta["og:type"] == ["article"]
    assert heads["deep/index.html"].meta["description"] == ["First."]
    for head in heads.values():
        assert len(head.meta["viewport"]) == 1
        assert "canonical" not in head.links
        assert not {"og:url", "og:image", "twitter:card"} & head.meta.keys()
        assert head.base == []
    assert not (project.out / "sitemap.xml").exists()
    assert not list(project.out.rglob("*_card.png"))


def test_with_an_address_pages_name_it(project):
    heads = project(ADDRESS.rstrip("/"))
    for name, url in (("index", ""), ("deep/index", "deep/"), ("deep/told",) * 2):
        head = heads[f"{name}.html"]
        url = ADDRESS + (url + ".html" if url == "deep/told" else url)
        assert head.links["canonical"] == [url]
        assert head.meta["og:url"] == [url]
        # A page without a figure shows that of the home page.
        assert head.meta["og:image"] == [f"{ADDRESS}_images/page_001_card.png"]
        assert head.meta["og:image:alt"] == ['It goes "up".']
        assert head.meta["twitter:card"] == ["summary_large_image"]
    assert (project.out / "_images" / "page_001_card.png").read_bytes() == b"PNG"
    tree = ET.fromstring((project.out / "sitemap.xml").read_bytes())
    assert [loc.text for loc in tree.findall(".//{*}loc")] == [
        f"{ADDRESS}deep/",
        f"{ADDRESS}deep/told.html",
        ADDRESS,
    ]


def test_a_description_that_a_page_gives_is_taken(project):
    told = project("")["deep/told.html"]
    assert told.meta["description"] == ["As told."]
    assert told.meta["og:description"] == ["As told."]


@pytest.mark.parametrize("url", ["", ADDRESS])
def test_search_and_404_are_hidden(project, url):
    heads = project(url)
    for name in ("search.html", "404.html"):
        assert heads[name].meta["robots"][0] == "noindex"
        assert "canonical" not in heads[name].links
    assert "robots" not in heads["index.html"].meta
    assert heads["genindex.html"].meta["description"] == [metadata.MADE["genindex"]]


def test_the_page_for_404_works_at_any_address(project):
    assert project(ADDRESS)["404.html"].base == ["/trajectories/"]
    assert '<a href="404.html#x">' in (project.out / "404.html").read_text()
    project("")
    assert '<a href="#x">' in (project.out / "404.html").read_text()


def test_nothing_is_left_of_an_earlier_address(project):
    project(ADDRESS)
    project("")
    assert not (project.out / "sitemap.xml").exists()
    assert not list(project.out.rglob("*_card.png"))


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("", ""),
        ("https://example.org", "https://example.org/"),
        ("http://127.0.0.1:8000/a/b/", "http://127.0.0.1:8000/a/b/"),
    ],
)
def test_an_address_ends_with_a_slash(given, taken):
    assert address.checked(given) == taken


@pytest.mark.parametrize(
    "given",
    [
        *("example.org", "/docs/", "ftp://example.org/", "https://", "https://a/?b=c"),
        *('https://a.org/"', "https://a.org/ b", "https://a.org/#c"),
    ],
)
def test_what_is_no_address_is_refused_in_one_line(given):
    with pytest.raises(ValueError) as caught:
        address.checked(given)
    assert "\n" not in str(caught.value)
    assert f"SITE_URL: '{given}'" in str(caught.value)


def test_sphinx_refuses_it_in_one_line(project):
    with pytest.raises(ConfigError, match=r"^SITE_URL: 'example.org' is not like \S+$"):
        project("example.org")


@pytest.mark.parametrize(
    ("text", "length", "short"),
    [
        ("All of  it.\nStays", 20, "All of it. Stays"),
        ("One. Two. Three is too long.", 12, "One. Two."),
        ("Version 0.14 is long, really.", 24, "Version 0.14 is long…"),
        ("What? No.", 6, "What?"),
    ],
)
def test_a_text_is_cut_between_sentences_or_words(text, length, short):
    assert metadata.shortened(text, length) == short
    assert len(short) <= length


# -- The site as it was built ----------------------------------------------------------


@pytest.fixture(scope="module")
def heads() -> dict[str, Head]:
    """The heads of all pages of the site."""
    return {
        path.relative_to(SITE).as_posix(): Head(path.read_text(encoding="utf-8"))
        for path in sorted(SITE.rglob("*.html"))
        if "_static" not in path.relative_to(SITE).parts
    }


def shown(heads: dict[str, Head]) -> dict[str, Head]:
    """Those that somebody may search for."""
    return {k: head for k, head in heads.items() if "robots" not in head.meta}


def test_every_page_says_the_viewport_once(heads):
    assert {name for name, h in heads.items() if len(h.meta["viewport"]) != 1} == set()


def test_only_search_and_404_are_hidden_on_the_site(heads):
    assert heads.keys() - shown(heads).keys() == {"search.html", "404.html"}


def test_every_page_has_a_title_and_a_description_of_its_own(heads):
    for find in (lambda head: head.title, lambda head: head.meta["description"][0]):
        found = {
            name: " ".join(find(head).split()) for name, head in shown(heads).items()
        }
        assert len(set(found.values())) == len(found)
        assert {k: v for k, v in found.items() if not 25 <= len(v) <= 160} == {}
    assert all(len(head.meta["description"]) == 1 for head in shown(heads).values())


def test_the_site_names_its_address_everywhere_or_nowhere(heads):
    home = heads["index.html"].links.get("canonical", [""])[0]
    sitemap = SITE / "sitemap.xml"
    assert sitemap.exists() == bool(home)
    listed = set()
    if home:
        tree = ET.fromstring(sitemap.read_bytes())
        listed = {loc.text for loc in tree.findall(".//{*}loc")}
    for name, head in shown(heads).items():
        assert ("canonical" in head.links) == bool(home), name
        assert ("og:image" in head.meta) == bool(home and "og:title" in head.meta), name
        for image in head.meta.get("og:image", []):
            assert (SITE / image.removeprefix(home)).read_bytes().startswith(b"\x89PNG")
        if home and name != "genindex.html":
            assert head.links["canonical"][0] in listed


def test_links_of_pages_can_be_followed_by_a_crawler(site):
    for path in site.rglob("*.html"):
        if "_static" not in path.relative_to(site).parts:
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"<a\b(?![^>]*\bhref=)", text), path
            assert "javascript:" not in text, path


@pytest.fixture
def host(site: Path, heads):
    """Address of a host that shows the page for 404, with the site in its folder."""
    folder = (heads["404.html"].base or ["/"])[0]

    class Handler(sites.QuietHandler):
        def translate_path(self, path: str) -> str:
            inside = urlsplit(path).path.startswith(folder)
            return super().translate_path(path[len(folder) - 1 :] if inside else "/-")

        def send_error(self, code, *args) -> None:
            page = (site / "404.html").read_bytes()
            self.send_response(code)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

    with sites.served(site, Handler) as address:
        yield f"{address}{folder}"


def test_a_lost_reader_finds_back(chromium, host, heads):
    # Without a known address the page can only stand at the top of the site.
    lost = "no/such/page.html" if heads["404.html"].base else "nowhere.html"
    page = chromium.new_page()
    failed = []
    page.on("requestfailed", lambda request: failed.append(request.url))
    answer = page.goto(urljoin(host, lost))
    assert answer.status == 404
    expect(page.locator("h1")).to_have_text("There is no such page")
    page.get_by_role("link", name="Skip to main content").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("There is no such page")
    field = page.locator("main input[type=search]")
    field.fill("traj_ids")
    field.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("sections")
    assert failed == []
    page.close()
