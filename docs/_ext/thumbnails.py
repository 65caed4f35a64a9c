"""Gives each card that leads to a tutorial the first figure of that tutorial."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from figures import dark_file, pair
from page_run import pages
from pageparts import Page
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]


def first_figures(root: Path) -> dict[str, Path]:
    """The first figure of each tutorial that drew one, by the label of the page."""
    found = {}
    for script in pages(root):
        folder = root / "docs" / "tutorials" / script.parent.name / "images"
        figure = folder / f"sphx_glr_{script.stem}_001.svg"
        if figure.exists() and dark_file(figure).exists():
            found[Page(script).label] = figure
    return found


def add(app: Sphinx, doctree: nodes.document) -> None:
    """Put the figures into the cards of a page, before its images are collected."""
    if not re.fullmatch(r"tutorials/[\w-]+/index", app.env.docname):
        return  # the cards of a tutorial say what it needs, and lead nowhere
    figures = first_figures(ROOT)
    for card in list(doctree.findall(nodes.container)):
        if "sd-card" not in card["classes"]:
            continue
        targets = [link["reftarget"] for link in card.findall(pending_xref)]
        for figure in filter(None, map(figures.get, targets)):
            # Without alt: the card says where it leads.
            box = pair(figure, figure.relative_to(app.srcdir), alt="")
            box["classes"].append("card-figure")
            card.insert(0, box)
            break


def setup(app: Sphinx) -> dict:
    """Run when a page was read, ahead of what looks for its images."""
    app.connect("doctree-read", add, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
