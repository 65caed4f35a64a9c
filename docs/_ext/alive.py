"""Figures that a reader can move: ``.. alive:: recut`` and ``.. alive:: starts``.

The directive stands right below a cell of a page. When that cell has run, `after_cell`
evaluates the directive's expressions among the page's own names and keeps what comes
out beside the page's images: so the numbers are those of the page, and they are still
there when the page need not run again. At reading time the directive draws the figure
from them, as it is without script and on paper. A script of at most 3 kB then draws the
same again for other values; tests compare the two.

Positions are percentages of the width, so that text and marks keep their size on a
phone.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import asdict, dataclass
from math import ceil, degrees
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from figures import FigureError
from measured import count
from sphinx.util.docutils import SphinxDirective
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

_DIRECTIVE = re.compile(r"^\.\. alive:: *(\S*) *\n((?: +\S.*\n)*)", re.MULTILINE)
_OPTION = re.compile(r"^ +:(\w+): *(.*?) *$", re.MULTILINE)

COLOURS = 6  # of the cycle of site.mplstyle
NARROW, WIDE = 290, 600  # pixels that a figure has on a small phone, and elsewhere
LABEL = 20  # pixels that the number of a band needs


@dataclass(frozen=True)
class Steps:
    """Steps in a row, as a figure needs to know them.

    Attributes
    ----------
    kind : str
        Of the figure, a key of `KINDS`.
    start : int
        Where its slider stands at first.
    ids, lengths : list of int
        Number and length of each trajectory.
    ends : list of str
        How each ended: ``terminated``, ``truncated``, or ``running`` (the last one).
    cart : list of (float, float)
        Place of the cart and angle of the pole at each step; empty without a cart.
    """

    kind: str
    start: int
    ids: list
    lengths: list
    ends: list
    cart: list

    @property
    def total(self) -> int:
        """How many steps there are."""
        return sum(self.lengths)

    def bounds(self) -> list[tuple[int, int]]:
        """First step of each trajectory, and the one after its last."""
        stops = [sum(self.lengths[: n + 1]) for n in range(len(self.lengths))]
        return [(stop - n, stop) for stop, n in zip(stops, self.lengths, strict=True)]


def measure(kind: str, steps: Any, start: int, with_cart: bool) -> Steps:
    """What a figure needs to know of a TensorDict with one dimension, time.

    Raises
    ------
    ValueError
        If a trajectory stops without an end before the last one does.
    """
    runs, lengths = steps["collector", "traj_ids"].unique_consecutive(
        return_counts=True
    )
    last, after = lengths.cumsum(0) - 1, steps["next"]
    ends = []
    for index in last.tolist():
        flags = ("terminated", "truncated")
        how = [flag for flag in flags if after[flag][index].item()]
        ends.append(how[0] if how else "running")
    if "running" in ends[:-1]:
        number = runs.tolist()[ends.index("running")]
        raise ValueError(f"trajectory {number} has no end")
    cart = steps["observation"][:, ::2].tolist() if with_cart else []
    pairs = [[round(x, 3), round(angle, 3)] for x, angle in cart]
    return Steps(kind, int(start), runs.tolist(), lengths.tolist(), ends, pairs)


# -- What the two figures show ---------------------------------------------------------


def percent(part: float, whole: float) -> str:
    """A part of the width."""
    return f"{round(100 * part / whole, 4):g}%"


def box(name: str, first: int, stop: int, total: int, y: int, height: int) -> str:
    """A rectangle over some steps."""
    x, width = percent(first, total), percent(stop - first, total)
    return (
        f'<rect class="alive-{name}" x="{x}" width="{width}" y="{y}" '
        f'height="{height}"/>'
    )


def veil(first: int, stop: int, total: int) -> str:
    """A veil over steps that do not count."""
    return box("veil", first, stop, total, 16, 44)


class Recut:
    """The same episodes in batches of another size."""

    label = "frames_per_batch"

    @staticmethod
    def limits(steps: Steps) -> tuple[int, int]:
        """From the shortest trajectory that has ended to a single batch."""
        ended = zip(steps.lengths, steps.ends, strict=True)
        shortest = min((n for n, end in ended if end != "running"), default=1)
        return shortest, steps.total

    @staticmethod
    def marks(steps: Steps, size: int) -> str:
        """A bar for each full batch, a torn or a clean edge at its end."""
        total = steps.total
        stop = total // size * size
        svg = ""
        for end in range(size, stop + 1, size):
            svg += box("bar", end - size, end, total, 2, 7)
            is_torn = end == total and steps.ends[-1] == "running"
            is_torn |= any(first < end < last for first, last in steps.bounds())
            kind = "torn" if is_torn else "clean"
            svg += f'<use href="#alive-{kind}" x="{percent(end, total)}"/>'
        return svg + (veil(stop, total, total) if stop < total else "")

    @staticmethod
    def says(steps: Steps, size: int) -> str:
        """How many episodes the full batches hold whole, and how many torn."""
        batches = steps.total // size
        stop = batches * size
        whole = torn = 0
        for (first, last), end in zip(steps.bounds(), steps.ends, strict=True):
            if first < stop:
                same = last <= stop and first // size == (last - 1) // size
                whole += same and end != "running"
                torn += not same or end == "running"
        rest = steps.total - stop
        left = f" {count(rest, 'step')} left for the next batch." if rest else ""
        noun = "batch" if batches == 1 else "batches"
        return (
            f"{batches} {noun} of {count(size, 'step')}: "
            f"{count(whole, 'whole episode')}, {torn} torn.{left}"
        )


class Starts:
    """The rows of a buffer where a slice of some length may start."""

    label = "slice_len"

    @staticmethod
    def limits(steps: Steps) -> tuple[int, int]:
        """From single steps to a length that no trajectory has."""
        return 1, max(steps.lengths) + 1

    @staticmethod
    def marks(steps: Steps, size: int) -> str:
        """Light over the legal starts, a veil over what can never be drawn."""
        svg = ""
        for first, stop in steps.bounds():
            if stop - first < size:
                svg += veil(first, stop, steps.total)
            else:
                svg += box("lit", first, stop - size + 1, steps.total, 2, 9)
        return svg

    @staticmethod
    def says(steps: Steps, size: int) -> str:
        """How many starts are legal, and how many rows are out of reach."""
        enough = [n for n in steps.lengths if n >= size]
        starts = sum(n - size + 1 for n in enough)
        out = steps.total - sum(enough)
        return (
            f"slice_len {size}: {count(starts, 'legal start')}, in {len(enough)} of "
            f"{count(len(steps.lengths), 'trajectory').replace('ys', 'ies')}; {out} of "
            f"{count(steps.total, 'row')} can never be drawn."
        )


KINDS = {"recut": Recut, "starts": Starts}

_ZIGZAG = "M0 14l-3 4 6 8-6 8 6 8-6 8 6 8-3 4"

#: Drawn once and used wherever a mark is needed.
MARKS = f"""<defs>
<g id="alive-torn"><path class="alive-halo" d="{_ZIGZAG}"/><path d="{_ZIGZAG}"/></g>
<g id="alive-clean"><path class="alive-halo" d="M0 14v48"/><path d="M0 14v48"/></g>
<path id="alive-terminated" d="M-10 20h9l-4.5 8z"/>
<path id="alive-truncated" d="M-10 20h9l-4.5 8z"/>
<path id="alive-pointer" d="M0 12v52m-5 8l5-8 5 8z"/>
</defs>"""


def bands(steps: Steps) -> str:
    """The ribbon: a band for each trajectory, its number, how it ended; an axis."""
    total, svg = steps.total, ""
    rows = zip(steps.bounds(), steps.ids, steps.ends, strict=True)
    for (first, stop), number, end in rows:
        svg += box(f"c{number % COLOURS}", first, stop, total, 18, 40)
        share = (stop - first) / total
        if share * WIDE >= LABEL:
            kind = "id" if share * NARROW >= LABEL else "id alive-roomy"
            x = percent((first + stop) / 2, total)
            svg += f'<text class="alive-{kind}" x="{x}" y="49">{number}</text>'
        if end != "running":
            svg += f'<use href="#alive-{end}" x="{percent(stop, total)}"/>'
    for tick in range(0, total + 1, 50 if total <= 200 else 100):
        place = {0: "start", total: "end"}.get(tick, "middle")
        x = percent(tick, total)
        svg += f'<line class="alive-tick" x1="{x}" x2="{x}" y1="62" y2="68"/>'
        svg += f'<text text-anchor="{place}" x="{x}" y="84">{tick}</text>'
    return svg


def range_input(name: str, label: str, low: int, high: int, value: int) -> str:
    """A native slider with a label that can be seen."""
    return (
        f'<label><span>{label}</span><input type="range" name="{name}" min="{low}" '
        f'max="{high}" value="{value}" autocomplete="off"></label>'
    )


def scene(steps: Steps) -> tuple[str, str]:
    """The cart at the last step of the first trajectory, and what moves it."""
    step = steps.lengths[0] - 1
    x, angle = steps.cart[step]
    half = ceil(10 * max(abs(x) for x, _ in steps.cart)) / 10 + 0.5
    svg = (
        f'<svg class="alive-scene" viewBox="{-half:g} -1.4 {2 * half:g} 1.5" '
        'role="img" aria-label="The cart and its pole, at the step of the cursor.">'
        f'<path class="alive-track" d="M{-half:g} 0h{2 * half:g}"/>'
        f'<g class="alive-cart" transform="translate({x:g})">'
        '<path class="alive-body" d="M-.2-.12h.4v.24h-.4z"/>'
        '<path class="alive-pole" d="M0-.06v-1" '
        f'transform="rotate({degrees(angle):.1f} 0 -.06)"/></g></svg>'
    )
    slider = range_input("step", "step", 0, steps.total - 1, step)
    return svg, f'{slider}<button type="button">Play</button>'


def figure(steps: Steps, alt: str) -> tuple[str, str]:
    """The HTML of a figure, before and after its caption.

    Parameters
    ----------
    steps : Steps
        What it shows, and where its slider stands.
    alt : str
        A sentence in its place for those who do not see it.
    """
    kind = KINDS[steps.kind]
    low, high = kind.limits(steps)
    if not low <= steps.start <= high:
        raise FigureError(f"starts at {steps.start}, outside of {low} to {high}")
    controls = range_input("size", kind.label, low, high, steps.start)
    cart = above = ""
    read = {"lengths": steps.lengths, "running": steps.ends[-1] == "running"}
    if steps.cart:
        cart, more = scene(steps)
        controls += more
        read["cart"] = steps.cart
        x = percent(steps.lengths[0] - 0.5, steps.total)
        above = f'<use class="alive-cursor" href="#alive-pointer" x="{x}"/>'
    if read["running"] and steps.kind != "recut":  # which moves its torn edges
        above += '<use href="#alive-torn" x="100%"/>'
    data = html.escape(json.dumps(read, separators=(",", ":")))
    before = (
        f'<figure class="alive" data-kind="{steps.kind}" data-steps="{data}">\n'
        f'{cart}\n<svg class="alive-ribbon" role="img" aria-label="{html.escape(alt)}">'
        f"{MARKS}{bands(steps)}"
        f'<g class="alive-marks">{kind.marks(steps, steps.start)}</g>{above}</svg>\n'
        f'<div class="alive-controls" hidden>{controls}</div>\n'
        f'<output class="alive-says">{kind.says(steps, steps.start)}</output>\n'
        "<figcaption>"
    )
    return before, "</figcaption>\n</figure>\n"


# -- From the page to the site ---------------------------------------------------------


def file_for(images: Path, page: str) -> Path:
    """Where the numbers of a page's figure lie; `build.py` knows the pattern."""
    return images / f"sphx_glr_{page}_alive.json"


def below(script: Path, line: int) -> tuple[int, str, dict[str, str]] | None:
    """Line, kind and options of a directive in the text below a cell.

    Parameters
    ----------
    script : Path
        The page.
    line : int
        First line of the cell.

    Raises
    ------
    FigureError
        If the page has more than one such directive.
    """
    if ".. alive::" not in script.read_text(encoding="utf-8"):
        return None
    blocks = split_code_and_text_blocks(script)[1]
    found = [
        (number, block.lineno + block.content.count("\n", 0, match.start()), match)
        for number, block in enumerate(blocks)
        if block.type == "text"
        for match in _DIRECTIVE.finditer(block.content + "\n")
    ]
    where = f"{script.parent.name}/{script.name}"
    if len(found) > 1:
        at = found[1][1]
        raise FigureError(f"{where}:{at}-{at}: a page has at most one alive figure")
    number, at, match = found[0]
    if blocks[number - 1].type != "code" or blocks[number - 1].lineno != line:
        return None
    return at, match[1], dict(_OPTION.findall(match[2]))


def after_cell(block: Any, block_vars: dict, gallery_conf: dict) -> str:
    """Scraper for sphinx-gallery: keep what the figure below a cell will show.

    Raises
    ------
    FigureError
        If the directive's expressions cannot be evaluated, in one line.
    """
    script = Path(block_vars["src_file"])
    found = below(script, block.lineno)
    if found is None:
        return ""
    line, kind, options = found
    if not {"steps", "start"} <= options.keys():
        return ""  # the directive says so
    names = dict(block_vars["example_globals"])
    where = f"{script.parent.name}/{script.name}:{line}-{line}"
    try:
        steps, start = (eval(options[name], names) for name in ("steps", "start"))
        known = measure(kind, steps, start, with_cart="cart" in options)
    except Exception as error:  # whatever the page's names do
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise FigureError(f"{where}: alive: {what}") from None
    images = Path(block_vars["image_path_iterator"].image_path).parent
    text = json.dumps(asdict(known), separators=(",", ":"))
    file_for(images, script.stem).write_text(f"{text}\n", encoding="utf-8")
    return ""


class Alive(SphinxDirective):
    """``.. alive:: recut`` or ``starts``, with a caption.

    ``:steps:`` and ``:start:`` are expressions among the names of the page: a
    TensorDict of steps in a row, and where the slider stands. ``:alt:`` is a sentence.
    ``:cart:`` adds the cart of CartPole, and a cursor.
    """

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {
        "steps": directives.unchanged_required,
        "start": directives.unchanged_required,
        "alt": directives.unchanged_required,
        "cart": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """The figure around its caption; nothing if the page has not run."""
        kind, page = self.arguments[0], Path(self.env.doc2path(self.env.docname))
        if kind not in KINDS:
            raise self.error(f"alive: no kind '{kind}'; there is {', '.join(KINDS)}")
        for name in ("steps", "start", "alt"):
            if not self.options.get(name):
                raise self.error(f"alive needs :{name}:")
        if not self.options["alt"].endswith("."):
            raise self.error("alive: :alt: must be a sentence with a full stop")
        if not self.content:
            raise self.error("alive needs a caption")
        file = file_for(page.parent / "images", page.stem)
        if not file.exists():
            if self.config.page_alone:
                return []
            raise self.error("alive: no numbers; it must stand right below a cell")
        self.env.note_dependency(str(file))
        steps = Steps(**json.loads(file.read_text(encoding="utf-8")))
        try:
            before, after = figure(steps, self.options["alt"])
        except FigureError as error:
            raise self.error(f"alive: {error}") from None
        scripts = [kind, "cart"] if steps.cart else [kind]
        self.env.metadata[self.env.docname]["alive"] = scripts
        caption = self.parse_content_to_nodes()
        opening, closing = (nodes.raw("", t, format="html") for t in (before, after))
        return [opening, *caption, closing]


def add_scripts(app, pagename, templatename, context, doctree) -> None:
    """Ask for the scripts of a figure on its own page only."""
    for name in app.env.metadata.get(pagename, {}).get("alive", ()):
        app.add_js_file(f"alive-{name}.js", loading_method="defer")


def setup(app) -> dict:
    """Register the directive."""
    app.setup_extension("figures")
    app.add_directive("alive", Alive)
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
