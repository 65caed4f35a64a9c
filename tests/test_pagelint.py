"""The page linter, on the template: clean as it is, one complaint for each breach."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import claims
import pagelint
import pytest
from pageparts import Page, words
from running import run

TEMPLATE = Path(__file__).parent / "template"
INDEX = """
.. grid-item-card:: Title
    :link: tut-template
    :link-type: ref

.. toctree::

    10_template
"""
CELL = "\n\n# %%\n# Words.\n\n{code}\n\n# %%\n# Try it\n"


@pytest.fixture
def path(tmp_path) -> Path:
    """The template in a repository of its own, listed and with claims."""
    folder = tmp_path / "tutorials" / "assemble"
    folder.mkdir(parents=True)
    (folder / "index.rst").write_text(INDEX)
    copy = folder / "10_template.py"
    copy.write_text((TEMPLATE / "10_template.py").read_text())
    claims_folder = tmp_path / "tests" / "claims"
    claims_folder.mkdir(parents=True)
    (claims_folder / "assemble_10_template.toml").write_text("")
    return copy


def test_the_template_passes(path):
    assert pagelint.lint(path) == []
    assert pagelint.main(path.parents[2]) == 0


def test_the_template_runs_and_its_claims_fail_when_false(path, tmp_path):
    page, folder = Page(path), tmp_path / "run"
    folder.mkdir()
    assert run(path, folder).code == 0
    found = claims.read(TEMPLATE / "claims.toml")
    assert claims.mismatches(page, found) == []
    assert [claims.verdict(page, claim, folder) for claim in found] == [""] * len(found)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (".. _tut-template:\n\n", "", "the docstring must start"),
        ("card:: You need", "card:: Needed", "no card 'You need'"),
        ("* start each with", "* " + "word " * 50, "words on the cards, at most 60"),
        ("_ = torch.manual_seed(0)\n", "", "the first cell sets no seed"),
        ("why the reader wants", "word " * 120, "the first output comes after"),
        ("A heading is a", "word " * 200, "the first picture comes after"),
        ("# Next\n# ----", "# Later\n# -----", "the page must end with the sections"),
        (
            "assert mean > median\n",
            "",
            "'Is the mean a good summary?' has no a",
        ),
        ("plain English", "word " * 600, "words, 600 to 1100 fit"),
        ("counted = []", "counted = []\n" + "    x = 1\n" * 60, "lines of code, 60 to"),
        ("counted = []", "counted = []\n" + "    x = 1\n" * 15, "a cell of 26 lines"),
        ("counted = []", "counted = " + "[] + " * 20 + "[]", "columns of code, at mo"),
        ('fig.set_label("', 'str("', "figure without alt sentence"),
        ("_ = ax.set(", "ax.set(", "a value would show under the figure"),
        ("collector.shutdown()", "collector._iterator", "private name _iterator"),
        ("import torch\n", "import torch\nfrom torch._C import x\n", "private name _C"),
        ("answer = None", "answer = 0", "'Try it' must start from `answer = None`"),
        ("def check(", "def test(", "must define check(answer)"),
        ("dropdown:: Solution", "dropdown:: Answer", "no folded Solution"),
    ],
)
def test_a_breach_is_named(path, old, new, expected):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    found = pagelint.lint(path)
    assert any(expected in line for line in found), found
    pattern = re.compile(r"tutorials/assemble/10_template\.py:\d+: ")
    assert all(pattern.match(line) for line in found)
    assert pagelint.main(path.parents[2]) == 1


def add_cell(path: Path, code: str) -> int:
    """Put a cell before "Try it"; returns the line of its code."""
    text = path.read_text().replace("\n# %%\n# Try it\n", CELL.format(code=code), 1)
    path.write_text(text)
    return text[: text.index(code)].count("\n") + 1


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('import warnings\nwarnings.simplefilter("ignore")', "a warning is filtered"),
        ('import warnings\nwarnings.filterwarnings("ignore")', "a warning is filtered"),
        ("def ribbon(): ...", "ribbon stands under 'Drawing'"),
        (
            "# sphinx_gallery_start_ignore\nx = 1\n# sphinx_gallery_end_ignore",
            "hidden code; only .close() and .shutdown()",
        ),
    ],
)
def test_a_cell_that_may_not_stand_there_is_named_with_its_line(path, code, expected):
    line = add_cell(path, code)
    found = [text for text in pagelint.lint(path) if expected in text]
    assert len(found) == 1
    assert abs(int(found[0].split(":")[1]) - line) <= 1


def test_hidden_teardown_is_allowed(path):
    add_cell(
        path,
        "# sphinx_gallery_start_ignore\nenv.close()\n# sphinx_gallery_end_ignore",
    )
    assert pagelint.lint(path) == []


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("tutorials/assemble/index.rst", "not in the toctree of assemble/index.rst"),
        ("tests/claims/assemble_10_template.toml", "no claims file tests/claims/assem"),
    ],
)
def test_an_unlisted_page_is_named(path, file, expected):
    (path.parents[2] / file).unlink()
    assert any(expected in line for line in pagelint.lint(path))


def test_a_page_that_is_not_python_is_named(path):
    path.write_text('"""\nTitle\n=====\n"""\n\nx = = 1\n')
    assert any("not Python" in line for line in pagelint.lint(path))


def test_a_ribbon_of_its_own_is_named(path):
    other = path.with_name("20_other.py")
    drawing = "\n# %%\n# Drawing\n# -------\n\n\ndef ribbon(ax):\n    return {}\n"
    path.write_text(path.read_text() + drawing.format("ax"))
    other.write_text(path.read_text().replace("return ax", "return None"))
    assert pagelint.same_ribbon([path, other]) == [
        "tutorials/assemble/20_other.py:1: ribbon differs from 10_template.py"
    ]


def test_claims_without_a_page_are_named(path, capsys):
    (path.parents[2] / "tests/claims/assemble_99_gone.toml").write_text("")
    assert pagelint.main(path.parents[2]) == 1
    expected = "tests/claims/assemble_99_gone.toml:1: claims of a page that does not"
    assert expected in capsys.readouterr().err


def test_no_tutorials_is_a_failure(tmp_path):
    (tmp_path / "tutorials").mkdir()
    assert pagelint.main(tmp_path) == 1


def test_the_command_prints_nothing_when_all_is_well():
    command = [sys.executable, Path(pagelint.__file__)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Two words.", 2),
        ("Title words\n===========\n\nOne.", 3),
        (".. _tut-x:\n\n.. grid:: 1 1 2 2\n\n    .. grid-item-card:: You will\n", 2),
        (".. dropdown:: Then look\n    :open:\n\n    It is.", 4),
        (":func:`torch.histc` and :ref:`some words <tut-x>`", 4),
        ("``a.b`` isn't x-ray", 3),
        ("One.\n\n.. code-block:: python\n\n    x = 1\n    y = 2\n\nTwo.", 2),
    ],
)
def test_words_are_counted_as_a_reader_reads_them(text, count):
    assert words(text) == count


def test_page_parts_of_the_template(path):
    page = Page(path)
    assert page.sections[0][0] == "How long do episodes last?"
    assert page.bullets()[0] == "A batch holds as many steps as you ask for."
    assert page.asserts()[0].text == "assert len(batch) == 400"
    lines = path.read_text().splitlines()
    for item in page.asserts():
        assert lines[item.line - 1].startswith("assert ")
    for name, line in page.sections:
        assert lines[line - 1] == f"# {name}"
    assert page.solution().startswith("answer = ")
