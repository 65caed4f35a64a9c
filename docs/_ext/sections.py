"""Writes what the search page searches: each section of the site with its text.

Sphinx's own index knows pages: it cannot say in which section a word stands, and it
fetches each page that it lists to show some lines of it, which a browser refuses from
the disk. So when the pages are written, this extension reads them, and writes one
script with the text of every section. ``search.js`` gives it to MiniSearch, of which
``minisearch.js`` is version 7.2.0 as published (``dist/umd/index.js``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from sphinx.application import Sphinx

SCRIPT = "_static/sections.js"
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
#: What is on a page, but not of its text.
NO_TEXT = (
    *("script", "style", "button", ".headerlink", ".prev-next-footer"),
    *(".sphx-glr-footer", ".sphx-glr-download-link-note", ".sphx-glr-signature"),
)
REPEATED = {"drawing"}  # the same function on every page that draws a ribbon

_ARTICLE = re.compile(r'<article\b[^>]*\bclass="bd-article".*</article>', re.DOTALL)


@dataclass(frozen=True)
class Section:
    """A heading, or a term of the glossary, with the text that belongs to it.

    The anchor of a title is empty: its link leads to the top of the page.
    """

    anchor: str
    heading: str
    text: str


def sections(html: str) -> tuple[str, list[Section]]:
    """The title of a page and its sections, in their order.

    Parameters
    ----------
    html : str
        A page as Sphinx wrote it. One without an article or a heading has none.
    """
    article = _ARTICLE.search(html)  # the rest is navigation, and takes as long to read
    article = BeautifulSoup(article[0] if article else "", "html.parser")
    title = article.find("h1")
    if title is None:
        return "", []
    for unwanted in article.select(", ".join(NO_TEXT)):
        unwanted.extract()
    name, found = plain(title), []
    # From the last to the first: what is inside a section is taken out before.
    for section in reversed(article.select("section[id]")):
        section.extract()
        if section["id"] not in REPEATED:
            found[:0] = parts(section, "" if section.find("h1") else section["id"])
    return name, found


def parts(section: Tag, anchor: str) -> Iterator[Section]:
    """A section by itself, then the terms that it explains."""
    terms = []
    for name in section.select("dl.glossary > dt[id]"):
        meaning = name.find_next_sibling("dd")
        terms.append(Section(name["id"], plain(name), plain(meaning)))
    for glossary in section.select("dl.glossary"):
        glossary.extract()
    heading = section.find(HEADINGS, recursive=False)
    if heading is not None:
        heading.extract()
        yield Section(anchor, plain(heading), plain(section))
    yield from terms


def plain(tag: Tag | None) -> str:
    """The text of an element in one line."""
    return " ".join(tag.get_text().split()) if tag else ""


def script(pages: dict[str, str]) -> str:
    """The script that names all sections, as ``SECTIONS``.

    Parameters
    ----------
    pages : dict of str
        Address and HTML of each page.
    """
    rows = []
    for address, html in sorted(pages.items()):
        title, found = sections(html)
        if found:
            each = [[part.anchor, part.heading, part.text] for part in found]
            rows.append([address, title, each])
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return f"const SECTIONS = {text};\n"


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write the script of a finished HTML build."""
    if exception is not None or app.builder.name != "html":
        return
    root = Path(app.outdir)
    pages = {
        f"{name}.html": (root / f"{name}.html").read_text(encoding="utf-8")
        for name in sorted(app.env.found_docs)
    }
    (root / SCRIPT).write_text(script(pages), encoding="utf-8")


def setup(app: Sphinx) -> dict:
    """Run when the pages are written, before `lean` asks for their scripts.

    And before Sphinx-Gallery, which ends a build with a failed page there and then.
    """
    app.connect("build-finished", write, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
