"""The benchmark of the learners, on pages that learn nothing."""

from __future__ import annotations

import json
import re
import sys

import pytest
from conftest import ROOT

sys.path.append(str(ROOT / "benchmarks"))

import learning
from learning import Experiment

PAGE = '''"""A page."""
import torch

seed = 0
num_envs = 8
assert seed < 2
scores = {"whole": [seed + 0.5, 2.0], "cut": [float(num_envs)] * 2}
'''
AS_IT_IS = Experiment("a", "train/10_a")


@pytest.fixture
def root(tmp_path):
    """A repository with one page."""
    folder = tmp_path / "tutorials" / "train"
    folder.mkdir(parents=True)
    (folder / "10_a.py").write_text(PAGE)
    return tmp_path


def test_a_page_is_run_with_the_seed_and_the_settings(root):
    varied = Experiment("b", "train/10_a", {"num_envs = 8": "num_envs = 1"})
    assert learning.run(varied, 1, root) == {
        "scores": {"whole": [1.5, 2.0], "cut": [1.0, 1.0]},
        "holds": True,
    }


def test_an_assert_that_fails_is_noted_and_its_seed_is_kept(root):
    done = learning.run(AS_IT_IS, 3, root)
    assert done == {"scores": {"whole": [3.5, 2.0], "cut": [8.0] * 2}, "holds": False}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("seed = 0", "seed = 1", "the line `seed = 0` stands 0 times"),
        ("import torch", "seed = 0", "the line `seed = 0` stands 2 times"),
        ("import torch", "1 / 0", "line 2: ZeroDivisionError: division by zero"),
        ("scores =", "result =", "NameError: name 'scores' is not defined"),
    ],
)
def test_a_page_that_fails_gives_one_line(root, old, new, told):
    page = root / "tutorials" / "train" / "10_a.py"
    page.write_text(PAGE.replace(old, new))
    with pytest.raises(SystemExit) as caught:
        learning.run(AS_IT_IS, 0, root)
    assert str(caught.value).startswith("bench: a, seed 0: 10_a.py: ")
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_a_page_that_does_not_end_is_ended(root, monkeypatch):
    page = root / "tutorials" / "train" / "10_a.py"
    page.write_text(PAGE.replace("import torch", "import time\ntime.sleep(60)"))
    monkeypatch.setattr(learning, "DEADLINE", 0.5)
    with pytest.raises(SystemExit, match=r"bench: a, seed 0: over 0\.5 seconds"):
        learning.run(AS_IT_IS, 0, root)


def test_every_seed_is_kept():
    runs = [
        {"scores": {"whole": [1, 3], "cut": [0, -8]}, "holds": True},
        {"scores": {"whole": [5, 6], "cut": [2, 2]}, "holds": False},
    ]
    kept = learning.summary(AS_IT_IS, runs)
    assert kept["asserts_held"] == [True, False]
    assert kept["episodes"] == 2
    assert kept["learners"] == {
        "whole": {"mean": [2.0, 5.5], "lowest": [1.0, 5.0], "highest": [3.0, 6.0]},
        "cut": {"mean": [-4.0, 2.0], "lowest": [-8.0, 2.0], "highest": [0.0, 2.0]},
    }


def test_other_learners_with_another_seed_are_refused():
    runs = [{"scores": {"whole": [1]}, "holds": True}, {"scores": {}, "holds": True}]
    with pytest.raises(SystemExit, match="a: not the same learners each time"):
        learning.summary(AS_IT_IS, runs)


def test_a_failure_leaves_the_old_file(root, tmp_path, monkeypatch, capsys):
    results = tmp_path / "results"
    monkeypatch.setattr(learning, "RESULTS", results)
    monkeypatch.setattr(learning, "EXPERIMENTS", [AS_IT_IS])
    monkeypatch.setattr(learning, "SEEDS", range(2))
    run = learning.run
    monkeypatch.setattr(learning, "run", lambda *job: run(*job, root))
    learning.main()
    old = (results / "learning.json").read_text()
    assert json.loads(old)["experiments"]["a"]["learners"]["whole"]["mean"] == [
        1.2,
        1.8,
    ]
    page = root / "tutorials" / "train" / "10_a.py"
    page.write_text(PAGE.replace("import torch", "1 / 0"))
    with pytest.raises(SystemExit, match="bench: a, seed 0"):
        learning.main()
    assert (results / "learning.json").read_text() == old


@pytest.mark.parametrize("experiment", learning.EXPERIMENTS, ids=lambda item: item.name)
def test_each_experiment_changes_lines_that_its_page_has(experiment):
    text = (ROOT / "tutorials" / f"{experiment.page}.py").read_text()
    settings = {learning.SEED: "seed = 1"} | experiment.settings
    assert learning.changed(text, settings) != text
    assert re.search(r"^(\w+, )?scores = ", text, re.MULTILINE)


def test_the_file_holds_the_experiments_as_they_are_now():
    file = ROOT / "benchmarks" / "results" / "learning.json"
    kept = json.loads(file.read_text())["experiments"]
    assert {name: (one["page"], one["changed"]) for name, one in kept.items()} == {
        one.name: (one.page, one.settings) for one in learning.EXPERIMENTS
    }
