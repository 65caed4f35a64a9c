"""Makes built pages light: one small stylesheet, no icon font, no script in the way.

The theme is taken as it is. When Sphinx has written the pages, this extension looks at
what they use: rules for things that no page holds are dropped from the stylesheets, and
what remains becomes one file. Icons are painted by `site.css`, so the rules that paint
glyphs of an icon font go too, and with them the font. Scripts that no page needs are
not asked for; the others wait until the page is there. What the theme leaves without a
name or a use is mended.

Where the theme has colours for light and dark, both also hold without script (by what
the reader's system prefers), and print is always light.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import tinycss2
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

#: Scripts that no page needs: Bootstrap's moves menus and tooltips that this site does
#: not have, Sphinx's search is replaced (see sections.py).
UNNEEDED = {
    "bootstrap.js",
    "fontawesome.js",
    "searchindex.js",
    "searchtools.js",
    "sg-tags.js",
    "sphinx_highlight.js",
}
#: Scripts that the search page alone needs; they name no class of an element.
SEARCH = {"language_data.js", "minisearch.js", "sections.js"}
TABS = "design-tabs.js"  # needed where a page has tabs

_LINK = re.compile(r'[ \t]*<link\b[^>]*\brel="stylesheet"[^>]*>\n?')
_PRELOAD = re.compile(r'[ \t]*<link\b[^>]*\brel="preload"[^>]*as="script"[^>]*>\n?')
_SCRIPT = re.compile(r'[ \t]*<script\b([^>]*)\bsrc="([^"]*)"([^>]*)></script>\n?')
_INLINE = re.compile(r"<script\b(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL)
_IMPORT = re.compile(r"""@import\s+(?:url\()?["']([^"')]+)["']\)?\s*;""")
_HREF = re.compile(r'\bhref="([^"]*)"')
_TAG = re.compile(r"<[a-zA-Z][^<>]*>")
_WORD = re.compile(r"[\w-]+")
_NAME = re.compile(r"[.#]((?:\\.|[\w-])+)")

#: The fold of a section in the sidebar; a screen reader needs a name for it.
_FOLD = '<summary><span class="toctree-toggle"'
_NAMED_SUMMARY = '<summary aria-label="Pages of this section">'

#: Without script nothing listens to these buttons.
_NO_SCRIPT = "<style>.sidebar-toggle, .copybtn { display: none !important; }</style>"

GROUPS = ("media", "supports", "layer", "container")
LIGHT = re.compile(r"""\[data-theme=["']?light["']?\]""")
DARK = re.compile(r"""\[data-theme=["']?dark["']?\]""")
AUTO = '[data-theme="auto"]'  # what stands there without script


def words(texts: list[str], scripts: list[str]) -> set[str]:
    """Every word of the tags of pages and of scripts: what a selector may name."""
    tags = (tag for text in texts for tag in _TAG.findall(text))
    return {word for part in (*tags, *scripts) for word in _WORD.findall(part)}


def matches(selector: str, used: set[str]) -> bool:
    """Whether something on the site may match a selector."""
    asked = re.sub(r":(not|where|is)\([^()]*\)", "", selector)
    names = (name.replace("\\", "") for name in _NAME.findall(asked))
    return all(name in used for name in names)


def is_glyph(declaration) -> bool:
    """Whether a declaration paints a glyph of an icon font, or asks for the font."""
    value = tinycss2.serialize(declaration.value)
    if "Font Awesome" in value or "--fa-" in value:
        return True
    strings = (token.value for token in declaration.value if token.type == "string")
    return any("\ue000" <= letter <= "\uf8ff" for text in strings for letter in text)


#: What becomes of a rule, given its selectors and its declarations.
Rewrite = Callable[[list[str], list[tuple[str, str]]], Iterator[str]]


def rewritten(css: str, rewrite: Rewrite) -> str:
    """A stylesheet whose rules were rewritten, also those inside ``@media``.

    Parameters
    ----------
    css : str
        A stylesheet.
    rewrite : callable
        Takes selectors and pairs of property and value; yields rules.

    Raises
    ------
    ExtensionError
        If it is not CSS.
    """
    rules = tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)
    return "\n".join(_each(rules, rewrite))


def _each(rules: list, rewrite: Rewrite) -> Iterator[str]:
    for part in rules:
        if part.type == "error":
            raise ExtensionError(f"a stylesheet is not CSS: {part.message}")
        if part.type == "qualified-rule":
            selectors = split(tinycss2.serialize(part.prelude))
            yield from rewrite(selectors, declarations(part.content))
        elif part.lower_at_keyword in GROUPS and part.content is not None:
            inside = tinycss2.parse_rule_list(part.content, True, True)
            if text := "".join(_each(inside, rewrite)):
                head = tinycss2.serialize(part.prelude).strip()
                yield f"@{part.at_keyword} {head}{{{text}}}"
        elif part.lower_at_keyword != "charset" and not is_icon_font(part):
            yield part.serialize()


def is_icon_font(part) -> bool:
    """Whether an at-rule brings the icon font."""
    is_font = part.lower_at_keyword == "font-face"
    return is_font and "Font Awesome" in tinycss2.serialize(part.content)


def declarations(content: list) -> list[tuple[str, str]]:
    """Property and value of each declaration, without those of the icon font."""
    kept = []
    for item in tinycss2.parse_blocks_contents(content, True, True):
        if item.type == "declaration" and not is_glyph(item):
            value = tinycss2.serialize(item.value).strip()
            kept.append((item.name, value + "!important" * item.important))
    return kept


def rule(selectors: list[str], body: list[tuple[str, str]]) -> str:
    """The text of a rule."""
    text = ";".join(f"{name}:{value}" for name, value in body)
    return f"{','.join(selectors)}{{{text}}}"


def split(selectors: str) -> list[str]:
    """Selectors of a list, split at the commas outside of parentheses."""
    parts, depth = [""], 0
    for letter in selectors:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def purged(css: str, used: set[str]) -> str:
    """A stylesheet without rules for what is not among the words in use."""

    def keep(selectors, body):
        kept = [selector for selector in selectors if matches(selector, used)]
        if kept and body:
            yield rule(kept, body)

    return rewritten(css, keep)


def without_unread(css: str, elsewhere: set[str]) -> str:
    """A stylesheet without custom properties that neither it nor others read."""
    while True:
        read = elsewhere | set(re.findall(r"var\(\s*(--[\w-]+)", css))

        def keep(selectors, body, read=read):
            is_read = (not name.startswith("--") or name in read for name, _ in body)
            if kept := list(itertools.compress(body, is_read)):
                yield rule(selectors, kept)

        shorter = rewritten(css, keep)
        if shorter == css:
            return css
        css = shorter


def with_themes(css: str) -> str:
    """A stylesheet whose dark and light also hold without script, and light on paper.

    Without script ``data-theme`` stays "auto": then the reader's system decides.
    """

    def both(selectors, body):
        dark = [text for text in selectors if DARK.search(text)]
        if other := [text for text in selectors if text not in dark]:
            yield rule(other, body)
            if light := [text for text in other if LIGHT.search(text)]:
                auto = [LIGHT.sub(AUTO, text) for text in light]
                prefers = "@media print,(prefers-color-scheme:light)"
                yield f"{prefers}{{{rule(auto, body)}}}"
                paper = [LIGHT.sub('[data-theme="dark"]', text) for text in light]
                yield f"@media print{{{rule(paper, body)}}}"
        if dark:
            yield f"@media screen{{{rule(dark, body)}}}"
            auto = [DARK.sub(AUTO, text) for text in dark]
            prefers = "@media screen and (prefers-color-scheme:dark)"
            yield f"{prefers}{{{rule(auto, body)}}}"

    return rewritten(css, both)


def lean_head(html: str, sheet: str, options: str, is_search: bool) -> str:
    """A page that asks for one stylesheet, and late for the scripts that it needs.

    Parameters
    ----------
    html : str
        The page as Sphinx wrote it.
    sheet : str
        Address of the stylesheet, seen from the page.
    options : str
        The script ``documentation_options.js``, which becomes part of the page.
    is_search : bool
        Whether it is the page that searches.
    """
    first = _LINK.search(html)
    if first is None:
        return html
    link = f'    <link rel="stylesheet" href="{sheet}" />\n'
    html = html[: first.start()] + link + _LINK.sub("", html[first.start() :])
    html = _PRELOAD.sub("", html)
    html = html.replace(_FOLD, _FOLD.replace("<summary>", _NAMED_SUMMARY))
    html = html.replace("</noscript>", f"{_NO_SCRIPT}</noscript>", 1)

    def script(found: re.Match) -> str:
        name = Path(urlsplit(found[2]).path).name
        if name in UNNEEDED or (name == TABS and "sd-tab-set" not in html):
            return ""
        if name in SEARCH and not is_search:
            return ""
        if name == "documentation_options.js":
            return f"    <script>{options.strip()}</script>\n"
        if "defer" in found[1] + found[3]:
            return found[0]
        return found[0].replace("<script", "<script defer")

    return _SCRIPT.sub(script, html)


def make_lean(app: Sphinx, exception: Exception | None) -> None:
    """Give all pages of a finished HTML build one small stylesheet.

    Raises
    ------
    ExtensionError
        If a page asks for a stylesheet that is not there, or one needs another file.
    """
    if exception is not None or app.builder.name != "html":
        return
    root = Path(app.outdir)
    pages = {
        path: path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*.html"))
        if "_static" not in path.relative_to(root).parts
    }
    sheets, scripts = asked_for(pages, root)
    used = words(list(pages.values()), scripts)
    css = "\n".join(purged(with_imports(sheet), used) for sheet in sheets)
    css = with_themes(without_unread(css, {w for w in used if w.startswith("--")}))
    if other := re.search(r"url\(\s*(?![\"']?(?:data:|#))[^)]*\)", css):
        raise ExtensionError(f"the stylesheet needs another file: {other[0]}")
    digest = hashlib.sha256(css.encode()).hexdigest()[:8]
    name = f"_static/site-{digest}.css"
    (root / name).write_text(css, encoding="utf-8")
    options = (root / "_static/documentation_options.js").read_text(encoding="utf-8")
    for path, html in pages.items():
        up = "../" * (len(path.relative_to(root).parts) - 1)
        html = lean_head(html, up + name, options, path.name == "search.html")
        path.write_text(html, encoding="utf-8")
    for path in leftovers(root):
        path.unlink()


def asked_for(pages: dict[Path, str], root: Path) -> tuple[list[Path], list[str]]:
    """Stylesheets that pages ask for, in their order, and the texts of scripts."""
    sheets: dict[Path, None] = {}
    scripts: dict[Path, None] = {}
    for path, html in pages.items():
        links = [_HREF.search(link)[1] for link in _LINK.findall(html)]
        sources = [source for _, source, _ in _SCRIPT.findall(html)]
        for found, addresses in ((sheets, links), (scripts, sources)):
            for address in addresses:
                file = (path.parent / urlsplit(address).path).resolve()
                if not file.is_file():
                    raise ExtensionError(f"{path.relative_to(root)}: no file {address}")
                found[file] = None
    texts = [
        file.read_text(encoding="utf-8")
        for file in scripts
        if file.name not in UNNEEDED | SEARCH
    ]
    inline = [text for html in pages.values() for text in _INLINE.findall(html)]
    return list(sheets), texts + inline


def with_imports(sheet: Path) -> str:
    """The text of a stylesheet, with those that it imports in their place.

    Raises
    ------
    ExtensionError
        If one of them is not there.
    """

    def imported(found: re.Match) -> str:
        file = sheet.parent / found[1]
        if not file.is_file():
            raise ExtensionError(f"{sheet.name} imports {found[1]}, which is not there")
        return with_imports(file)

    return _IMPORT.sub(imported, sheet.read_text(encoding="utf-8"))


def leftovers(root: Path) -> list[Path]:
    """Files of the theme that no page asks for any more."""
    static = root / "_static"
    found = [*static.glob("**/*.map"), *static.glob("vendor/**/*.*")]
    found += [path for path in static.glob("**/*.css") if path.parent != static]
    found += [static / "scripts" / name for name in ("bootstrap.js", "fontawesome.js")]
    return [path for path in found if path.is_file()]


def setup(app: Sphinx) -> dict:
    """Run when the pages are written, after every other extension."""
    app.connect("build-finished", make_lean, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
