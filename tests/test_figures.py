"""The scraper that turns figures into light and dark SVG."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import figures
import matplotlib.pyplot as plt
import pytest
import sites
from matplotlib.colors import to_hex
from sphinx_gallery.scrapers import ImagePathIterator


@pytest.fixture
def scrape(tmp_path):
    """Run the scraper on what is open; returns its text and its folder."""
    plt.close("all")
    (tmp_path / "images").mkdir()
    names = ImagePathIterator(str(tmp_path / "images" / "page_{0:03}.png"))

    def call() -> str:
        block = SimpleNamespace(lineno=7, content="a\nb\nc\n")
        block_vars = {"src_file": "/x/assemble/page.py", "image_path_iterator": names}
        return figures.svg_pair(block, block_vars, {"src_dir": str(tmp_path)})

    with plt.style.context(figures.STYLE):
        yield call
    plt.close("all")


def draw(label: str = "A line goes up.", **look) -> plt.Figure:
    """A figure with an alt sentence."""
    fig, ax = plt.subplots()
    fig.set_label(label)
    ax.plot([0, 1], **look)
    return fig


def images(tmp_path: Path) -> dict[str, str]:
    """Text of each SVG that the scraper wrote."""
    return {path.name: path.read_text() for path in (tmp_path / "images").glob("*.svg")}


def test_a_figure_becomes_a_pair_of_one_size(scrape, tmp_path):
    draw()
    text = scrape()
    files = images(tmp_path)
    assert set(files) == {"page_001.svg", "page_001_dark.svg"}
    assert figures.size(files["page_001.svg"]) == figures.size(
        files["page_001_dark.svg"]
    )
    assert ".. figure-pair:: /images/page_001.svg\n    :alt: A line goes up.\n" in text
    assert plt.get_fignums() == []


def test_two_figures_of_a_block_keep_their_order(scrape, tmp_path):
    draw("First.")
    draw("Second.")
    text = scrape()
    assert re.findall(r":alt: (.*)", text) == ["First.", "Second."]
    assert len(images(tmp_path)) == 4


@pytest.mark.parametrize("shape", [(6, 1), (2, 6)])
def test_the_first_figure_becomes_a_card_of_one_size(scrape, tmp_path, shape):
    draw("First.").set_size_inches(shape)
    draw("Second.")
    scrape()
    (card,) = (tmp_path / "images").glob("*.png")
    assert card.name == "page_001_card.png"
    pixels = plt.imread(card)
    assert pixels.shape[:2] == (630, 1200)
    ink = (pixels[..., :3] < 0.9).any(axis=2)
    margins = []
    for axis in (0, 1):  # in the middle, whole, and as large as fits
        places = ink.any(axis=axis).nonzero()[0]
        before, after = places[0], ink.shape[1 - axis] - 1 - places[-1]
        assert abs(before - after) <= 5
        margins.append(before)
    assert 10 < min(margins) < 80


def test_a_card_is_the_same_in_each_build():
    cards = set()
    for _ in range(2):
        with plt.style.context(figures.STYLE):
            cards.add(figures.to_card(draw()))
        plt.close("all")
    assert len(cards) == 1
    assert b"Software" not in cards.pop()


def test_dark_differs_in_colours_only(scrape, tmp_path):
    draw(color="C1")
    scrape()
    files = images(tmp_path)
    light, dark = files["page_001.svg"], files["page_001_dark.svg"]
    blank = re.compile(r"#[0-9a-f]{6}|fill=\"\"")
    dark_plain = dark.replace(f'<svg fill="{figures.DARK["#000000"]}" ', "<svg ", 1)
    assert blank.sub("", light) == blank.sub("", dark_plain)
    assert "#c04a00" in light
    assert "#c04a00" not in dark
    assert "#ff8a3d" in dark


def test_the_same_drawing_gives_the_same_bytes(scrape, tmp_path):
    first = draw()
    second = draw()
    assert figures.to_svg(first, "s") == figures.to_svg(second, "s")
    assert "<dc:date>" not in figures.to_svg(first, "s")


def test_salt_keeps_ids_apart(scrape):
    figure = draw(marker="o")
    ids = [re.findall(r'id="(m[0-9a-f]+)"', figures.to_svg(figure, s)) for s in "ab"]
    assert ids[0]
    assert not set(ids[0]) & set(ids[1])


@pytest.mark.parametrize("label", ["", "no full stop"])
def test_a_figure_without_alt_sentence_names_its_lines(scrape, label):
    draw(label)
    with pytest.raises(figures.FigureError) as caught:
        scrape()
    assert str(caught.value).startswith("assemble/page.py:7-9: figure without an alt")
    assert plt.get_fignums() == [], "the scraper must leave nothing open"


def test_a_colour_outside_the_style_is_named(scrape, tmp_path):
    draw(color="hotpink")
    with pytest.raises(
        figures.FigureError, match=r"page\.py:7-9: colour #ff69b4 is not"
    ):
        scrape()
    assert images(tmp_path) == {}, "nothing half-made"


def test_a_heavy_figure_is_refused(scrape):
    _fig, ax = plt.subplots()
    plt.gcf().set_label("A cloud of points.")
    ax.scatter(range(2000), range(2000))
    with pytest.raises(figures.FigureError, match=r"figure of \d+ bytes, limit 30000"):
        scrape()


def test_every_colour_of_the_style_has_a_dark_one():
    text = figures.STYLE.read_text()
    cycle = re.findall(r"'([0-9a-f]{6})'", text)
    named = re.findall(r"^[\w.]+color: (\w+)$", text, re.MULTILINE)
    named = [f"#{c}" if re.fullmatch(r"[0-9a-f]{6}", c) else c for c in named]
    assert len(cycle) == 6
    assert "black" in named
    used = {to_hex(c) for c in [*named, "w", "gray"] if c != "none"}
    assert used | {f"#{c}" for c in cycle} == figures.DARK.keys()


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb`` (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours (WCAG 2.2)."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_on_bands_and_on_paper_is_legible_in_both_modes():
    with plt.style.context(figures.STYLE):
        cycle = plt.rcParams["axes.prop_cycle"].by_key()["color"]
    for band in map(to_hex, cycle):
        assert contrast(band, "#ffffff") >= 4.5
        assert contrast(figures.DARK[band], figures.DARK["#ffffff"]) >= 4.5
    for ink in ("#000000", "#59636e"):
        assert contrast(ink, "#ffffff") >= 4.5
        assert contrast(figures.DARK[ink], "#14181e") >= 4.5


#: Linear RGB as seen with full protanopia, deuteranopia and tritanopia
#: (Machado, Oliveira and Fernandes 2009, doi:10.1109/TVCG.2009.113, severity 1.0).
SIGHT = {
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def lab(colour: str, matrix: list[list[float]]) -> list[float]:
    """OKLab coordinates of a colour seen through a matrix of `SIGHT`."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]

    def times(rows, vector):
        return [sum(a * b for a, b in zip(row, vector)) for row in rows]

    seen = [max(0.0, value) for value in times(matrix, linear)]
    to_cone = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    to_lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return times(to_lab, [value ** (1 / 3) for value in times(to_cone, seen)])


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHT)
def test_neighbouring_bands_differ_for_colour_blind_readers(sight, mode):
    with plt.style.context(figures.STYLE):
        cycle = map(to_hex, plt.rcParams["axes.prop_cycle"].by_key()["color"])
    bands = [band if mode == "light" else figures.DARK[band] for band in cycle]
    for one, other in zip(bands, bands[1:] + bands[:1]):
        seen = lab(one, SIGHT[sight]), lab(other, SIGHT[sight])
        distance = sum((a - b) ** 2 for a, b in zip(*seen)) ** 0.5
        assert distance > 0.1, f"{one} and {other} look alike"


@pytest.fixture
def project(tmp_path):
    """Build a one-page site around ``body``; returns its HTML and its warnings."""

    def build(body: str, **settings) -> tuple[str, str]:
        source, out = tmp_path / "source", tmp_path / "out"
        source.mkdir(exist_ok=True)
        (source / "index.rst").write_text(f"Title\n=====\n\n{body}\n")
        warnings = sites.build(source, out, extensions=["figures"], **settings)
        return (out / "index.html").read_text(), warnings

    return build


def test_the_page_gets_two_images_with_size_escaped_alt_and_files(
    scrape, tmp_path, project
):
    draw('A line goes "up" & <on>.')
    text = scrape()
    (tmp_path / "images").rename(tmp_path / "source_images")
    (tmp_path / "source").mkdir()
    (tmp_path / "source_images").rename(tmp_path / "source" / "images")
    html, warnings = project(text)
    assert warnings == ""
    light = (tmp_path / "source" / "images" / "page_001.svg").read_text()
    width, height = figures.size(light)
    for name, mode in (("page_001", "light"), ("page_001_dark", "dark")):
        (tag,) = re.findall(rf"<img [^>]*only-{mode}[^>]*>", html)
        assert f'src="_images/{name}.svg"' in tag
        assert f'width="{width}"' in tag
        assert f'height="{height}"' in tag
        assert 'loading="lazy"' in tag
        assert 'alt="A line goes &quot;up&quot; &amp; &lt;on&gt;."' in tag
        assert (tmp_path / "out" / "_images" / f"{name}.svg").exists()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (".. figure-pair:: /x.svg\n    :alt: It is.", "no file x.svg with a dark one"),
        (".. figure-pair:: /x.svg\n    :alt: no stop", "needs an :alt: sentence"),
        (".. figure-pair:: /x.svg", "needs an :alt: sentence"),
    ],
)
def test_a_pair_that_cannot_be_shown_is_named_with_its_line(project, body, expected):
    html, warnings = project(body)
    assert "<img" not in html
    assert "index.rst:4" in warnings
    assert expected in warnings


def test_a_page_alone_leaves_out_figures_of_pages_that_never_ran(project):
    html, warnings = project(
        ".. figure-pair:: /x.svg\n    :alt: It is.", page_alone=True
    )
    assert warnings == ""
    assert "<img" not in html
