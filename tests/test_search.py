"""What a reader finds who searches the built site, and what the search is made from."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
import sections
from playwright.sync_api import Page, expect

BEST = 3  # results among which a query must find its section

SPLIT = "Split any data: several envs, own ids, no ids"

#: What is asked, and the page and section (None: the top of the page) that answer it.
QUERIES = [
    # Terms.
    ("batch edge", "Collect your first batch", "What happens at the edge of a batch?"),
    ("bootstrap", "Glossary", "bootstrap"),
    ("bootstrap", "Bootstrap the right value", None),
    ("padding", "Glossary", "padding"),
    (
        "time limit",
        "Bootstrap the right value",
        "What if a time limit is taken for an end?",
    ),
    ("worker dies", "Collect in worker processes", "Who tells you when a worker dies?"),
    ("install", "TorchRL Trajectories", "Run a page yourself"),
    # Names of the API, with and without what surrounds them.
    ("SliceSampler", "Choose among the slice samplers", None),
    ("split_trajectories", SPLIT, "What if there are no ids?"),
    ("traj_ids", "Collect your first batch", "Which trajectory does a step belong to?"),
    ("trajs_per_batch", "Ask for complete trajectories", "In practice"),
    ("set_truncated", "Know how an episode ends", "What does set_truncated change?"),
    (
        "reset_at_each_iter=True",
        "Avoid the traps of complete trajectories",
        "Why are all my episodes short?",
    ),
    ("torchrl.data.PrioritizedSliceSampler", "Choose among the slice samplers", None),
    # Texts of errors, as a page has them and as a terminal prints them.
    (
        "cannot import name 'SyncDataCollector'",
        "Collect your first batch",
        "In practice",
    ),
    (
        "ImportError: cannot import name 'TrajectoryBatcher' from 'torchrl.collectors' "
        "(/home/me/lib/python3.11/site-packages/torchrl/collectors/__init__.py)",
        "Ask for complete trajectories",
        "In practice",
    ),
    ("'NoneType' object is not subscriptable", SPLIT, "What if there are no ids?"),
    (
        "RuntimeError: split_with_sizes expects split_sizes to sum exactly to 200",
        SPLIT,
        "What if an id comes twice?",
    ),
    (
        "TypeError: SliceSampler.__init__() got an unexpected keyword argument "
        "'trajectory_key'",
        "See the boundaries that the sampler sees",
        "What if the data has one flag only?",
    ),
    (
        "no effect unless trajs_per_batch is set",
        "Ask for complete trajectories",
        "In practice",
    ),
    # Begun, inflected, in parts, and with a slip.
    ("set_trunc", "Know how an episode ends", "What does set_truncated change?"),
    (
        "step counter",
        "Flag the ends of your own env",
        "Where should a limit live?",
    ),
    ("bootstrapping", "Bootstrap the right value", None),
    (
        "slice sampler replacement",
        "Choose among the slice samplers",
        "Do you want each trajectory once per pass?",
    ),
    ("advantge", SPLIT, "Advantages: before the split or after?"),
]


def answer(page: str, section: str | None) -> str:
    """How a result is named."""
    return f"{page} › {section}" if section else page


def search(tab: Page, start: str, query: str) -> list[str]:
    """Names of the results, the best first."""
    tab.goto(f"{start}/search.html?q={quote(query)}")
    expect(tab.get_by_role("status")).to_be_visible()
    return tab.locator("#search-results li a").all_inner_texts()


def test_there_are_twenty_queries():
    assert len(QUERIES) >= 20


@pytest.mark.parametrize(("query", "page", "section"), QUERIES)
def test_a_query_finds_the_section(tab: Page, served, query, page, section):
    assert answer(page, section) in search(tab, served, query)[:BEST]
    link = tab.locator("#search-results li a", has_text=answer(page, section)).first
    link.click()
    expect(tab.locator("h1").first).to_contain_text(page)
    if section:
        anchor = tab.url.partition("#")[2]
        place = tab.locator(f"[id='{anchor}']")
        expect(place).to_contain_text(section)
        expect(place).to_be_in_viewport()


@pytest.mark.parametrize(("query", "page", "section"), QUERIES[::6])
def test_search_works_from_the_disk(tab: Page, site, query, page, section):
    found = search(tab, site.as_uri(), query)
    assert answer(page, section) in found[:BEST]
    expect(tab.locator("#search-results mark").first).to_be_visible()


def test_nothing_found_is_said(tab: Page, served):
    assert search(tab, served, "qwertzuiop") == []
    expect(tab.get_by_role("status")).to_contain_text("Nothing found for “qwertzuiop”")


def test_a_query_is_text_and_not_markup(tab: Page, served):
    search(tab, served, "<img src=x onerror=alert(1)> __proto__ constructor")
    assert tab.locator("#search-results img").count() == 0


def test_only_the_search_page_loads_the_search(site):
    for path in site.rglob("*.html"):
        if "_static" not in path.relative_to(site).parts:
            html = path.read_text(encoding="utf-8")
            for script in ("sections.js", "minisearch.js", "search.js"):
                there = f"_static/{script}" in html
                assert there == (path == site / "search.html"), (path, script)


# -- The sections of a page ------------------------------------------------------------


def page(body: str) -> str:
    """A page as the theme writes it."""
    return f'<nav>Menu</nav><article class="bd-article">{body}</article><p>Foot</p>'


PAGE = page("""
<section id="a-page"><span id="label"></span>
<h1>A <em>page</em><a class="headerlink" href="#a-page">#</a></h1>
<p>First
   words.</p><script>no()</script>
<section id="why"><h2>Why?</h2><p>Because.</p>
<section id="inside"><h3>Inside</h3><pre>code <button>Copy</button></pre></section>
</section>
<section id="drawing"><h2>Drawing</h2><pre>def ribbon(): ...</pre></section>
</section>
""")


def test_each_section_has_its_own_text():
    title, found = sections.sections(PAGE)
    assert title == "A page"
    assert [(part.anchor, part.heading, part.text) for part in found] == [
        ("", "A page", "First words."),
        ("why", "Why?", "Because."),
        ("inside", "Inside", "code"),
    ]


def test_each_term_of_a_glossary_is_a_section():
    html = page("""<section id="glossary"><h1>Glossary</h1><p>Terms.</p>
    <dl class="simple glossary"><dt id="term-a">a</dt><dd><p>First.</p></dd>
    <dt id="term-b">b<a class="headerlink">#</a></dt><dd>Second.</dd></dl></section>""")
    assert sections.sections(html)[1] == [
        sections.Section("", "Glossary", "Terms."),
        sections.Section("term-a", "a", "First."),
        sections.Section("term-b", "b", "Second."),
    ]


@pytest.mark.parametrize("html", ["", "<p>No article</p>", page("<p>No heading</p>")])
def test_what_is_no_page_has_no_sections(html):
    assert sections.sections(html) == ("", [])


def test_the_script_names_pages_in_one_order_and_leaves_out_empty_ones():
    text = sections.script({"z.html": PAGE, "b.html": PAGE, "empty.html": ""})
    start, end = "const SECTIONS = ", ";\n"
    assert text.startswith(start) and text.endswith(end)
    rows = json.loads(text[len(start) : -len(end)])
    assert [row[:2] for row in rows] == [["b.html", "A page"], ["z.html", "A page"]]
    assert rows[0][2][1] == ["why", "Why?", "Because."]
