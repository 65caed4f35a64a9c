"""The audit of the site, without Lighthouse and without the HTML checker."""

from __future__ import annotations

import json
import subprocess
from types import SimpleNamespace

import audit
import pytest

GOOD = dict.fromkeys(audit.CATEGORIES, 100)


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A site and tools that answer as the test decides."""
    site = tmp_path / "html"
    site.mkdir()
    (site / "index.html").write_text("<h1>")
    monkeypatch.setattr(audit, "SITE", site)
    monkeypatch.setattr(audit, "FOUND", tmp_path / "audit")
    monkeypatch.setattr(audit, "TOOLS", tmp_path / "node")
    monkeypatch.setattr(audit, "KINDS", {"home": "index.html"})
    monkeypatch.setattr(audit.browser, "chromium", lambda: "/bin/chromium")
    monkeypatch.setattr(audit.shutil, "which", lambda name: f"/bin/{name}")
    answers = SimpleNamespace(scores=dict(GOOD), messages=[], npm=0)

    def run(command, **more):
        if command[0] == "npm":
            return subprocess.CompletedProcess(command, answers.npm, "", "npm: no\nx")
        if command[0] == "java":
            said = json.dumps({"messages": answers.messages})
            return subprocess.CompletedProcess(command, 0, "", said)
        found = {key: {"score": value / 100} for key, value in answers.scores.items()}
        said = json.dumps({"categories": found})
        return subprocess.CompletedProcess(command, 0, said, "Chrome did not start")

    monkeypatch.setattr(audit, "run", run)
    return answers


def test_a_site_that_is_well_passes_and_its_scores_are_kept(tools, capsys):
    assert audit.main() == 0
    found = json.loads((audit.FOUND / "results.json").read_text())
    assert found["scores"] == {"home, mobile": GOOD, "home, desktop": GOOD}
    assert capsys.readouterr().err == ""


def test_a_score_below_the_gate_fails(tools, capsys):
    tools.scores["seo"] = audit.GATE - 1
    assert audit.main() == 1
    assert "audit: home, mobile: seo is 94, the gate is 95" in capsys.readouterr().err


def test_invalid_html_fails_and_names_its_line(tools, capsys):
    url = f"file:{audit.SITE}/index.html"
    tools.messages = [{"url": url, "lastLine": 7, "message": "No."}]
    assert audit.main() == 1
    assert "audit: index.html:7: No." in capsys.readouterr().err


@pytest.mark.parametrize("program", ["node", "npm", "java"])
def test_a_missing_program_gives_one_line(tools, monkeypatch, capsys, program):
    monkeypatch.setattr(audit.shutil, "which", lambda name: name != program or None)
    assert audit.main() == 2
    said = capsys.readouterr().err
    assert said == f"audit: no '{program}' on the path; `make audit` needs it\n"
    assert not audit.FOUND.exists()


def test_tools_that_cannot_be_installed_give_one_line(tools, capsys):
    tools.npm = 1
    assert audit.main() == 2
    said = "audit: npm could not install tests/package.json: npm: no\n"
    assert capsys.readouterr().err == said


def test_lighthouse_without_scores_gives_one_line(tools, capsys):
    tools.scores = {}
    assert audit.main() == 2
    assert capsys.readouterr().err.endswith(": Chrome did not start\n")


def test_tools_are_installed_once(tools):
    audit.install()
    tools.npm = 1
    audit.install()


def test_the_median_of_three_counts():
    rounds = [GOOD | {"seo": score} for score in (90, 100, 96)]
    assert audit.median(rounds)["seo"] == 96


def test_the_tools_are_pinned_and_no_lock_file_is_kept():
    folder = audit.ROOT / "tests"
    pins = json.loads((folder / "package.json").read_text())["dependencies"]
    assert all(pin[0].isdigit() for pin in pins.values())
    assert not (folder / "package-lock.json").exists()
