"""Figures: each open matplotlib figure becomes a light and a dark SVG.

A page only draws. Its look comes from ``site.mplstyle``, which `page_run` applies, and
this scraper saves what it finds: once, with ids that do not change between builds. The
dark file is the same drawing with the style's colours mapped, so the two cannot differ
in anything else.
"""

from __future__ import annotations

import io
import posixpath
import re
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

STYLE = Path(__file__).with_name("site.mplstyle")

#: Every colour a figure may use, and what it becomes on a dark page.
DARK = {
    "#000000": "#e6edf3",  # black: text, notches
    "#ffffff": "#14181e",  # white: gaps between bands, text on bands
    "#59636e": "#a9b4c0",  # axes, ticks, hatching
    "#808080": "#98a2ad",  # gray: padding
    "#d3d3d3": "#3d444d",  # lightgray: helper lines
    "#0072b2": "#6bb8ff",  # C0 blue
    "#c04a00": "#ff8a3d",  # C1 vermilion
    "#7d3c98": "#c58af0",  # C2 purple
    "#007a59": "#2fae80",  # C3 green
    "#343d47": "#dde4ea",  # C4 slate
    "#8a6a00": "#d9b84a",  # C5 ochre
}

CARD = (1200, 630)  # pixels of a link preview, as the sites that show them advise
LIMIT = 30_000  # bytes of one SVG; heavier figures slow a phone down

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"')


class FigureError(Exception):
    """A figure that may not go on a page, with the page and the line."""


def dark(svg: str) -> str:
    """Map the style's colours in an SVG text to their dark counterparts.

    Raises
    ------
    FigureError
        If a colour has no dark counterpart: it might vanish on a dark page.
    """
    unknown = sorted({c.lower() for c in _COLOUR.findall(svg)} - DARK.keys())
    if unknown:
        raise FigureError(
            f"colour {', '.join(unknown)} is not in the site's style; use 'C0' to "
            "'C5', 'black', 'white', 'gray' or 'lightgray'"
        )
    mapped = _COLOUR.sub(lambda match: DARK[match.group().lower()], svg)
    # matplotlib leaves black fills out, as the default: give the file another default.
    return mapped.replace("<svg ", f'<svg fill="{DARK["#000000"]}" ', 1)


def size(svg: str) -> tuple[int, int]:
    """Width and height of an SVG text in CSS pixels."""
    match = _SIZE.search(svg)
    if match is None:
        raise FigureError("the SVG has no width and height in points")
    return tuple(round(float(points) * 4 / 3) for points in match.groups())


def to_svg(figure, salt: str) -> str:
    """Save a matplotlib figure as SVG text that is the same in every build.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    salt : str
        Seeds the ids inside the file; must differ between figures of one page.
    """
    import matplotlib

    buffer = io.StringIO()
    # Set here and not in the style: sphinx-gallery resets the parameters on its own.
    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        figure.savefig(
            buffer,
            format="svg",
            bbox_inches="tight",
            transparent=True,
            metadata={"Date": None, "Creator": None},
        )
    return buffer.getvalue()


def to_card(figure) -> bytes:
    """Save a matplotlib figure as the PNG of a link preview: 1200 by 630, on white.

    Sites that show previews read no SVG. The figure is not drawn anew: the section of
    the paper that is saved gets the shape of a card, with the figure in the middle.
    """
    from matplotlib.transforms import Bbox

    figure.canvas.draw()
    box = figure.get_tightbbox().padded(0.2)
    width, height = CARD
    scale = max(box.width / width, box.height / height)  # inches a pixel
    half = width * scale / 2, height * scale / 2
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    buffer = io.BytesIO()
    figure.savefig(
        buffer,
        format="png",
        dpi=1 / scale,
        bbox_inches=Bbox([[x - half[0], y - half[1]], [x + half[0], y + half[1]]]),
        facecolor="white",
        metadata={"Software": None},
    )
    return buffer.getvalue()


def svg_pair(block, block_vars, gallery_conf) -> str:
    """Scraper for sphinx-gallery: save all open figures, return their directives.

    Raises
    ------
    FigureError
        If a figure has no alt sentence, a colour outside the style, or is too heavy.
        sphinx-gallery turns that into a failure of the page, after closing the block.
    """
    import matplotlib.pyplot as plt

    figures = [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")  # first, so that an error below leaves nothing open
    page = Path(block_vars["src_file"])
    last_line = block.lineno + block.content.rstrip("\n").count("\n")
    rst = []
    for figure in figures:
        where = f"{page.parent.name}/{page.name}:{block.lineno}-{last_line}"
        alt = " ".join(figure.get_label().split())
        if not alt.endswith("."):
            raise FigureError(
                f"{where}: figure without an alt sentence; state its finding with "
                'fig.set_label("…."), ending with a full stop'
            )
        path = Path(next(block_vars["image_path_iterator"])).with_suffix(".svg")
        svg = to_svg(figure, salt=path.stem)
        if len(svg.encode()) > LIMIT:
            raise FigureError(f"{where}: figure of {len(svg)} bytes, limit {LIMIT}")
        try:
            dark_svg = dark(svg)
        except FigureError as error:
            raise FigureError(f"{where}: {error}") from None
        path.write_text(svg, encoding="utf-8")
        dark_file(path).write_text(dark_svg, encoding="utf-8")
        if path.stem.endswith("_001"):  # the first of the page stands for it elsewhere
            card_file(path).write_bytes(to_card(figure))
        source = path.relative_to(gallery_conf["src_dir"]).as_posix()
        rst.append(f"\n.. figure-pair:: /{source}\n    :alt: {alt}\n\n")
    return "\n".join(rst)


def dark_file(light: Path) -> Path:
    """Path of the dark file that belongs to a light one."""
    return light.with_name(f"{light.stem}_dark.svg")


def card_file(light: Path) -> Path:
    """Path of the link preview that is made of a page's first figure."""
    return light.with_name(f"{light.stem}_card.png")


class PairImage(nodes.image):
    """An image with real width and height attributes; Sphinx collects its file."""


def pair(light: Path, place: Path, alt: str) -> nodes.container:
    """A figure in light and dark, of which the theme shows the one that fits.

    Parameters
    ----------
    light : Path
        File of the light one; the dark one lies beside it.
    place : Path
        The same file, seen from the source folder.
    alt : str
        A sentence, or "" where the text around it says as much.
    """
    px = size(light.read_text(encoding="utf-8"))
    box = nodes.container(classes=["figure-pair"])
    for file, mode in ((place, "light"), (dark_file(place), "dark")):
        uri = f"/{file.as_posix()}"
        box += PairImage(uri=uri, alt=alt, classes=[f"only-{mode}"], px=px)
    return box


class FigurePair(SphinxDirective):
    """``.. figure-pair:: /path/light.svg`` with an alt sentence, in two modes.

    Size and dark file are found from the light one. With ``page_alone`` set, other
    pages may never have run: then a missing figure is left out instead of refused.
    """

    required_arguments = 1
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Two images of one size; the theme shows the one that fits the page."""
        alt = self.options.get("alt", "")
        if not alt.endswith("."):
            raise self.error("figure-pair needs an :alt: sentence with a full stop")
        relative, path = self.env.relfn2path(self.arguments[0])
        light = Path(path)
        if not (light.exists() and dark_file(light).exists()):
            if self.config.page_alone:
                return []
            raise self.error(f"figure-pair: no file {relative} with a dark one beside")
        self.env.note_dependency(relative)
        return [pair(light, Path(relative), alt)]


def visit_pair_image(self, node: PairImage) -> None:
    """Write one ``<img>``; attributes are escaped by docutils' own writer."""
    uri = node["uri"]
    if uri in self.builder.images:
        name = quote(self.builder.images[uri])
        uri = posixpath.join(self.builder.imgpath, name)
    width, height = node["px"]
    self.body.append(
        self.emptytag(
            node,
            "img",
            "\n",
            src=uri,
            alt=node["alt"],
            width=str(width),
            height=str(height),
            loading="lazy",
            decoding="async",
        )
    )
    raise nodes.SkipNode


def setup(app) -> dict:
    """Register the directive and its node."""
    app.add_config_value("page_alone", False, "env", bool)
    app.add_node(PairImage, html=(visit_pair_image, None))
    app.add_directive("figure-pair", FigurePair)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
