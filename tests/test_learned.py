"""The page that shows, seed by seed, what `make bench-learning` found."""

from __future__ import annotations

import functools
import json
import re
import statistics

import figures
import learned
import measured
import pytest
from conftest import ROOT
from sites import text

FILE = "benchmarks/results/learning.json"
DIRECTIVES = (
    ".. learning-origin::\n\n.. learning-points:: whole-or-cut\n\n"
    ".. learning-points:: one-env\n"
)


@pytest.fixture
def project(one_page):
    """Build a page of the directives beside a file of results."""
    return functools.partial(one_page, "learned", DIRECTIVES, FILE)


def learner(*means: float) -> dict:
    """The numbers of a learner, from its mean with each seed."""
    return {
        "mean": list(means),
        "lowest": [mean - 10 for mean in means],
        "highest": [mean + 10 for mean in means],
    }


@pytest.fixture
def results() -> dict:
    """What a benchmark might have found."""
    return {
        "date": "2026-11-29",
        "machine": "x86_64, 2 cores",
        "python": "3.11.7",
        "versions": {"torch": "2.14.1"},
        "seeds": [0, 1],
        "experiments": {
            "whole-or-cut": {
                "page": "train/10_a",
                "changed": {},
                "episodes": 20,
                "asserts_held": [True, False],
                "learners": {"whole": learner(491.4, 480), "cut": learner(-33, 160)},
            },
            "one-env": {
                "page": "train/10_a",
                "changed": {"num_envs = 8": "num_envs = 1"},
                "episodes": 20,
                "asserts_held": [True, True],
                "learners": {"whole": learner(450, 460)},
            },
        },
    }


def test_the_page_says_with_what_and_every_seed(project, results):
    html, warnings, _ = project(json.dumps(results))
    assert warnings == ""
    read = text(html)
    for line in (
        "Measured on 2026-11-29 on a machine with x86_64, 2 cores. Installed: Python",
        "Every assert of the tutorial held with 1 of 2 seeds.",
        "Mean return over 20 episodes",
        "Seed 0 1 whole 491 480 cut −33 160",
        "In the tutorial, num_envs = 8 became num_envs = 1 .",
    ):
        assert line in read


def test_the_figure_is_a_pair_whose_alt_states_the_range(project, results):
    html, _, drawn = project(json.dumps(results))
    alt = (
        "Mean return over 20 episodes, lowest to highest of 2 seeds: "
        "whole 480 to 491; cut -33 to 160."
    )
    assert html.count(f'alt="{alt}"') == 2
    light = drawn["learning_whole_or_cut.svg"]
    assert drawn["learning_whole_or_cut_dark.svg"] == figures.dark(light)
    assert len(drawn) == 4
    assert len(light) < figures.LIMIT
    assert ">whole<" in light and ">cut<" in light


def test_a_tutorial_shows_the_figure_with_its_own_caption_and_no_table(
    one_page, results
):
    markup = ".. learning-figure:: whole-or-cut\n\n    Each point is *a seed*.\n"
    html, warnings, drawn = one_page("learned", markup, FILE, json.dumps(results))
    assert warnings == ""
    assert sorted(drawn) == [
        "learning_whole_or_cut.svg",
        "learning_whole_or_cut_dark.svg",
    ]
    assert html.count("cut -33 to 160.") == 2
    assert html.index("<img") < html.index("<p>Each point is <em>a seed</em>.</p>")
    assert "<table" not in html


def test_the_drawing_follows_the_numbers_and_nothing_else(results):
    experiment = results["experiments"]["one-env"]
    first = learned.draw(experiment, "s")
    assert learned.draw(experiment, "s") == first
    experiment["learners"]["whole"]["mean"][1] = 455
    assert learned.draw(experiment, "s") != first


def spoilt(results: dict, key: str, value) -> str:
    """The file with one value of an experiment, or of its learner, replaced."""
    experiment = results["experiments"]["one-env"]
    part = experiment if key in experiment else experiment["learners"]["whole"]
    part[key] = value
    return json.dumps(results)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda _: None, "no such file"),
        (lambda _: "{}", "the file has no 'date'"),
        (lambda r: spoilt(r, "mean", [1.0]), "'whole' of 'one-env' lacks a seed"),
        (lambda r: spoilt(r, "mean", 1.0), "lacks one of mean, lowest, highest"),
        (lambda r: spoilt(r, "mean", [1, None]), "holds something that is no number"),
        (lambda r: spoilt(r, "lowest", [1, float("nan")]), "that is no number"),
        (lambda r: spoilt(r, "asserts_held", []), "does not say whether its asserts"),
        (lambda r: spoilt(r, "episodes", "20"), "'episodes' is"),
    ],
)
def test_a_file_that_cannot_be_shown_gives_one_error(project, results, spoil, told):
    html, warnings, drawn = project(spoil(results))
    (line,) = [line for line in warnings.splitlines() if "ERROR" in line]
    assert re.search(rf"index\.rst:4: ERROR: {FILE}: .*; `make bench-learning`", line)
    assert told in line
    assert "<table" not in html and drawn == {}


def test_an_experiment_that_the_file_lacks_is_named(project, results):
    del results["experiments"]["one-env"]
    warnings = project(json.dumps(results))[1]
    assert "index.rst:8: ERROR: learning.json holds no experiment 'one-env'" in warnings


# -- The committed file ----------------------------------------------------------------

PAGE = ROOT / "docs" / "reference" / "learning.rst"


@pytest.fixture(scope="module")
def committed() -> dict:
    """The committed file."""
    return learned.read(ROOT / FILE)


def test_every_experiment_of_the_file_is_shown_once(committed):
    shown = re.findall(r"learning-points:: (\S+)", PAGE.read_text())
    assert sorted(shown) == sorted(committed["experiments"])


def test_the_asserts_of_each_tutorial_held_with_every_seed(committed):
    """Else the build of a reader, with other random numbers, might be red."""
    for name, experiment in committed["experiments"].items():
        if not experiment["changed"]:
            assert experiment["asserts_held"] == [True] * len(committed["seeds"]), name


def test_what_tutorials_say_of_other_seeds_holds(committed):
    def mean(experiment: str, learner: str) -> list[float]:
        return committed["experiments"][experiment]["learners"][learner]["mean"]

    assert len(committed["seeds"]) == 10  # "from ten seeds each", 10_reinforce
    assert min(mean("reinforce", "whole")) >= 450  # "every seed arrives"
    cut = mean("reinforce", "cut")  # "at the top or at half of it"
    assert max(cut) >= 450 and min(cut) <= 250

    # "Over ten seeds both learners do alike", 10_reinforce.
    for name in ("reinforce-one-env", "reinforce-long-rows"):
        whole, cut = (statistics.fmean(mean(name, who)) for who in ("whole", "cut"))
        assert abs(whole - cut) < 50, name

    # "From seed to seed, the returns of the two overlap", 25_values.
    values = [mean("limit-values", name) for name in ("bootstrapped", "mistaken")]
    assert min(values[0]) < max(values[1]) and min(values[1]) < max(values[0])

    # "With Pendulum's own limit the mistake costs less", 20_actor_critic.
    costs = [
        statistics.fmean(mean(name, "bootstrapped"))
        - statistics.fmean(mean(name, "mistaken"))
        for name in ("actor-critic", "actor-critic-own-limit")
    ]
    assert costs[0] > costs[1] > 0

    # "The gap differs much from seed to seed", 40_recurrent_dqn.
    pairs = zip(mean("recurrent-dqn", "recurrent"), mean("recurrent-dqn", "twin"))
    gaps = [with_memory / without for with_memory, without in pairs]
    assert max(gaps) > 1.5 * min(gaps)


def test_versions_are_the_pinned_ones(committed):
    pins = (ROOT / "requirements.txt").read_text()
    for name, number in committed["versions"].items():
        assert re.search(rf"^{name}(\[[\w-]+\])?=={re.escape(number)}\s", pins, re.M)


def test_the_page_types_no_number():
    assert re.findall(r"\d", PAGE.read_text()) == []


def test_the_page_is_on_the_site(site):
    html = (site / "reference" / "learning.html").read_text()
    assert measured.count(10, "seed") in html
    assert 'href="learning.html' in (site / "reference/benchmarks.html").read_text()
