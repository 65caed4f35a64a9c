"""The notebooks and zips that ``docs/_ext/downloads.py`` writes, piece by piece.

Pandoc converts all constructs at once, as the cells of one page. A small project is
built twice, in unlike surroundings, for all that concerns files.
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import downloads
import nbformat
import pytest
from sphinx.errors import ExtensionError

EXT = Path(downloads.__file__).parent

TARGETS = {
    "tut-count": ("Count", "gallery/count.html#tut-count"),
    "/gallery/split": ("Split them", "gallery/split.html"),
    "/concepts": ("Concepts", "concepts.html"),
}
CONSTRUCTS = {  # name: (reStructuredText, Markdown)
    "title": (
        "Count ``x``\n===========\n\n.. _tut-count:\n\nYou will.",
        "# Count `x`\n\nYou will.",
    ),
    "section in a later cell": ("Why?\n----\n\nSo.", "## Why?\n\nSo."),
    "label above a heading": (".. _why-not:\n\nWhy not?\n--------", "## Why not?"),
    "label at the end": ("Last.\n\n.. _the-end:", "Last."),
    "cards": (
        """\
.. grid:: 1 1 2 2
    :gutter: 3

    .. grid-item-card:: You will
        :columns: 6
        :class-title: big

        * count
        * see ``x``

    .. grid-item-card:: You need

        * PyTorch; no earlier page""",
        "**You will**\n\n- count\n- see `x`\n\n"
        "**You need**\n\n- PyTorch; no earlier page",
    ),
    "figure that only the site can show": (
        """\
First.

.. alive:: recut
    :steps: torch.cat([batch, second])
    :start: 3
    :cart:
    :alt: A ribbon.

    Move ``it``.

Then.""",
        "First.\n\nThen.",
    ),
    "results that only the site can show": (
        "First.\n\n.. learning-figure:: reinforce\n\n    Each point.\n\nThen.",
        "First.\n\nThen.",
    ),
    "card without a title": (
        ".. grid:: 2\n\n    .. grid-item-card::\n        :columns: 6\n\n        Text.",
        "Text.",
    ),
    "prediction": (
        """\
.. admonition:: Predict
    :class: predict

    How many?

    .. dropdown:: Then look
        :open:

        Five. ``bincount`` does it.

        .. code-block:: python

            a = "--"  # it's ...

            b""",
        """\
> **Predict**
>
> How many?
>
> <details><summary>Then look</summary>
>
> Five. `bincount` does it.
>
> ```python
> a = "--"  # it's ...
>
> b
> ```
>
> </details>""",
    ),
    "solution": (
        ".. dropdown:: 1. Use ``a<b`` & *see*\n\n    One.\n\n"
        "    .. dropdown::\n\n        Two.\n\nAfter.",
        "<details><summary>1. Use <code>a&lt;b</code> &amp; see</summary>\n\nOne.\n\n"
        "<details><summary>Details</summary>\n\nTwo.\n\n</details>\n\n</details>\n\n"
        "After.",
    ),
    "note in one line": (
        ".. note:: First line\n    goes on.",
        "> **Note**\n>\n> First line goes on.",
    ),
    "warning, tip": (
        ".. warning::\n    :class: x\n\n    Hot.\n\n.. tip::\n\n    Cool.",
        "> **Warning**\n>\n> Hot.\n\n> **Tip**\n>\n> Cool.",
    ),
    "see also": (".. seealso:: :mod:`abc`", "> **See also**\n>\n> `abc`"),
    "tabs": (
        ".. tab-set::\n\n    .. tab-item:: A\n        :sync: a\n\n        One.",
        "**A**\n\nOne.",
    ),
    "settings and comments": (
        ".. rst-class:: wide\n\n.. contents:: On this page\n    :local:\n\n"
        ".. index:: frame\n\n.. A comment\n   of two lines\n\nText.",
        "Text.",
    ),
    "code roles": (
        ":func:`torch.histc` :class:`~a.b.C` :meth:`.C.f` :mod:`m` :attr:`!a` "
        ":exc:`E` :data:`d` :obj:`its text <o>` :py:func:`~a.f` ``plain``",
        "`torch.histc` `C` `.C.f` `m` `a` `E` `d` `its text` `f` `plain`",
    ),
    "text roles": (
        ":term:`slice` :term:`pieces <slice>` :abbr:`RB (replay buffer)` "
        ":download:`the file <a.csv>` x\\ :sup:`2`",
        "slice pieces RB (replay buffer) the file x<sup>2</sup>",
    ),
    "ref and doc": (
        ":ref:`tut-count`, :ref:`this page <Tut-Count>`, :doc:`split`, "
        ":doc:`/concepts`, :doc:`ideas <../concepts>`, :ref:`far away <python:x>`",
        "*Count*, *this page*, *Split them*, *Concepts*, *ideas*, *far away*",
    ),
    "math": (
        "With :math:`a_{i=0} < 1`:\n\n.. math::\n    :label: eq\n\n    x^2",
        "With $a_{i=0} < 1$:\n\n$$x^2$$",
    ),
    "images": (
        ".. image:: /a/b.png\n    :alt: A finding\n    :width: 20%\n\n"
        ".. image:: c.png\n\n.. image:: https://example.org/d.png\n    :alt: D",
        "*A finding*\n\n*c.png*\n\n![D](https://example.org/d.png)",
    ),
    "figure": (
        ".. figure:: b.png\n    :alt: A finding\n\n    Caption.\n\n    Legend.",
        "*A finding*\n\nCaption.\n\nLegend.",
    ),
    "list table": (
        ".. list-table::\n    :header-rows: 1\n    :widths: 1 9\n\n    * - a\n"
        "      - :func:`b`\n    * - 1\n      - 2",
        "| a   | `b` |\n|-----|-----|\n| 1   | 2   |",
    ),
    "csv table": (
        ".. csv-table::\n    :header: a, b\n\n    1, 2",
        "| a   | b   |\n|-----|-----|\n| 1   | 2   |",
    ),
    "grid table": (
        "+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+---+---+",
        "| a   | b   |\n|-----|-----|\n| 1   | 2   |",
    ),
    "grid table with a list": (
        "+---+-----+\n| a | b   |\n+===+=====+\n| 1 | * 2 |\n+---+-----+",
        "<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody>\n"
        "<tr>\n<td>1</td>\n<td><ul>\n<li>2</li>\n</ul></td>\n</tr>\n</tbody>\n</table>",
    ),
    "code blocks": (
        ".. code-block:: none\n    :caption: c\n\n    a -- b\n\n"
        ".. code-block:: bash\n\n    ls\n\nSo::\n\n    x ``` y",
        "```text\na -- b\n```\n\n```bash\nls\n```\n\nSo:\n\n```text\nx ``` y\n```",
    ),
    "reStructuredText as code": (
        ".. code-block:: rst\n\n    .. dropdown:: Title\n    .. dropdown::\n"
        "    .. unheard:: of",
        "```rst\n.. dropdown:: Title\n.. dropdown::\n.. unheard:: of\n```",
    ),
    "footnotes": (
        "One [#a]_ and two [#b]_.\n\n.. [#a] First ``x``.\n.. [#b] Second.\n\nEnd.",
        "One<sup>1</sup> and two<sup>2</sup>.\n\nEnd.\n\n"
        "<sup>1</sup> First `x`.\n\n<sup>2</sup> Second.",
    ),
    "definitions": (
        "frame\n    One step.\n\n    More.\nslice\n    Many.",
        "**frame**\n\n> One step.\n>\n> More.\n\n**slice**\n\n> Many.",
    ),
    "line block": ("| one\n| two", "one\\\ntwo"),
    "quotes, dashes and dots": (
        "It's \"so\" -- or ... not ---: 'x_y' and add\\_.",
        "It's \"so\" -- or ... not ---: 'x_y' and add\\_.",
    ),
    "links": (
        "`Far <https://example.org/a_>`_, name_, `Why?`_, https://example.org\n\n"
        ".. _name: https://example.org/n",
        "[Far](https://example.org/a_), [name](https://example.org/n), Why?, "
        "<https://example.org>",
    ),
    "substitutions": (
        "|site| and |local|.\n\n.. |local| replace:: here",
        "The site and here.",
    ),
    "default role and targets": ("`this` and _`that`", "*this* and that"),
}
AROUND = (
    ".. role:: raw-python(code)\n    :language: python",
    ".. |site| replace:: The site",
)


def convert(texts, baseurl="", folder=Path("docs")):
    """Convert each text to Markdown."""
    page = folder / "gallery" / "count.py"
    rewriter = downloads.Rewriter(page, "gallery/count", TARGETS, baseurl)
    return [markdown for markdown, _ in rewriter.convert(texts, AROUND)]


@pytest.fixture(scope="module")
def converted():
    """Convert all constructs, as the cells of one page."""
    markdown = convert([rst for rst, _ in CONSTRUCTS.values()])
    return dict(zip(CONSTRUCTS, markdown, strict=True))


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_construct(converted, name):
    assert converted[name] == CONSTRUCTS[name][1]
    assert downloads.leftovers(converted[name]) == []


def test_links_lead_to_the_site_where_its_address_is_known():
    rst, _ = CONSTRUCTS["ref and doc"]
    assert convert([rst], "https://example.org/site/") == [
        "[Count](https://example.org/site/gallery/count.html#tut-count), "
        "[this page](https://example.org/site/gallery/count.html#tut-count), "
        "[Split them](https://example.org/site/gallery/split.html), "
        "[Concepts](https://example.org/site/concepts.html), "
        "[ideas](https://example.org/site/concepts.html), *far away*"
    ]


@pytest.mark.parametrize(
    ("source", "line", "name"),
    [
        ('"""\nT\n=\n\n.. plot::\n\n    x\n"""\n', 5, "plot"),
        (
            '"""\nT\n=\n"""\n\n# %%\n# A.\n#\n# .. note::\n#\n#     .. tags:: a',
            11,
            "tags",
        ),
        ('"""\nT\n=\n\n.. raw:: html\n\n    <b>x</b>\n"""\n', 5, "raw"),
        ('"""\nT\n=\n\n.. only:: html\n\n    x\n"""\n', 5, "only"),
    ],
)
def test_unknown_directive_fails_with_its_line(tmp_path, source, line, name):
    page = tmp_path / "10_page.py"
    page.write_text(source)
    with pytest.raises(ExtensionError) as error:
        downloads.Rewriter(page, "10_page", {}, "").cells(("", ""))
    assert str(error.value) == (
        f"10_page.py:{line}: directive '{name}' has no notebook form; "
        "add one to docs/_ext/downloads.py"
    )


@pytest.mark.parametrize("rst", ["|unheard|", "unheard_", ".. include:: unheard.txt"])
def test_text_that_pandoc_would_lose_fails(rst):
    with pytest.raises(ExtensionError, match=r"^count\.py: .*unheard[^\n]*$"):
        convert([rst])


def test_targets_take_the_heading_below_the_label_or_the_title(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "p.rst").write_text(
        ".. _Top A:\n.. _`top: b`:\n\n.. rst-class:: x\n\n======\n``P`` 1\n======\n\n"
        ".. _inside:\n\nText.\n\n.. _sec:\n\nPart\n~~~~\n\n.. _url: https://e.org\n"
    )
    (tmp_path / "bare.rst").write_text("No title.\n")
    assert downloads.find_targets(tmp_path) == {
        "/a/p": ("P 1", "a/p.html"),
        "top a": ("P 1", "a/p.html#top-a"),
        "top: b": ("P 1", "a/p.html#top-b"),
        "inside": ("P 1", "a/p.html#inside"),
        "sec": ("Part", "a/p.html#sec"),
        "/bare": ("bare", "bare.html"),
    }


# Every word that a reader sees is a w with a number; all else is syntax.
PAGE = '''\
"""
w01 w02
=======

.. _tut-words:

w03 :func:`w04` :ref:`w05 <tut-words>`, w06's "w07" [#note]_.

.. [#note] w08 w09

.. grid:: 1 1 2 2

    .. grid-item-card:: w10 w11

        * w12
        * w13

    .. grid-item-card:: w14

        w15
"""

x = 1

# %%
# w16
# ---
#
# .. admonition:: w17
#     :class: predict
#
#     w18 :term:`w19 <slice>`
#
#     .. dropdown:: w20 ``w21``
#
#         w22
#
#         .. code-block:: python
#
#             w23 = "w24"

# sphinx_gallery_thumbnail_number = 1
x += 1

# %%
# Drawing
# -------

assert x == 2

# %%
# w25 :ref:`tut-other`

# sphinx_gallery_start_ignore
x = None
# sphinx_gallery_end_ignore

# %%
# w26
# ---
#
# .. figure:: /a.png
#     :alt: w27 w28
#
#     w29
#
# .. list-table::
#
#     * - w30
#       - w31
#
# .. note:: w32
#
# w33
#     w34
#
# .. seealso:: w35 :math:`w36` `w37 <https://example.org>`_ :abbr:`w38 (w39)`
#
# * w40
#
#   * w41

y = 1
'''
OTHER = '"""\n.. _tut-other:\n\nOther page\n==========\n\nText.\n"""\n\nz = 1\n'
CONF = f"""\
import sys
import pypandoc

sys.path.insert(0, {str(EXT)!r})
convert = pypandoc.convert_text


def logged(*args, **kwargs):
    with open("calls.txt", "a") as log:
        log.write(args[1] + "\\n")
    return convert(*args, **kwargs)


pypandoc.convert_text = logged
extensions = ["downloads", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["gallery"]
sphinx_gallery_conf = {{
    "examples_dirs": ["../tutorials"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": "10_words",
    "first_notebook_cell": "%pip install --quiet 'torch==2.14.1'",
    "image_scrapers": (),
    "reset_modules": (),
    "pypandoc": False,
}}
"""


def build(root, seed="0", umask=0o022):
    """Build the project as ``make html`` would, without the pages."""
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "dummy", "docs", "build"]
    env = {**os.environ, "PYTHONHASHSEED": seed}
    run = subprocess.run(
        command, cwd=root, env=env, umask=umask, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


def new_project(root, mtime):
    """Write a gallery in a folder: one page that runs and one that does not."""
    files = {
        "docs/conf.py": CONF,
        "docs/index.rst": "Home\n====\n",
        "tutorials/README.rst": "All\n===\n",
        "tutorials/first/README.rst": "First\n=====\n",
        "tutorials/first/10_words.py": PAGE,
        "tutorials/first/20_other.py": OTHER,
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        os.utime(path, (mtime, mtime))
    return root


def products(root):
    """List the notebooks and zips of a project."""
    return {
        path.relative_to(root).as_posix(): path
        for path in sorted(root.rglob("*"))
        if path.suffix in (".ipynb", ".zip")
    }


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = new_project(tmp_path_factory.mktemp("one"), 1_700_000_000)
    build(root)
    return root


@pytest.fixture(scope="module")
def notebook(project):
    path = project / "docs" / "gallery" / "first" / "10_words.ipynb"
    return nbformat.read(path, as_version=4)


def test_notebook_is_valid_and_has_not_run(notebook):
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert notebook.metadata.language_info.name == "python"
    assert [c.id for c in notebook.cells] == [f"cell-{n:02d}" for n in range(10)]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)
    assert [cell.source for cell in code] == [
        "%pip install --quiet 'torch==2.14.1'",
        "x = 1",
        "x += 1",
        "assert x == 2",
        "y = 1",
    ]


def test_only_the_drawing_is_folded(notebook):
    folded = {c.source: dict(c.metadata) for c in notebook.cells if c.metadata}
    metadata = {"jupyter": {"source_hidden": True}, "tags": ["hide-input"]}
    assert folded == {"assert x == 2": metadata}


def test_no_word_is_lost_or_moved(notebook):
    prose = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    expected = re.findall(r"w\d\d", PAGE)
    # The footnote stands where its cell ends.
    expected = [w for w in expected if w not in ("w08", "w09")]
    expected[13:13] = ["w08", "w09"]
    assert re.findall(r"w\d\d", prose) == expected
    assert "w25 *Other page*" in prose
    assert downloads.leftovers(prose) == []


def test_zips_have_one_form(project):
    zips = {n: p for n, p in products(project).items() if n.endswith(".zip")}
    names = {}
    for name, path in zips.items():
        with zipfile.ZipFile(path) as archive:
            names[name] = archive.namelist()
            for entry in archive.infolist():
                assert entry.date_time == (1980, 1, 1, 0, 0, 0)
                assert entry.external_attr == 0o100644 << 16
                assert entry.create_system == 3
                assert entry.compress_type == zipfile.ZIP_DEFLATED
                beside = path.parent / entry.filename
                assert archive.read(entry) == beside.read_bytes()
    assert names == {
        "docs/gallery/first/10_words.zip": ["10_words.ipynb", "10_words.py"],
        "docs/gallery/first/20_other.zip": ["20_other.ipynb", "20_other.py"],
        "docs/gallery/gallery_jupyter.zip": [
            "first/10_words.ipynb",
            "first/20_other.ipynb",
        ],
        "docs/gallery/gallery_python.zip": ["first/10_words.py", "first/20_other.py"],
    }


def test_same_input_same_bytes(project, tmp_path):
    other = new_project(tmp_path / "elsewhere", 1_600_000_000)
    build(other, seed="4711", umask=0o077)
    contents = [
        {name: path.read_bytes() for name, path in products(root).items()}
        for root in (project, other)
    ]
    assert len(contents[0]) == 6
    assert contents[0] == contents[1]


def test_rebuild_touches_nothing_and_an_edit_only_its_page(project, tmp_path):
    root = tmp_path / "copy"
    shutil.copytree(project, root)  # with the times of the files
    calls = root / "calls.txt"
    calls.unlink()
    files = products(root)
    times = {name: path.stat().st_mtime_ns for name, path in files.items()}
    contents = {name: path.read_bytes() for name, path in files.items()}

    build(root)
    assert {n: p.stat().st_mtime_ns for n, p in products(root).items()} == times
    assert {n: p.read_bytes() for n, p in products(root).items()} == contents
    assert not calls.exists()

    page = root / "tutorials" / "first" / "20_other.py"
    page.write_text(OTHER.replace("Text.", "Better."))
    build(root)
    changed = {n for n, p in products(root).items() if p.stat().st_mtime_ns != times[n]}
    assert changed == {n for n in files if "20_other" in n or "gallery_" in n}
    assert calls.read_text().split() == ["json", downloads.MARKDOWN]

    page.write_text(OTHER.replace("Other page", "New title!"))
    build(root)
    words = root / "docs" / "gallery" / "first" / "10_words.ipynb"
    assert "w25 *New title!*" in words.read_text()


def test_cleaning_starts_from_the_script(project, tmp_path):
    """Whatever stood in a notebook, the result is the same."""
    root = tmp_path / "copy"
    shutil.copytree(project, root)
    contents = {name: path.read_bytes() for name, path in products(root).items()}
    for path in root.rglob("*.ipynb"):
        path.write_text('{"cells": [], "metadata": {}}')
    gallery = {
        "gallery_dirs": "gallery",
        "first_notebook_cell": "%pip install --quiet 'torch==2.14.1'",
    }
    config = SimpleNamespace(
        sphinx_gallery_conf=gallery, rst_prolog=None, rst_epilog=None, html_baseurl=""
    )
    downloads.clean(SimpleNamespace(srcdir=root / "docs", config=config), {})
    assert {n: p.read_bytes() for n, p in products(root).items()} == contents


def test_a_zip_keeps_what_is_not_beside_it(tmp_path):
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("b.txt", "b")
        archive.writestr("a.txt", "a")
    downloads.rewrite_zip(path)
    os.utime(path, (1, 1))
    downloads.rewrite_zip(path)
    assert path.stat().st_mtime == 1  # nothing to change, nothing written
    with zipfile.ZipFile(path) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            "a.txt": b"a",
            "b.txt": b"b",
        }


REQUIREMENTS = """\
# -- site
sphinx==9.0.4
# -- tutorials: what a reader installs
torch==2.14.1  # large

# a comment
gymnasium[classic-control]==1.4.0
# -- tests
pytest==9.2.0
"""


def test_install_cell(tmp_path):
    path = tmp_path / "requirements.txt"
    path.write_text(REQUIREMENTS)
    assert downloads.install_cell(path) == (
        "%pip install --quiet 'torch==2.14.1' 'gymnasium[classic-control]==1.4.0'"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("torch==1.0\n", "requirements.txt: no pin below a line '# -- tutorials'"),
        (
            "# -- tutorials\n# none\n# -- tests\npytest==9.2.0\n",
            "requirements.txt: no pin below a line '# -- tutorials'",
        ),
        (
            "# -- tutorials\ntorch>=2\n",
            "requirements.txt: 'torch>=2' is not of the form name==version",
        ),
    ],
)
def test_install_cell_says_what_is_wrong(tmp_path, content, message):
    path = tmp_path / "requirements.txt"
    path.write_text(content)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        downloads.install_cell(path)


@pytest.mark.parametrize(
    "residue",
    [
        "see :func:`torch.histc` here",
        "see :py:class:`a`",
        ".. note:: text",
        "> .. code-block:: python",
        "text .. dropdown:: Title",
        ".. _tut-count:",
        ".. a comment",
        ":class: wide",
        "::: grid",
        "# Title {#tut-count}",
        "# Title {.wide}",
        "[]{#tut-count}",
        '`x`{.interpreted-text role="func"}',
        '`x`{role="func"}',
        '![a](b.png){width="20%"}',
        "`text <https://example.org>`_",
        "`text`__",
        "see name_ here",
        "the |version| of",
        r"it\'s",
        r"\"so\"",
        r"and \...",
        r"a \-- b",
    ],
)
def test_leftovers_finds(residue):
    assert len(downloads.leftovers(f"Before.\n\n{residue}\n\nAfter.")) >= 1


@pytest.mark.parametrize(
    "harmless",
    [
        "`:func:` and `` :func:`x` `` and `{.a}` `a_` `|b|`",
        "```rst\n.. note:: x\n\n:::\n```",
        "> ```python\n> x: dict = {'a': name_}  # |x|\n> ```",
        "$a_{i=0}^{.5}$ and $$\\{x_\\}$$",
        "[a](https://example.org/b_) and <https://example.org/c_>",
        "| a | b |\n|---|---|\n| c |   |",
        'x_y_z, add\\_, 3:4, it\'s "so" -- or ...',
        "<details><summary>Look</summary>\n\n**A**: `b`\n\n</details>",
    ],
)
def test_leftovers_lets_pass(harmless):
    assert downloads.leftovers(harmless) == []
