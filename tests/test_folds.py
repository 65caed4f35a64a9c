"""The fold around the drawing function."""

from __future__ import annotations

import folds
import pytest
from docutils.core import publish_parts
from docutils.readers.standalone import Reader

TEXT = """
Title
=====

{heading}
-------

Words.

.. code-block:: python

    def ribbon(): ...

After
-----

.. code-block:: python

    other()
"""


class FoldingReader(Reader):
    """The reader of docutils with the transform of the site."""

    def get_transforms(self):
        """Add the transform."""
        return [*super().get_transforms(), folds.FoldDrawing]


@pytest.fixture
def render():
    """Turn a text into HTML."""

    def call(heading: str) -> str:
        text = TEXT.format(heading=heading)
        return publish_parts(text, reader=FoldingReader(), writer="html5")["html_body"]

    return call


def test_only_the_code_under_drawing_is_folded(render):
    html = render("Drawing")
    opened, closed = html.index("<details"), html.index("</details>")
    assert opened < html.index("ribbon") < closed < html.index("other")
    assert html.count("<details") == html.count("</details>") == 1
    assert html.index("Words.") < opened


def test_another_heading_is_left_alone(render):
    assert "<details" not in render("Drawers")
