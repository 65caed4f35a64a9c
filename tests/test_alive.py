"""Figures that a reader can move: Python's numbers, the scripts', and the real ones."""

from __future__ import annotations

import json
import math
import random
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import alive
import figures
import pytest
import sites
from conftest import ROOT
from playwright.sync_api import Page, expect
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

STATIC = ROOT / "docs" / "_static"
SCRIPTS = sorted(STATIC.glob("alive-*.js"))
COLLECT = "tutorials/assemble/10_collect.html"
SLICES = "tutorials/assemble/60_slices.html"
CASES = 50
LIMIT = 3000  # bytes of a script


def drawn(seed: int, kind: str) -> alive.Steps:
    """Random trajectories, in a random state of the slider."""
    chance = random.Random(f"{kind} {seed}")
    lengths = [chance.randint(1, 80) for _ in range(chance.randint(1, 12))]
    ends = [chance.choice(["terminated", "truncated"]) for _ in lengths]
    if chance.random() < 0.5:
        ends[-1] = "running"
    ids = list(range(5, 5 + len(lengths)))
    steps = alive.Steps(kind, 1, ids, lengths, ends, [])
    low, high = alive.KINDS[kind].limits(steps)
    size = chance.randint(low, high)
    if seed % 2:  # an edge at the very end is a case of its own
        size = chance.choice([n for n in range(low, high + 1) if steps.total % n == 0])
    return alive.Steps(kind, size, ids, lengths, ends, [])


def owners(steps: alive.Steps) -> list[int]:
    """The trajectory of each step."""
    return [n for n, size in zip(steps.ids, steps.lengths) for _ in range(size)]


def recut(steps: alive.Steps) -> dict:
    """Counted step by step: what the figure of page 10 has to show."""
    size, owner = steps.start, owners(steps)
    running = steps.ids[-1] if steps.ends[-1] == "running" else None
    batches = [owner[n : n + size] for n in range(0, len(owner), size)]
    batches = [batch for batch in batches if len(batch) == size]
    stop = len(batches) * size
    touched = {one for batch in batches for one in batch}
    whole = {
        one
        for one in touched - {running}
        if any(batch.count(one) == owner.count(one) for batch in batches)
    }
    following = [*owner[1:], running]
    edges = range(size, stop + 1, size)
    return {
        "edges": [
            (end, "torn" if owner[end - 1] == following[end - 1] else "clean")
            for end in edges
        ],
        "bar": [(end - size, end) for end in edges],
        "veil": [(stop, len(owner))] if stop < len(owner) else [],
        "lit": [],
        "numbers": [len(batches), size, len(whole), len(touched - whole)]
        + ([len(owner) - stop] if stop < len(owner) else []),
    }


def starts(steps: alive.Steps) -> dict:
    """Counted step by step: what the figure about slices has to show."""
    size, owner = steps.start, owners(steps)
    legal = [
        first
        for first in range(len(owner) - size + 1)
        if set(owner[first : first + size]) == {owner[first]}
    ]
    reached = {row for first in legal for row in range(first, first + size)}
    out = [row for row in range(len(owner)) if row not in reached]
    return {
        "edges": [],
        "bar": [],
        "veil": [
            stretch(out, owner, one) for one in dict.fromkeys(owner[r] for r in out)
        ],
        "lit": [
            stretch(legal, owner, one) for one in dict.fromkeys(owner[r] for r in legal)
        ],
        "numbers": [
            size,
            len(legal),
            len({owner[first] for first in legal}),
            len(steps.ids),
            len(out),
            len(owner),
        ],
    }


def stretch(rows: list[int], owner: list[int], one: int) -> tuple[int, int]:
    """First row of a trajectory among some rows, and the one after its last."""
    mine = [row for row in rows if owner[row] == one]
    assert mine == list(range(mine[0], mine[-1] + 1))
    return mine[0], mine[-1] + 1


COUNTED = {"recut": recut, "starts": starts}


def seen(marks: str, says: str, total: int) -> dict:
    """What marks and a sentence show, in steps."""

    def steps(text: str) -> int:
        value = float(text) * total / 100
        assert abs(value - round(value)) < 0.01, text
        return round(value)

    found: dict = {"edges": [], "bar": [], "veil": [], "lit": []}
    for tag in re.findall(r"<(?:rect|use)\b[^>]*>", marks):
        x = float(re.search(r'\bx="([\d.]+)%"', tag)[1])
        if kind := re.search(r'href="#alive-(\w+)"', tag):
            found["edges"].append((steps(x), kind[1]))
        else:
            width = float(re.search(r'\bwidth="([\d.]+)%"', tag)[1])
            name = re.search(r'class="alive-(\w+)"', tag)[1]
            found[name].append((steps(x), steps(x + width)))
    return found | {"numbers": [int(n) for n in re.findall(r"\d+", says)]}


def show(tab: Page, steps: alive.Steps) -> None:
    """Open a figure with its scripts and nothing else."""
    before, after = alive.figure(steps, "It is.")
    tab.set_content(f"<!doctype html><title>x</title>{before}x{after}")
    for name in [steps.kind, "cart"] if steps.cart else [steps.kind]:
        tab.add_script_tag(content=(STATIC / f"alive-{name}.js").read_text())


def in_figure(tab: Page, total: int) -> dict:
    """What the figure shows now."""
    marks = tab.locator(".alive-marks").evaluate("marks => marks.innerHTML")
    return seen(marks, tab.locator(".alive-says").inner_text(), total)


# -- Numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", alive.KINDS)
@pytest.mark.parametrize("seed", range(CASES))
def test_python_shows_what_counting_finds(kind, seed):
    steps = drawn(seed, kind)
    figure = alive.KINDS[kind]
    shown = seen(
        figure.marks(steps, steps.start), figure.says(steps, steps.start), steps.total
    )
    assert shown == COUNTED[kind](steps)


@pytest.mark.parametrize("kind", alive.KINDS)
def test_the_script_redraws_what_python_draws(tab: Page, kind):
    for seed in range(CASES):
        steps = drawn(seed, kind)
        low, _ = alive.KINDS[kind].limits(steps)
        show(tab, alive.Steps(**(vars(steps) | {"start": low})))
        tab.locator("[name=size]").fill(str(steps.start))
        tab.locator("[name=size]").dispatch_event("input")
        assert in_figure(tab, steps.total) == COUNTED[kind](steps), (seed, steps)
        says = tab.locator(".alive-says").inner_text()
        assert says == alive.KINDS[kind].says(steps, steps.start)


def test_the_cart_moves_as_recorded(tab: Page):
    chance = random.Random(0)
    cart = [[round(chance.uniform(-2, 2), 3), chance.uniform(-1, 1)] for _ in range(60)]
    steps = alive.Steps("recut", 30, [0, 1], [25, 35], ["terminated", "running"], cart)
    show(tab, steps)
    for step in [24, *(chance.randrange(60) for _ in range(CASES))]:
        if step != 24:  # where Python drew it
            tab.locator("[name=step]").fill(str(step))
        place = tab.locator(".alive-cart").get_attribute("transform")
        turn = tab.locator(".alive-pole").get_attribute("transform")
        cursor = tab.locator("use.alive-cursor").get_attribute("x")
        x, angle = cart[step]
        assert float(re.findall(r"[\d.-]+", place)[0]) == x
        degrees = float(re.findall(r"[\d.-]+", turn)[0])
        assert degrees == pytest.approx(math.degrees(angle), abs=0.06)
        assert float(cursor[:-1]) == pytest.approx(100 * (step + 0.5) / 60, abs=1e-3)


REAL = """
import json
import torch
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, SliceSampler, TensorDictReplayBuffer
from torchrl.envs import GymEnv
from torchrl.modules import RandomPolicy

def batches(size, number):
    torch.manual_seed(0)
    env = GymEnv("CartPole-v1")
    env.set_seed(0)
    policy = RandomPolicy(env.action_spec)
    collector = Collector(env, policy, frames_per_batch=size, total_frames=-1)
    stream = iter(collector)
    parts = [next(stream) for _ in range(number)]
    collector.shutdown()
    return parts

def runs(part):
    ids = part["collector", "traj_ids"]
    torn = not part["next", "done"][-1].item()
    return ids.unique_consecutive(return_counts=True)[1].tolist(), torn

cut = {size: [runs(b) for b in batches(size, 400 // size)] for size in (40, 120, 200)}
legal = {}
for size in (1, 11, 16, 31, 63):
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(200),
        sampler=SliceSampler(slice_len=size),
        batch_size=4000 * size,
    )
    buffer.extend(batches(200, 1)[0])
    legal[size] = sorted(set(buffer.sample()["index"].reshape(-1, size)[:, 0].tolist()))
print(json.dumps([cut, legal]))
"""


@pytest.fixture(scope="module")
def real() -> tuple[dict, dict]:
    """Batches of three sizes, as collected; starts of slices, as drawn."""
    command = [sys.executable, "-c", REAL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return tuple(
        {int(size): found for size, found in part.items()}
        for part in json.loads(done.stdout.splitlines()[-1])
    )


def on_page(name: str) -> alive.Steps:
    """The numbers that a page's own run left."""
    images = ROOT / "docs" / "tutorials" / "assemble" / "images"
    return alive.Steps(**json.loads(alive.file_for(images, name).read_text()))


def test_a_collector_tears_the_episodes_of_page_10_where_the_figure_does(real):
    steps = on_page("10_collect")
    owner = owners(steps)
    for size, collected in real[0].items():
        marks = alive.Recut.marks(steps, size)
        edges = seen(marks, "", steps.total)["edges"]
        torn = ["torn" if is_torn else "clean" for _, is_torn in collected]
        assert [how for _, how in edges] == torn
        for number, (lengths, _) in enumerate(collected):
            mine = owner[number * size : (number + 1) * size]
            assert lengths == [mine.count(one) for one in dict.fromkeys(mine)]


def test_a_sampler_starts_slices_wherever_the_figure_has_a_light(real):
    steps = on_page("60_slices")
    for size, drawn_starts in real[1].items():
        lit = seen(alive.Starts.marks(steps, size), "", steps.total)["lit"]
        rows = [row for first, stop in lit for row in range(first, stop)]
        assert rows == drawn_starts


# -- On the site -----------------------------------------------------------------------


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_small(file):
    assert len(file.read_bytes()) <= LIMIT


def test_each_kind_has_a_script():
    assert [path.stem for path in SCRIPTS] == [
        "alive-cart",
        "alive-recut",
        "alive-starts",
    ]
    assert set(alive.KINDS) == {"recut", "starts"}


def test_a_page_loads_only_the_scripts_of_its_figure(site):
    scripts = {
        path.relative_to(site).as_posix(): re.findall(
            r'<script defer[^>]*src="[^"]*/_static/alive-(\w+)\.js', path.read_text()
        )
        for path in site.rglob("*.html")
    }
    found = {name: names for name, names in scripts.items() if names}
    assert found == {COLLECT: ["recut", "cart"], SLICES: ["starts"]}


def test_the_colours_are_those_of_the_other_figures():
    css = (STATIC / "site.css").read_text()

    def colours(theme: str) -> dict[str, str]:
        block = re.search(
            rf'html\[data-theme="{theme}"\] \.alive \{{(.*?)\}}', css, re.S
        )
        return dict(re.findall(r"(--\w+): (#\w{6});", block[1]))

    light, dark = colours("light"), colours("dark")
    assert {name: figures.DARK[colour] for name, colour in light.items()} == dark
    style = figures.STYLE.read_text()
    cycle = re.findall(r"'(\w{6})'", re.search(r"axes.prop_cycle:.*", style)[0])
    assert [light[f"--c{n}"] for n in range(6)] == [f"#{colour}" for colour in cycle]


@pytest.mark.parametrize(
    ("name", "label", "start"),
    [(COLLECT, "frames_per_batch", 200), (SLICES, "slice_len", 16)],
)
def test_keyboard_moves_the_figure_and_it_says_so(tab: Page, site, name, label, start):
    steps = on_page(Path(name).stem)
    kind = alive.KINDS[steps.kind]
    tab.goto(f"{site.as_uri()}/{name}")
    slider = tab.get_by_label(label, exact=True)
    says = tab.get_by_role("status").and_(tab.locator(".alive-says"))
    expect(says).to_have_text(kind.says(steps, start))
    slider.focus()
    assert slider.evaluate("input => getComputedStyle(input).outlineStyle") != "none"
    for key, value in (
        ("ArrowRight", start + 1),
        ("ArrowLeft", start),
        ("ArrowLeft", start - 1),
        ("Home", kind.limits(steps)[0]),
        ("End", kind.limits(steps)[1]),
    ):
        tab.keyboard.press(key)
        expect(says).to_have_text(kind.says(steps, value))
        marks = tab.locator(".alive-marks").evaluate("marks => marks.innerHTML")
        expected = seen(kind.marks(steps, value), "", steps.total)
        assert seen(marks, "", steps.total) == expected
    assert re.fullmatch(
        r"[A-Z].{20,}\.", tab.locator("svg.alive-ribbon").get_attribute("aria-label")
    )


@pytest.mark.parametrize(("name", "value"), [(COLLECT, 150), (SLICES, 64)])
def test_what_a_script_adds_has_the_colours_of_the_theme(tab: Page, site, name, value):
    tab.goto(f"{site.as_uri()}/{name}")
    tab.locator("[name=size]").fill(str(value))
    for theme, paper in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 24, 30)")):
        tab.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        veil = tab.locator(".alive-veil").first
        assert veil.evaluate("veil => getComputedStyle(veil).fill") == paper


@pytest.mark.parametrize("name", [COLLECT, SLICES])
def test_without_script_the_figure_stands_still_and_nothing_waits(chromium, site, name):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site.as_uri()}/{name}")
    steps = on_page(Path(name).stem)
    says = alive.KINDS[steps.kind].says(steps, steps.start)
    expect(page.locator(".alive-says")).to_have_text(says)
    expect(page.locator("svg.alive-ribbon")).to_be_visible()
    expect(page.locator(".alive-controls")).to_be_hidden()
    assert page.locator(".alive-marks > *").count() > 0
    context.close()


@pytest.mark.parametrize("name", [COLLECT, SLICES])
def test_paper_gets_the_picture_and_no_controls(tab: Page, site, name):
    tab.goto(f"{site.as_uri()}/{name}")
    expect(tab.locator(".alive-controls")).to_be_visible()
    tab.emulate_media(media="print")
    expect(tab.locator(".alive-controls")).to_be_hidden()
    expect(tab.locator("svg.alive-ribbon")).to_be_visible()


def test_the_cart_plays_pauses_and_stops_at_the_end(tab: Page, site):
    tab.goto(f"{site.as_uri()}/{COLLECT}")
    step = tab.get_by_label("step", exact=True)
    before = step.input_value()
    tab.wait_for_timeout(200)
    assert step.input_value() == before  # nothing starts by itself
    tab.get_by_role("button", name="Play").press("Enter")
    tab.wait_for_function(
        f"() => document.querySelector('[name=step]').value > {before}"
    )
    tab.get_by_role("button", name="Pause").click()
    paused = step.input_value()
    tab.wait_for_timeout(200)
    assert step.input_value() == paused
    step.fill("395")
    tab.get_by_role("button", name="Play").click()
    expect(step).to_have_value("399")
    expect(tab.get_by_role("button", name="Play")).to_be_visible()


def test_who_wants_no_motion_gets_a_still_and_a_slider(chromium, site):
    context = chromium.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{site.as_uri()}/{COLLECT}")
    expect(page.locator(".alive-scene")).to_be_visible()
    expect(page.get_by_label("step", exact=True)).to_be_visible()
    expect(page.locator(".alive button")).to_be_hidden()
    context.close()


@pytest.mark.parametrize("name", [COLLECT, SLICES])
@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_does_not_scroll_sideways(tab: Page, site, name, width):
    tab.set_viewport_size({"width": width, "height": 800})
    tab.goto(f"{site.as_uri()}/{name}")
    for value in (1, 17, 10_000):
        tab.locator("[name=size]").evaluate(
            "(slider, value) => { slider.value = value;"
            " slider.dispatchEvent(new Event('input')) }",
            value,
        )
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


# -- From the page to the site ---------------------------------------------------------

PAGE = '''"""
Title
=====
"""

steps = 1

# %%
# .. alive:: recut
#     :steps: {steps}
#     :start: {start}
#     :alt: It is.
#
#     Caption.
'''


class Tensor(list):
    """As much of a tensor as is needed, where torch would take seconds."""

    def unique_consecutive(self, return_counts):
        """Runs of equal items, and their lengths."""
        runs = list(dict.fromkeys(self))
        return Tensor(runs), Tensor([self.count(one) for one in runs])

    def cumsum(self, dim):
        """Sums of the items up to each."""
        return Tensor(sum(self[: n + 1]) for n in range(len(self)))

    def __sub__(self, other):
        """Each item less a number."""
        return Tensor(item - other for item in self)

    def __getitem__(self, key):
        """An item that has a value, or a part."""
        item = super().__getitem__(key)
        return item if isinstance(key, slice) else SimpleNamespace(item=lambda: item)

    def tolist(self):
        """The items."""
        return list(self)


def batch(*runs: tuple[int, int, str]) -> dict:
    """A batch of runs: number, length and end of each."""
    flags = {
        flag: Tensor(
            flag == end and step == size - 1
            for _, size, end in runs
            for step in range(size)
        )
        for flag in ("terminated", "truncated")
    }
    ids = Tensor(number for number, size, _ in runs for _ in range(size))
    return {("collector", "traj_ids"): ids, "next": flags}


def first_cell(script: Path):
    """The first cell of a page, as sphinx-gallery hands it to a scraper."""
    blocks = split_code_and_text_blocks(script)[1]
    return next(block for block in blocks if block.type == "code")


@pytest.fixture
def after_cell(tmp_path):
    """Run the hook on a page; returns the folder of its images."""
    images = tmp_path / "images"
    images.mkdir()

    def call(text: str, **names) -> Path:
        script = tmp_path / "10_page.py"
        script.write_text(text)
        block_vars = {
            "src_file": str(script),
            "example_globals": names,
            "image_path_iterator": SimpleNamespace(
                image_path=str(images / "sphx_glr_10_page_{0:03}.png")
            ),
        }
        assert alive.after_cell(first_cell(script), block_vars, {}) == ""
        return images

    return call


GOOD = PAGE.format(steps="batch", start="2 * size")
RUNS = ((3, 4, "terminated"), (4, 2, "truncated"), (7, 5, ""))


def test_a_cell_leaves_the_numbers_of_the_figure_below(after_cell):
    names = {"batch": batch(*RUNS), "size": 3}
    before = dict(names)
    images = after_cell(GOOD, **names)
    file = alive.file_for(images, "10_page")
    expected = alive.Steps(
        "recut", 6, [3, 4, 7], [4, 2, 5], ["terminated", "truncated", "running"], []
    )
    assert alive.Steps(**json.loads(file.read_text())) == expected
    written = file.read_bytes()
    after_cell(GOOD, **names)
    assert file.read_bytes() == written
    assert names == before  # the page's names are only read


def test_other_cells_leave_nothing(after_cell):
    far = GOOD.replace("steps = 1\n", "steps = 1\n\n# %%\n# So.\n\nx = 1\n")
    assert list(after_cell(far, batch=batch(*RUNS), size=3).iterdir()) == []
    assert list(after_cell(GOOD.split("# %%")[0]).iterdir()) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("batch", "other"), ":9-9: alive: NameError: name 'other' is not"),
        (GOOD.replace("2 *", "2 +*"), ":9-9: alive: SyntaxError: invalid syntax"),
        (GOOD.replace("batch", "size"), ":9-9: alive: TypeError: 'int' object is not"),
        (GOOD.replace("batch", "torn"), ":9-9: alive: ValueError: trajectory 3 has no"),
        (f"{GOOD}#\n# .. alive:: starts\n", ":16-16: a page has at most one alive fig"),
    ],
)
def test_numbers_that_cannot_be_had_give_one_line(after_cell, text, said):
    torn = batch((3, 4, ""), (4, 2, "truncated"))
    with pytest.raises(figures.FigureError) as caught:
        after_cell(text, batch=batch(*RUNS), torn=torn, size=3)
    message = str(caught.value)
    assert said in message
    assert "\n" not in message


@pytest.fixture
def project(tmp_path):
    """Build a one-page site around ``body``; returns its HTML and its warnings."""

    def build(body: str, data: str = "", **settings) -> tuple[str, str]:
        source, out = tmp_path / "source", tmp_path / "out"
        (source / "images").mkdir(parents=True)
        (source / "index.rst").write_text(f"Title\n=====\n\n{body}\n")
        if data:
            alive.file_for(source / "images", "index").write_text(data)
        settings = {"html_static_path": [str(STATIC)], **settings}
        warnings = sites.build(source, out, extensions=["alive"], **settings)
        return (out / "index.html").read_text(), warnings

    return build


DATA = json.dumps(
    {
        "kind": "recut",
        "start": 6,
        "ids": [3, 4],
        "lengths": [4, 7],
        "ends": ["truncated", "running"],
        "cart": [],
    }
)
BODY = """.. alive:: recut
    :steps: batch
    :start: 6
    :alt: A "ribbon" & <more>.

    A *caption*."""


def test_the_figure_stands_around_its_caption(project):
    page, warnings = project(BODY, DATA)
    assert warnings == ""
    assert "<figcaption><p>A <em>caption</em>.</p>\n</figcaption>" in page
    assert 'aria-label="A &quot;ribbon&quot; &amp; &lt;more&gt;."' in page
    assert "1 batch of 6 steps: 1 whole episode, 1 torn. 5 steps left" in page
    assert page.count("<script defer") + page.count('<script defer="defer"') >= 1
    assert "alive-recut.js" in page
    assert "alive-cart.js" not in page
    assert 'href="#alive-truncated"' in page


@pytest.mark.parametrize(("end", "torn"), [("running", 1), ("terminated", 0)])
def test_a_buffer_that_ends_in_flight_ends_torn(end, torn):
    steps = alive.Steps("starts", 2, [3, 4], [4, 7], ["truncated", end], [])
    before, _ = alive.figure(steps, "It is.")
    assert before.count('<use href="#alive-torn" x="100%"/>') == torn


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (BODY.replace("recut", "cut"), "no kind 'cut'; there is recut, starts"),
        (BODY.replace("    :start: 6\n", ""), "alive needs :start:"),
        (BODY.replace(" & <more>.", " & more"), ":alt: must be a sentence"),
        (BODY.replace("A *caption*.", ""), "alive needs a caption"),
    ],
)
def test_a_directive_that_cannot_be_shown_is_named_with_its_line(project, body, said):
    page, warnings = project(body, DATA)
    assert "<figure" not in page
    (line,) = [line for line in warnings.splitlines() if "ERROR" in line]
    assert "index.rst:4: ERROR: " in line
    assert said in line


def test_a_slider_cannot_start_outside_of_its_range(project):
    _, warnings = project(BODY, DATA.replace('"start": 6', '"start": 12'))
    assert "alive: starts at 12, outside of 4 to 11" in warnings


def test_numbers_are_missed_unless_another_page_is_built_alone(project):
    _, warnings = project(BODY)
    assert "alive: no numbers; it must stand right below a cell" in warnings


def test_a_page_that_never_ran_has_no_figure(project):
    page, warnings = project(BODY, page_alone=True)
    assert warnings == ""
    assert "<figure" not in page
