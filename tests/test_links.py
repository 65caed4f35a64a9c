"""Links of the built site: what is found, and the line that is named for it."""

from __future__ import annotations

import links
import pytest
from links import Document, broken_links

SCRIPT = '''"""
Collect
=======

See `the split page <20_split.html#cut>`_ and `a page
that is gone <gone.html>`_.
"""

# %%
# .. raw:: html
#
#    <img src="/logo.svg">
'''


@pytest.fixture
def site(tmp_path):
    """Write pages and get the complaints: ``site(index='<a href="x.html">x</a>')``."""
    root = tmp_path
    built = root / "build" / "html"
    for name in ("docs/index.rst", "docs/_static/site.css", "conf.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    script = root / "tutorials" / "assemble" / "10_collect.py"
    script.parent.mkdir(parents=True)
    script.write_text(SCRIPT)
    script.with_name("index.rst").write_text("Assemble\n")
    for name in ("_static", "_images", "tutorials/assemble"):
        (built / name).mkdir(parents=True)
    (built / "_images" / "a b.svg").write_text('<svg><g id="part"/></svg>')
    (built / "tutorials/assemble/20_split.html").write_text('<p id="there">')
    for name in ("index.html", "tutorials/index.html"):
        (built / name).write_text("")

    def complaints(body: str = "", name: str = "index.html", css: str = "") -> list:
        (built / name).write_text(f"<html><body>{body}</body></html>")
        if css:
            (built / "_static" / "site.css").write_text(css)
        return broken_links(built, root)

    complaints.root = root
    return complaints


@pytest.mark.parametrize(
    "body",
    [
        '<a href="tutorials/assemble/20_split.html#there">x</a>',
        '<a href="tutorials/">a folder with an index</a><a href="tutorials">x</a>',
        '<a href="#here">x</a><p id="here">',
        '<a href="#old">x</a><a name="old"></a>',
        '<a href="#%C3%A9">x</a><p id="é">',
        '<a href="#">x</a><a href="#top">x</a><a href="">x</a><a href="?q=1">x</a>',
        '<a href="#:~:text=word">x</a>',
        '<img src="_images/a%20b.svg?v=1"><img src="_images/a b.svg#part">',
        '<img srcset="_images/a%20b.svg 1x, _images/a%20b.svg?v=2 2x">',
        '<img src="data:image/png;base64,AA/+=">',
        '<a href="https://x.org/a">x</a><a href="mailto:a@b.c">x</a>',
        '<base href="/folder/">',
        '<a href="javascript:void(0)">x</a><link rel="canonical" href="https://x.org">',
        "<!-- <a href='gone.html'>x</a> --><script>'<a href=\"gone\">'</script>",
        '<div style="background: url(&quot;_images/a b.svg&quot;)"></div>',
        "<code>&lt;a href='gone.html'&gt;</code>",
    ],
)
def test_what_leads_somewhere_is_fine(site, body):
    assert site(body) == []


@pytest.mark.parametrize(
    "body, target, what",
    [
        ('<a href="gone.html">x</a>', "gone.html", "leads to no file"),
        ('<a href="_images/A b.svg">x</a>', "_images/A b.svg", "leads to no file"),
        ('<a href="_images/">x</a>', "_images/", "leads to no file"),
        ('<a href="index.html/">x</a>', "index.html/", "leads to no file"),
        ('<a href="../x.html">x</a>', "../x.html", "leads out of the site"),
        ('<a href="#gone">x</a>', "#gone", "names no anchor of this page"),
        (
            '<a href="tutorials/assemble/20_split.html#gone">x</a>',
            "tutorials/assemble/20_split.html#gone",
            "names no anchor of tutorials/assemble/20_split.html",
        ),
        ('<a href="/index.html">x</a>', "/index.html", "is an absolute path"),
        ('<a href="file:///etc">x</a>', "file:///etc", "leads to a file of the mach"),
        ('<a href="htps://x">x</a>', "htps://x", "names a host without https:"),
        ('<a href="//x.org/a">x</a>', "//x.org/a", "names a host without https:"),
        ('<a href="htp:x">x</a>', "htp:x", "is of an unknown kind, htp:"),
        ('<a href="http://[x">x</a>', "http://[x", "is no address"),
        ('<img src="">', "", "loads nothing"),
        ('<img src="gone.png">', "gone.png", "leads to no file"),
        ('<img srcset="_images/a%20b.svg, gone 2x">', "gone", "leads to no file"),
        ('<video poster="gone.png"></video>', "gone.png", "leads to no file"),
        ('<object data="gone.svg"></object>', "gone.svg", "leads to no file"),
        ('<img src="_images/a b.svg#no">', "_images/a b.svg#no", "names no anchor of"),
        ('<svg><use href="gone.svg#a"/></svg>', "gone.svg#a", "leads to no file"),
        ('<form action="gone.html">', "gone.html", "leads to no file"),
        ('<p style="background: url(gone.png)">', "gone.png", "leads to no file"),
        ("<style>p {src: url('gone.woff')}</style>", "gone.woff", "leads to no file"),
        (
            '<meta http-equiv="refresh" content="0; url=gone.html">',
            "gone.html",
            "leads to no file",
        ),
        ('<img src="https://x.org/a">', "https://x.org/a", "is loaded from another"),
        ('<script src="//x.org/a"></script>', "//x.org/a", "is loaded from another"),
        ('<iframe src="http://x.org"></iframe>', "http://x.org", "is loaded from an"),
        (
            '<link rel="stylesheet" href="https://x.org/a.css">',
            "https://x.org/a.css",
            "is loaded from another host",
        ),
        (
            "<style>@import 'https://x.org/a.css';</style>",
            "https://x.org/a.css",
            "is loaded from another host",
        ),
    ],
)
def test_what_leads_nowhere_is_one_line(site, body, target, what):
    [line] = site(body)
    assert line.startswith(f"docs/index.rst:1: '{target}' {what}")


def test_the_line_of_the_script_is_named_by_address_or_by_text(site):
    page = "tutorials/assemble/10_collect.html"
    body = """<a href="20_split.html#cut">the split page</a>
        <a href="other.html">a page that is gone</a><img src="/logo.svg">
        <a href="nowhere.html">never written</a>"""
    assert [line.split(" ")[:2] for line in site(body, page)] == [
        ["tutorials/assemble/10_collect.py:1:", "'nowhere.html'"],
        ["tutorials/assemble/10_collect.py:5:", "'20_split.html#cut'"],
        ["tutorials/assemble/10_collect.py:5:", "'other.html'"],
        ["tutorials/assemble/10_collect.py:12:", "'/logo.svg'"],
    ]


def test_the_file_of_a_page_is_named_and_a_page_of_the_theme_by_itself(site):
    link = '<a href="gone.html">x</a>'
    site(link, "search.html")
    (site.root / "docs" / "tutorials").mkdir()
    generated = site.root / "docs" / "tutorials" / "index.rst"
    generated.write_text("generated")
    assert [
        line.split(" ")[0] for line in site(link, "tutorials/assemble/index.html")
    ] == [
        "build/html/search.html:1:",
        "tutorials/assemble/index.rst:1:",
    ]


def test_a_target_is_told_once_for_each_source(site):
    body = '<a href="gone.html">x</a><a href="gone.html">y</a><a href="no.html">z</a>'
    assert len(site(body)) == 2


def test_a_mistake_in_the_settings_is_told_once_for_all_pages(site):
    (site.root / "conf.py").write_text('\nhtml_favicon = "_static/gone.svg"\n')
    site('<link rel="icon" href="../../_static/gone.svg">', "tutorials/assemble/a.html")
    lines = site('<link rel="icon" href="_static/gone.svg">')
    assert len(lines) == 1
    assert lines[0].startswith("conf.py:2: ")


def test_style_sheets_are_read_with_what_they_import(site):
    (site.root / "build/html/_static/more.css").write_text("\np {x: url(no.png)}")
    css = """/* url(comment.png) */
p { src: url("../_images/a b.svg"), url(data:image/png;base64,A), url(#x) }
q { src: url(gone.png) }
@import "more.css";
"""
    lines = site('<link rel="stylesheet" href="_static/site.css?v=1">', css=css)
    assert lines == [
        "build/html/_static/more.css:2: 'no.png' leads to no file of the site",
        "docs/_static/site.css:3: 'gone.png' leads to no file of the site",
    ]


def test_templates_that_a_theme_keeps_are_no_pages(site):
    assert site('<a href="{{ x }}">x</a>', "_static/template.html") == []


def test_highlighted_code_hides_no_anchor():
    text = '<span class="k">a</span><span id="x">b</span><span class="a" id="y"></span>'
    assert Document(text).anchors == {"x", "y"}


def test_a_word_is_not_found_inside_a_longer_one():
    assert links.line_of("20_splits\n20_split", links.Reference("20_split", False)) == 2


def test_no_site_is_no_site_without_broken_links(tmp_path):
    [line] = broken_links(tmp_path / "gone", tmp_path)
    assert line == "build/html/index.html:1: there is no site to check"
