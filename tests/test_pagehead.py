"""The line below a title, the marks of asserts, the folds of long outputs."""

from __future__ import annotations

import re
from pathlib import Path

import pagehead
import pytest
from conftest import ROOT, SCRIPTS
from page_run import page_name
from pageparts import Page

PAGE = '"""\nTitle\n=====\n\n{words}\n"""\n{code}\n'


def page(tmp_path: Path, words: int, lines: int) -> Page:
    """A page of so many words and lines of code."""
    path = tmp_path / "10_a.py"
    text = PAGE.format(words="word " * words, code="x = 1\n" * lines)
    path.write_text(text)
    return Page(path)


@pytest.mark.parametrize(
    ("words", "lines", "minutes"),
    [(0, 1, 1), (199, 1, 2), (600, 40, 6), (1000, 100, 11)],
)
def test_reading_takes_longer_with_words_and_with_code(tmp_path, words, lines, minutes):
    assert pagehead.minutes(page(tmp_path, words, lines)) == minutes


def test_a_page_with_a_raised_limit_takes_longer():
    assert pagehead.lasts("a/b", {}) == "runs in seconds"
    assert pagehead.lasts("a/b", {"a/b": 90}) == "runs in under a minute"
    assert pagehead.lasts("a/b", {"a/b": 180}) == "runs for a minute or so"


def test_versions_are_those_of_the_pins(tmp_path):
    pins = "torch==1.2\ntorchrl[x]==3.4  # why\ntorchaudio==9\n"
    (tmp_path / "requirements.txt").write_text(pins)
    shown = pagehead.versions(tmp_path, pagehead.SHOWN)
    assert shown.split(", ") == ["torch 1.2", "torchrl 3.4"]


GITHUB = {
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "a/b",
    "GITHUB_SHA": "c0ffee",
}


def test_the_source_is_linked_only_where_the_build_knows_it():
    assert pagehead.source("train/10_a", {}) == ""
    assert pagehead.source("train/10_a", GITHUB | {"GITHUB_SHA": ""}) == ""
    address = "https://github.com/a/b/blob/c0ffee/tutorials/train/10_a.py"
    assert pagehead.source("train/10_a", GITHUB) == address


PUSH = GITHUB | {"GITHUB_EVENT_NAME": "push"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_REPOSITORY", ""),
        ("GITHUB_EVENT_NAME", "pull_request"),
        ("GITHUB_SERVER_URL", "https://git.example.org"),
    ],
)
def test_colab_is_linked_only_where_it_finds_the_notebook(name, value):
    assert pagehead.colab("train/10_a", PUSH) != ""
    assert pagehead.colab("train/10_a", PUSH | {name: value}) == ""
    assert pagehead.colab("train/10_a", {}) == ""


def test_colab_opens_the_notebook_that_was_built(script, site):
    address = pagehead.colab(page_name(script), PUSH)
    start = "https://colab.research.google.com/github/a/b/blob/notebooks/"
    assert address.startswith(start)
    assert (ROOT / "docs" / "tutorials" / address.removeprefix(start)).is_file()


def test_the_workflow_publishes_the_notebooks_on_that_branch():
    check = (ROOT / ".github" / "workflows" / "check.yml").read_text()
    assert "path: docs/tutorials/**/*.ipynb\n" in check
    assert f'git push --quiet --force "$REMOTE" HEAD:{pagehead.BRANCH}\n' in check


def test_the_head_names_what_is_there():
    script = SCRIPTS[0]
    link = '<a class="reference download internal" download="" href="../x/a.py">'
    head = pagehead.head(script, ROOT, link, GITHUB)
    assert head.startswith('<ul class="page-facts" aria-label="About this page"><li>')
    assert '<li><a href="../x/a.py" download>script</a></li>' in head
    assert "notebook" not in head
    assert f"/c0ffee/tutorials/{page_name(script)}.py" in head
    assert "Colab" not in head and "Colab" in pagehead.head(script, ROOT, "", PUSH)


OUTPUT = (
    '<div class="sphx-glr-script-out highlight-none"><div class="highlight">'
    "<pre><span></span>{}</pre></div>\n</div>"
)


@pytest.mark.parametrize(("lines", "is_folded"), [(15, False), (16, True)])
def test_only_a_long_output_is_folded(lines, is_folded):
    body = OUTPUT.format("line\n" * lines)
    made = pagehead._OUTPUT.sub(pagehead.folded, f"<p>{body}</p>{OUTPUT.format('x')}")
    assert made.count("<details") == is_folded
    assert made.replace(body, "").endswith(OUTPUT.format("x"))
    if is_folded:
        assert "<summary>Output of 16 lines</summary>" in made
        assert f"{body}</details>" in made


CELL = '<div class="highlight-{} notranslate"><pre>{}</pre></div>'
PLAIN = '<span class="k">assert</span>'
MARKED = '<span class="k checked">assert</span>'


def test_only_an_assert_that_ran_is_marked():
    shown, ran = CELL.format("python", PLAIN), CELL.format("Python", PLAIN * 2)
    body = (
        f'<section id="a-title">{ran}{shown}'
        f'<section id="try-it">{ran}{shown}</section>'
        f'<section id="in-practice">{shown}</section></section>'
    )
    made = pagehead.marked(body)
    assert made == body.replace(ran, CELL.format("Python", MARKED * 2), 1)


def test_each_tutorial_has_its_head_and_its_marks(script, site):
    html = (site / "tutorials" / f"{page_name(script)}.html").read_text()
    head = re.search(r"</h1>\n<ul class=\"page-facts\".*?</ul>", html)
    assert head
    for kind in ("script", "notebook"):
        (address,) = re.findall(rf'href="([^"]*)" download>{kind}<', head[0])
        folder = (site / "tutorials" / page_name(script)).parent
        assert (folder / address).resolve().is_file()
    assert html.count(MARKED) == len(Page(script).asserts()) > 0
