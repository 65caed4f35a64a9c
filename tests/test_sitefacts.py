"""The counted facts of the home page."""

from __future__ import annotations

import subprocess

import claims
import pytest
import sitefacts
import sites
from conftest import ROOT, SCRIPTS


def git(folder, *words):
    """Run git as an author of its own."""
    author = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *author, *words], cwd=folder, check=True, timeout=60)


@pytest.fixture
def no_date(monkeypatch):
    """A build that is not told the date."""
    monkeypatch.delenv(sitefacts.DATE, raising=False)


def test_the_date_is_that_of_the_last_commit(tmp_path, no_date, monkeypatch):
    git(tmp_path, "init", "-q")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2001-02-03T12:00:00")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    assert sitefacts.commit_date(tmp_path) == "2001-02-03"
    (tmp_path / "inside").mkdir()
    assert sitefacts.commit_date(tmp_path / "inside") == ""


def test_a_copy_may_be_told_the_date(tmp_path, monkeypatch):
    monkeypatch.setenv(sitefacts.DATE, "2002-03-04")
    assert sitefacts.commit_date(tmp_path) == "2002-03-04"


def test_without_repository_or_git_there_is_no_date(tmp_path, no_date, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert sitefacts.commit_date(tmp_path) == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sitefacts.commit_date(tmp_path) == ""


def test_claims_are_counted():
    files = sorted(claims.FOLDER.glob("*.toml"))
    assert sitefacts.claims(ROOT) == sum(len(claims.read(file)) for file in files) > 0


def test_the_home_page_shows_them(site):
    html = (site / "index.html").read_text()
    text = sites.text(html)
    assert f"{sitefacts.claims(ROOT)} claims on {len(SCRIPTS)} tutorials" in text
    for fact in sitefacts.facts(ROOT):
        assert fact in text
