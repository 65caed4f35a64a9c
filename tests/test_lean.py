"""Light pages: one stylesheet with what is used, few scripts, dark without script."""

from __future__ import annotations

import re
from types import SimpleNamespace

import lean
import pytest
from conftest import ROOT
from sphinx.errors import ExtensionError

USED = {"card", "title", "open", "main"}


@pytest.mark.parametrize(
    ("css", "kept"),
    [
        (".card{color:red}", ".card{color:red}"),
        (".gone{color:red}", ""),
        (".card.gone{color:red}", ""),
        (".card, .gone { color : red }", ".card{color:red}"),
        (".card:not(.gone){color:red}", ".card:not(.gone){color:red}"),
        (":is(.gone, .card) .title{top:0}", ":is(.gone, .card) .title{top:0}"),
        ("#gone{top:0} #main{top:0}", "#main{top:0}"),
        ("p{top:0} /* why */ a{}", "p{top:0}"),
        ("@media print{.gone{top:0}}", ""),
        ("@media print{.gone,p{top:0}}", "@media print{p{top:0}}"),
        ("@supports (top:0){@media print{p{top:0}}}",) * 2,
        (r".sd\:card{top:0}", ""),
        ("p{top:0!important}", "p{top:0!important}"),
        ("@keyframes turn{to{top:0}}", "@keyframes turn{to{top:0}}"),
    ],
)
def test_rules_for_what_no_page_holds_go(css, kept):
    assert lean.purged(css, USED).replace("\n", "") == kept


def test_what_paints_an_icon_font_goes_and_the_font_too():
    font = '@font-face{font-family:"Font Awesome 6 Free";src:url(x.woff2)}'
    other = '@font-face{font-family:"Other";src:url(data:x)}'
    icon = '.title:after{content:"\\f0eb";font:var(--fa-font-solid);color:red}'
    mark = '.title:before{content:"\\203a"}'
    kept = lean.purged(font + other + icon + mark, USED)
    assert "Awesome" not in kept and "f0eb" not in kept and "--fa" not in kept
    assert ".title:after{color:red}" in kept
    assert '.title:before{content:"›"}' in kept
    assert "Other" in kept


def test_what_is_not_css_is_told():
    with pytest.raises(ExtensionError, match="a stylesheet is not CSS"):
        lean.purged("p", USED)


def test_custom_properties_that_nobody_reads_go_with_those_that_only_they_read():
    css = ":root{--a:1;--b:var(--c);--c:2;--d:3}p{width:var(--a)}"
    assert lean.without_unread(css, {"--d"}) == ":root{--a:1;--d:3}\np{width:var(--a)}"


def test_dark_holds_without_script_and_paper_is_light():
    css = lean.with_themes(
        'html[data-theme=light] p{top:1}html[data-theme="dark"] p{top:2}p{top:3}'
    )
    assert css.splitlines() == [
        "html[data-theme=light] p{top:1}",
        '@media print,(prefers-color-scheme:light){html[data-theme="auto"] p{top:1}}',
        '@media print{html[data-theme="dark"] p{top:1}}',
        '@media screen{html[data-theme="dark"] p{top:2}}',
        "@media screen and (prefers-color-scheme:dark)"
        '{html[data-theme="auto"] p{top:2}}',
        "p{top:3}",
    ]


HEAD = """<head>
    <link href="_static/styles/theme.css?digest=7" rel="stylesheet" />
    <link rel="stylesheet" type="text/css" href="_static/own.css?v=1" />
    <link rel="preload" as="script" href="_static/scripts/bootstrap.js" />
    <script src="_static/documentation_options.js?v=1"></script>
    <script src="_static/copybutton.js?v=1"></script>
    <script defer src="_static/scripts/bootstrap.js"></script>
    <script data-prefix="x" src="_static/design-tabs.js"></script>
    <script>const page = 1;</script>
</head>
"""


def test_a_page_asks_for_one_stylesheet_and_late_for_its_scripts():
    made = lean.lean_head(HEAD, "_static/site.css", "const options = {};\n", False)
    assert made.splitlines() == [
        "<head>",
        '    <link rel="stylesheet" href="_static/site.css" />',
        "    <script>const options = {};</script>",
        '    <script defer src="_static/copybutton.js?v=1"></script>',
        "    <script>const page = 1;</script>",
        "</head>",
    ]


def test_what_the_theme_leaves_without_name_or_use_is_mended():
    fold = '<summary><span class="toctree-toggle" role="presentation"></span></summary>'
    html = f"{HEAD}<noscript><style></style>\n</noscript>{fold}"
    made = lean.lean_head(html, "s", "", False)
    assert '<summary aria-label="Pages of this section"><span class="toctree-' in made
    assert ".sidebar-toggle, .copybtn { display: none !important; }" in made


def test_a_page_with_tabs_gets_their_script():
    tabs = HEAD + '<div class="sd-tab-set"></div>'
    assert "design-tabs.js" in lean.lean_head(tabs, "s", "", False)


def test_only_the_search_page_asks_for_what_is_searched():
    name = sorted(lean.SEARCH)[0]
    page = HEAD.replace("copybutton.js", name)
    asked = f'<script defer src="_static/{name}?v=1">'
    assert asked in lean.lean_head(page, "s", "", True)
    assert name not in lean.lean_head(page, "s", "", False)


@pytest.fixture
def built(tmp_path):
    """A site as Sphinx leaves it."""
    static = tmp_path / "_static"
    (static / "styles").mkdir(parents=True)
    (static / "scripts").mkdir()
    (tmp_path / "deep").mkdir()
    for name in ("documentation_options", "copybutton", "design-tabs"):
        (static / f"{name}.js").write_text("add('made-by-script')")
    (static / "scripts" / "bootstrap.js").write_text("")
    (static / "styles" / "theme.css").write_text(
        '@import "../basic.css";\n.gone{top:0}'
    )
    (static / "basic.css").write_text(".made-by-script{top:1}")
    (static / "own.css").write_text(".here{top:2}")
    (tmp_path / "index.html").write_text(HEAD + '<p class="here">')
    (tmp_path / "deep" / "a.html").write_text(HEAD.replace("_static", "../_static"))
    return tmp_path


def run(root):
    """Run the extension as Sphinx would at the end of a build."""
    app = SimpleNamespace(builder=SimpleNamespace(name="html"), outdir=str(root))
    lean.make_lean(app, None)


def test_all_pages_share_one_stylesheet_of_what_is_used(built):
    run(built)
    (sheet,) = built.glob("_static/site-*.css")
    assert sheet.read_text() == ".made-by-script{top:1}\n.here{top:2}"
    assert f'href="_static/{sheet.name}"' in (built / "index.html").read_text()
    assert f'href="../_static/{sheet.name}"' in (built / "deep/a.html").read_text()
    assert not (built / "_static/styles/theme.css").exists()
    assert not (built / "_static/scripts/bootstrap.js").exists()


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("own.css", ".here{background:url(x.png)}", r"another file: url\(.?x\.png"),
        ("own.css", '@import "no.css";', "own.css imports no.css, which is not there"),
        ("own.css", None, r"index\.html: no file _static/own\.css"),
    ],
)
def test_what_is_missing_is_told(built, file, text, told):
    path = built / "_static" / file
    path.unlink() if text is None else path.write_text(text)
    (built / "deep" / "a.html").unlink()
    with pytest.raises(ExtensionError, match=told):
        run(built)


def test_a_failed_build_and_other_builders_are_left_alone(built):
    before = (built / "index.html").read_text()
    app = SimpleNamespace(builder=SimpleNamespace(name="dummy"), outdir=str(built))
    lean.make_lean(app, None)
    lean.make_lean(app, ValueError())
    assert (built / "index.html").read_text() == before


# -- The site itself -------------------------------------------------------------------


def test_the_site_s_stylesheet_is_small_and_paints_no_glyph(site):
    (sheet,) = site.glob("_static/site-*.css")
    css = sheet.read_text()
    assert len(css) < 130_000
    assert not any("\ue000" <= letter <= "\uf8ff" for letter in css)
    assert "@font-face" not in css
    assert not list(site.glob("_static/**/*.woff2"))


def test_every_icon_of_the_theme_is_drawn_by_us(site):
    """The theme may come with a new icon; then it would be a square."""
    drawn = set(
        re.findall(r"\.(fa-[\w-]+)", (ROOT / "docs/_static/site.css").read_text())
    )
    used = {
        name
        for page in site.rglob("*.html")
        for name in re.findall(r"\bfa-[a-z-]+", page.read_text())
    }
    assert used - drawn <= {"fa-lg"}
