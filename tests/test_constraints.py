"""Resolving requirements.txt into constraints.txt."""

from __future__ import annotations

import json
import re
import subprocess

import constraints
import pytest
from conftest import ROOT


@pytest.fixture
def pip(monkeypatch):
    """Answer for pip with an exit code, a report and a last line of errors."""

    def answer(code: int, report: dict, error: str = "") -> None:
        done = subprocess.CompletedProcess([], code, json.dumps(report), error)
        monkeypatch.setattr(constraints.subprocess, "run", lambda *_, **__: done)

    return answer


def test_pins_are_sorted_and_the_file_names_its_command(pip, tmp_path):
    found = [{"name": "Torch", "version": "2.1"}, {"name": "absl", "version": "1.0"}]
    pip(0, {"install": [{"metadata": package} for package in found]})
    text = constraints.resolve(tmp_path / "requirements.txt")
    assert text.splitlines()[1:] == ["absl==1.0", "torch==2.1"]
    assert "Made by `make constraints`" in text.splitlines()[0]


def test_a_set_that_does_not_fit_together_gives_one_line(pip, tmp_path):
    pip(1, {}, "noise\nERROR: no matching distribution\n")
    with pytest.raises(SystemExit, match=r"^constraints: ERROR: no matching distr"):
        constraints.resolve(tmp_path / "requirements.txt")


def test_every_requirement_stands_in_the_constraints():
    pin = re.compile(r"^([\w.-]+)(?:\[[\w,-]+\])?==(\S+)", re.MULTILINE)

    def read(name: str) -> dict[str, str]:
        found = pin.findall((ROOT / name).read_text())
        return {re.sub(r"[-_.]+", "-", n).lower(): v for n, v in found}

    wanted = read("requirements.txt")
    assert len(wanted) > 20
    assert wanted.items() <= read("constraints.txt").items()


def test_every_requirement_says_what_it_is_for():
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            assert re.fullmatch(r"\S+==\S+ +# \S.{5,}", line), line
