"""Gives each card that leads to a tutorial the first figure of that tutorial."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from figures import PairImage, dark_file, size
from page_run import pages
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]

_LABEL = re.compile(r"^\.\. _(tut-[\w-]+):$", re.MULTILINE)


def first_figures(root: Path) -> dict[str, Path]:
    """The first figure of each tutorial that drew one, by the label of the page."""
    found = {}
    for script in pages(root):
        label = _LABEL.search(script.read_text(encoding="utf-8"))
        folder = root / "docs" / "tutorials" / script.parent.name / "images"
        figure = folder / f"sphx_glr_{script.stem}_001.svg"
        if label and figure.exists() and dark_file(figure).exists():
            found[label[1]] = figure
    return found


def thumbnail(figure: Path, source: Path) -> nodes.container:
    """A figure in light and dark, without alt: the card says where it leads."""
    box = nodes.container(classes=["figure-pair", "card-figure"])
    px = size(figure.read_text(encoding="utf-8"))
    for file, mode in ((figure, "light"), (dark_file(figure), "dark")):
        uri = f"/{file.relative_to(source).as_posix()}"
        box += PairImage(uri=uri, alt="", classes=[f"only-{mode}"], px=px)
    return box


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
            card.insert(0, thumbnail(figure, Path(app.srcdir)))
            break


def setup(app: Sphinx) -> dict:
    """Run when a page was read, ahead of what looks for its images."""
    app.connect("doctree-read", add, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
