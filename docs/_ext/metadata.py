"""What search engines and link previews read of a page, a sitemap, a page for 404.

The description is what a page promises: its first paragraph. Whatever names the site's
address (canonical link, preview picture, sitemap) is left out where nobody has told it:
``SITE_URL`` becomes ``html_baseurl``.

Why not the extensions that exist? sphinxext-opengraph describes a page by its first
letters, across paragraphs and cards, and writes addresses without a site.
sphinx-sitemap lists pages in the order in which they were written, and warns without an
address. sphinx-notfound-page needs absolute paths, which lead nowhere from the disk.
"""

from __future__ import annotations

import html
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import urlsplit

import address
from docutils import nodes
from figures import CARD, PairImage, card_file
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError

LENGTH = 160  # letters that a search engine shows of a description
#: Pages that Sphinx makes, which have no paragraph of their own.
MADE = {"genindex": "Every term of the glossary, in alphabetical order."}
HIDDEN = {"search", "404"}  # nothing that somebody searches for
SITEMAP = "sitemap.xml"

_VIEWPORT = re.compile(r'\s*<meta\b[^>]*\bname="viewport"[^>]*>')


def shortened(text: str, length: int = LENGTH) -> str:
    """Whole sentences of a text that fit, or what fits of the first one."""
    text = " ".join(text.split())
    if len(text) <= length:
        return text
    ends = [found.end() for found in re.finditer(r"[.?!](?= )", text)]
    if fitting := [end for end in ends if end <= length]:
        return text[: fitting[-1]]
    return text[: text.rindex(" ", 0, length)].rstrip(",;:") + "…"


def description(doctree: nodes.document) -> str:
    """The first paragraph of a page that stands in no box, shortened."""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section):
            return shortened(paragraph.astext())
    return ""


def tag(kind: str, name: str, content: str) -> str:
    """A ``<meta>`` element."""
    return f'<meta {kind}="{name}" content="{html.escape(content)}" />'


def location(app: Sphinx, name: str) -> str:
    """The address of a page; an index goes by the name of its folder."""
    target = app.builder.get_target_uri(name).removesuffix("index.html")
    return app.config.html_baseurl + target


def first_figure(app: Sphinx, doctree: nodes.document) -> tuple[Path, str] | None:
    """The card made of the first figure of a page, and the figure's alt sentence."""
    for image in doctree.findall(PairImage):
        card = card_file(Path(app.srcdir, image["uri"].lstrip("/")))
        return (card, image["alt"]) if card.is_file() else None
    return None


def add_tags(app: Sphinx, name: str, template: str, context: dict, doctree) -> None:
    """Put the tags of a page into its head."""
    if app.builder.name != "html":
        return
    tags = []
    if name in HIDDEN:
        context["pageurl"] = None
        tags.append(tag("name", "robots", "noindex"))
        if name == "404" and app.config.html_baseurl:
            # It is shown at any address, from where a relative link leads nowhere.
            folder = html.escape(urlsplit(app.config.html_baseurl).path)
            tags.append(f'<base href="{folder}" />')
    elif doctree is None:
        tags += [tag("name", "description", MADE[name])] if name in MADE else []
    else:
        tags += tags_of_page(app, name, context, doctree)
    if app.config.html_baseurl and name not in HIDDEN:
        context["pageurl"] = location(app, name)
    told = _VIEWPORT.sub("", context.get("metatags", ""))  # the layout says it
    context["metatags"] = told + "".join(f"\n    {text}" for text in tags)


def tags_of_page(app: Sphinx, name: str, context: dict, doctree) -> list[str]:
    """Description and preview of a page."""
    text = description(doctree)
    title = html.unescape(re.sub(r"<[^>]*>", "", context["title"]))
    is_home = name == app.config.root_doc
    tags = [
        tag("property", "og:type", "website" if is_home else "article"),
        tag("property", "og:site_name", app.config.project),
        tag("property", "og:title", title),
    ]
    if given := re.search(r'<meta[^>]*name="description"[^>]*>', context["metatags"]):
        text = html.unescape(re.search(r'content="([^"]*)"', given[0])[1])
    elif text:
        tags.append(tag("name", "description", text))
    if text:
        tags.append(tag("property", "og:description", text))
    if not app.config.html_baseurl:
        return tags
    tags.append(tag("property", "og:url", location(app, name)))
    home = app.env.get_doctree(app.config.root_doc)
    if figure := first_figure(app, doctree) or first_figure(app, home):
        card, alt = figure
        images = Path(app.outdir, app.builder.imagedir)
        images.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(card, images / card.name)
        picture = f"{app.config.html_baseurl}{app.builder.imagedir}/{card.name}"
        tags += [
            tag("property", "og:image", picture),
            tag("property", "og:image:width", str(CARD[0])),
            tag("property", "og:image:height", str(CARD[1])),
            tag("property", "og:image:alt", alt),
            tag("name", "twitter:card", "summary_large_image"),
        ]
    return tags


def sitemap(places: list[str]) -> bytes:
    """A sitemap of addresses, in their order."""
    root = ET.Element("urlset", xmlns="http://www.sitemaps.org/schemas/sitemap/0.9")
    for place in places:
        ET.SubElement(ET.SubElement(root, "url"), "loc").text = place
    ET.indent(root)
    return ET.tostring(root, "utf-8", xml_declaration=True) + b"\n"


def check_address(app: Sphinx, config: Config) -> None:
    """Refuse an address that is none, before anything runs."""
    try:
        config.html_baseurl = address.checked(config.html_baseurl)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def forget_earlier(app: Sphinx) -> None:
    """Remove what an earlier build with another address may have left."""
    Path(app.outdir, SITEMAP).unlink(missing_ok=True)
    for card in Path(app.outdir, "_images").glob(card_file(Path("*")).name):
        card.unlink()


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Write the sitemap; mend links within the page for 404."""
    if exception is not None or app.builder.name != "html":
        return
    if not app.config.html_baseurl:
        return
    places = [location(app, name) for name in sorted(app.env.found_docs)]
    Path(app.outdir, SITEMAP).write_bytes(sitemap(places))
    lost = Path(app.outdir, "404.html")
    if lost.is_file():  # its <base> would lead "#place" to the home page
        text = lost.read_text(encoding="utf-8")
        lost.write_text(text.replace('href="#', 'href="404.html#'), encoding="utf-8")


def setup(app: Sphinx) -> dict:
    """Run on each page and at the end."""
    app.connect("config-inited", check_address)
    app.connect("builder-inited", forget_earlier)
    app.connect("html-page-context", add_tags)
    app.connect("build-finished", finish, priority=400)  # as `sections` does
    return {"parallel_read_safe": True, "parallel_write_safe": True}
