"""The page that shows what `make bench` measured."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import figures
import matplotlib as mpl
import measured
import pytest
from conftest import ROOT
from sites import text

FILE = "benchmarks/results/build.json"
DIRECTIVES = ".. build-origin::\n\n.. build-costs::\n\n.. build-growth::\n"


def row(pages: int, workers: int, cold: float, times: float, share: float) -> dict:
    """One row of the growth."""
    names = [*measured.TIMES, *(measured.ONE_PAGE if workers == 1 else ())]
    return {
        "pages": pages,
        "workers": workers,
        "rounds": 1 if pages > 100 else 2,
        "seconds": dict.fromkeys(names, cold / 4) | {"cold": cold},
        "ratio_to_cold": dict.fromkeys(names, 0.25) | {"cold": 1.0},
        "ratio": {"cold, to fewest pages": times, "cold, to one worker": share},
        "peak_memory_mib": 900,
    }


@pytest.fixture
def results() -> dict:
    """What a benchmark might have measured."""
    return {
        "date": "2026-11-29",
        "machine": "x86_64, 2 cores",
        "python": "3.11.7",
        "versions": {"torch": "2.14.1", "sphinx": "9.0.4"},
        "pages": 7,
        "workers": 2,
        "rounds": 3,
        "seconds": dict.fromkeys(measured.COSTS, 12.34)
        | {"cold": 98.76, "home page edited": 5.43},
        "ratio_to_cold": dict.fromkeys(measured.COSTS, 0.12)
        | {"cold": 1.0, "home page edited": 0.05},
        "peak_memory_mib": 1234,
        "growth": [
            row(10, 1, 20.0, 1.0, 1.0),
            row(10, 2, 16.0, 1.0, 0.8),
            row(160, 1, 130.0, 6.5, 1.0),
            row(160, 2, 91.0, 5.7, 0.7),
        ],
    }


@pytest.fixture
def project(one_page):
    """Build a page of the directives beside a file of results."""
    return functools.partial(one_page, "measured", DIRECTIVES, FILE)


def test_the_page_says_when_where_and_with_what_it_was_measured(project, results):
    html, warnings, _ = project(json.dumps(results))
    assert warnings == ""
    assert (
        "Measured on 2026-11-29 on a machine with x86_64, 2 cores. "
        "Installed: Python 3.11.7, torch 2.14.1, sphinx 9.0.4."
    ) in text(html)


def test_the_tables_hold_the_numbers_of_the_file(project, results):
    read = text(project(json.dumps(results))[0]).replace(measured.SPACE, " ")
    for line in (
        "This site with 7 tutorials, two at a time; medians of 3 rounds",
        "First build, from nothing 98.8 s 100%",
        "Home page edited 5.4 s 5%",
        "the first build held 1234 MiB",
        "First builds, one page at a time; medians of 1 to 2 rounds",
        "Pages 10 160 Times as long as 10 pages 1.0 6.5 Two at a time 80% 70%",
        "Outside tutorials 25% 25% One page edited and built alone 25% 25%",
    ):
        assert line in read


def test_the_figure_is_a_pair_whose_alt_states_the_finding(project, results):
    html, _, drawn = project(json.dumps(results))
    alt = (
        "One page at a time, 160 pages take 6.5 times as long as 10. Two at a time, "
        "they take 70% of that time, and one page edited and built alone takes 25% of "
        "it."
    )
    assert measured.finding(results) == alt
    assert html.count(f'alt="{alt}"') == 2
    assert set(drawn) == {"build_growth.svg", "build_growth_dark.svg"}
    light = drawn["build_growth.svg"]
    assert drawn["build_growth_dark.svg"] == figures.dark(light)
    assert len(light) < figures.LIMIT
    for label in ("one page at a time", "two at a time", "one page edited", "160"):
        assert f">{label}<" in light


def test_the_finding_follows_the_numbers(results):
    results["growth"][3]["ratio"]["cold, to one worker"] = 1.18
    results["growth"][2]["ratio_to_cold"]["one page edited"] = 1.02
    assert "they take 118% of that time" in measured.finding(results)
    assert "takes 102% of it." in measured.finding(results)


def test_the_drawing_depends_on_the_file_alone(results):
    first = measured.draw(results, "s")
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9}):
        assert measured.draw(results, "s") == first
    assert "<dc:date>" not in first


def test_a_new_file_is_shown_and_the_old_one_is_gone(project, results):
    project(json.dumps(results))
    results["date"], results["growth"][0]["seconds"]["cold"] = "2027-01-02", 60.0
    html, _, drawn = project(json.dumps(results))
    assert "2027-01-02" in html
    assert drawn["build_growth.svg"] == measured.draw(results, "build_growth")


def spoilt(results: dict, *path, value=None) -> str:
    """The file with one value replaced, or taken away."""
    part = results
    for key in path[:-1]:
        part = part[key]
    if value is None:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return json.dumps(results)


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda _: None, "no such file"),
        (lambda _: "{", "not JSON: Expecting property name"),
        (lambda _: "[]", "the file is []"),
        (lambda r: spoilt(r, "growth"), "the file has no 'growth'"),
        (lambda r: spoilt(r, "growth", value=[]), "'growth' is empty"),
        (lambda r: spoilt(r, "growth", 1), "'growth' lacks 10 pages, 2 workers"),
        (lambda r: spoilt(r, "growth", 0, "seconds", "cold"), "'seconds' has no"),
        (
            lambda r: spoilt(r, "growth", 2, "seconds", "one page edited"),
            "'seconds' of 160 pages has no 'one page edited'",
        ),
        (lambda r: spoilt(r, "seconds", "cold", value="9 s"), "'cold' is \"9 s\""),
        (lambda r: spoilt(r, "seconds", "cold", value=-1.0), "'cold' is -1.0"),
        (lambda r: spoilt(r, "peak_memory_mib", value=float("nan")), "is nan"),
        (lambda r: spoilt(r, "pages", value=True), "'pages' is true"),
    ],
)
def test_a_file_that_cannot_be_shown_gives_one_error_that_names_it(
    project, results, spoil, expected
):
    html, warnings, drawn = project(spoil(results))
    (line,) = [line for line in warnings.splitlines() if "ERROR" in line]
    said = re.search(
        rf"index\.rst:4: ERROR: {FILE}: (.*); `make bench` writes it", line
    )
    assert said
    assert expected in said[1]
    assert "<table" not in html
    assert drawn == {}


def test_the_committed_file_can_be_shown():
    results = measured.read(ROOT / FILE)
    assert figures.dark(measured.draw(results, "s"))


RATIOS = [measured.BACKGROUND, measured.LAYOUTS]


def committed(comparison: measured.Comparison) -> dict:
    """The ratios of the committed file, by case."""
    path = ROOT / "benchmarks" / "results" / f"{comparison.name}.json"
    return comparison.read(path)


@pytest.mark.parametrize("comparison", RATIOS, ids=lambda item: item.name)
def test_the_table_of_a_comparison_holds_what_the_file_says(comparison):
    results = committed(comparison)
    text = "\n".join(comparison.lines(results))
    for case, row in results[comparison.key].items():
        numbers = [f"{row[key]:.2f}" for key in ("median", "lowest", "highest")]
        assert re.search(r"\s+- ".join([re.escape(case), *numbers]), text)


@pytest.mark.parametrize("comparison", RATIOS, ids=lambda item: item.name)
@pytest.mark.parametrize(
    ("text", "told"),
    [("{", "not JSON"), ("{}", "has no 'date'"), (None, "no such file")],
)
def test_a_broken_comparison_is_told(tmp_path, comparison, text, told):
    file = tmp_path / "results.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(measured.ResultsError, match=told):
        comparison.read(file)


def test_what_the_tutorials_say_about_speed_is_in_the_committed_files():
    """Not faster at once for a Python env, faster for one that waits; nested fast."""
    ratios = committed(measured.BACKGROUND)[measured.BACKGROUND.key]
    assert ratios["Python env"]["median"] > 0.95
    waiting = [row["median"] for case, row in ratios.items() if "waits" in case]
    assert waiting and max(waiting) < 0.95
    rows = committed(measured.LAYOUTS)[measured.LAYOUTS.key].values()
    assert max(row["median"] for row in rows) < 0.8


def test_the_page_types_no_number():
    page = (ROOT / "docs" / "reference" / "build_times.rst").read_text()
    assert re.findall(r"\d", page) == []


def test_the_page_is_on_the_site(site: Path):
    html = (site / "reference" / "build_times.html").read_text()
    assert html.count('alt="One page at a time, ') == 2
    assert 'href="reference/build_times.html' in (site / "index.html").read_text()
