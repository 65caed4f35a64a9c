"""Folds the code under a heading "Drawing": a reader opens it when curious."""

from __future__ import annotations

from docutils import nodes
from sphinx.transforms import SphinxTransform

HEADING = "Drawing"
OPEN = '<details class="fold"><summary>Show the function</summary>'


class FoldDrawing(SphinxTransform):
    """Wrap each code block of a section headed "Drawing" in ``<details>``.

    Plain HTML, so that it works without script and opens for printing.
    """

    default_priority = 400

    def apply(self, **kwargs) -> None:
        """Put the opening and closing tags around the code."""
        for section in self.document.findall(nodes.section):
            if section[0].astext() != HEADING:
                continue
            for code in list(section.findall(nodes.literal_block)):
                parent = code.parent
                at = parent.index(code)
                parent.insert(at + 1, nodes.raw("", "</details>", format="html"))
                parent.insert(at, nodes.raw("", OPEN, format="html"))


def setup(app) -> dict:
    """Register the transform."""
    app.add_transform(FoldDrawing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
