"""The report on claims: names each broken one, goes on, and is never red for it."""

from __future__ import annotations

from pathlib import Path

import claim_report
import pytest
from pageparts import Page

TEMPLATE = Path(__file__).parent / "template" / "10_template.py"
PAGE = '''"""
Title
=====

Promise.
"""

import warnings

low = 1
{more}

# %%
# A section
# ---------

assert low < 2
assert (
    low
    > 0
), "too low"
for step in (1, 2, 3):
    assert low < step + 1

# %%
# Try it
# ------

answer = None


def check(answer):
    assert answer is not None


# %%
# What you can rely on
# --------------------
#
# * It is below
#   two.
# * It is above `zero`.
# * It is below each step.
'''


@pytest.fixture
def repository(tmp_path) -> Path:
    """A folder with one page whose claims hold."""
    write(tmp_path, PAGE.format(more=""))
    return tmp_path


def write(root: Path, text: str) -> Path:
    """Make the page of a repository; returns its script."""
    script = root / "tutorials" / "first" / "10_page.py"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(text)
    return script


def told(root: Path, text: str, deadline: float = 60) -> claim_report.Report:
    """What is reported about a page."""
    return claim_report.report(write(root, text), deadline)


def test_a_page_whose_claims_hold_has_nothing_to_tell(repository):
    found = told(repository, PAGE.format(more=""))
    assert found == claim_report.Report("first/10_page", 3, [], 0, "", [])
    assert found.well
    assert "first/10_page" not in claim_report.summary([found])


def test_every_broken_claim_is_told_with_its_line_and_bullet(repository):
    found = told(repository, PAGE.replace("low = 1", "low = -1").format(more=""))
    assert [(item.line, item.says, item.error) for item in found.broken] == [
        (18, "It is above `zero`.", "AssertionError: too low")
    ]
    found = told(repository, PAGE.replace("low = 1", "low = 2").format(more=""))
    assert [(item.line, item.says) for item in found.broken] == [
        (17, "It is below two."),
        (23, "It is below each step."),  # only in the first turn of the loop
    ]
    text = claim_report.summary([found])
    assert "### tutorials/first/10_page.py\n\nbroken: 2, not checked: 0, of 3." in text
    assert (
        "- line 17: It is below two.\n  `assert low < 2` gave `AssertionError`" in text
    )


def test_an_error_in_the_assert_itself_is_told_and_the_page_goes_on(repository):
    found = told(repository, PAGE.replace("low = 1", "low = None").format(more=""))
    assert len(found.broken) == 3
    assert all(item.error.startswith("TypeError: '") for item in found.broken)
    assert (found.ended, found.unchecked) == ("", 0)


@pytest.mark.parametrize(
    ("more", "ended"),
    [
        ("low.gone()", "line 11: AttributeError: 'int' object has no attribute 'gone'"),
        ("raise ValueError('one\\ntwo')", "line 11: ValueError: one\ntwo"),
        ("import os; os._exit(3)", "exit code 3, without a word"),
        ("assert low > 1; low = 7", "line 11: AssertionError"),
    ],
)
def test_an_early_end_is_told_with_what_it_left_unchecked(repository, more, ended):
    found = told(repository, PAGE.format(more=more))
    assert found.ended == ended
    assert found.unchecked == found.claims
    assert f"not checked: {found.claims}" in claim_report.summary([found])


def test_an_exit_without_an_error_leaves_its_claims_unchecked(repository):
    found = told(repository, PAGE.format(more="raise SystemExit(0)"))
    assert (found.ended, found.unchecked, found.well) == ("", 3, False)


def test_a_page_that_hangs_is_told(repository):
    found = told(repository, PAGE.format(more="import time; time.sleep(60)"), 2)
    assert found.ended == "it did not end within 2 s"
    assert found.unchecked == 3


def test_a_warning_is_told(repository):
    more = 'warnings.warn("`x` goes away", DeprecationWarning)'
    found = told(repository, PAGE.format(more=more))
    assert found.warnings == ["10_page.py:11: DeprecationWarning: `x` goes away"]
    assert "- ``10_page.py:11: Depre" in claim_report.summary([found])


def test_a_process_that_the_page_starts_may_run_its_asserts_again(repository):
    more = "import multiprocessing"
    end = (
        "\n# %%\nif __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(abs, [low]))\n"
    )
    assert told(repository, PAGE.format(more=more) + end).well


def test_an_assert_stays_on_its_line_and_other_code_as_it_is(repository):
    text = PAGE.format(more="if low: assert low\nassert low; low = 1")
    page = Page(write(repository, text))
    lines = claim_report.rewritten(text, page.asserts()).splitlines()
    assert len(lines) == len(text.splitlines())
    changed = [new for old, new in zip(text.splitlines(), lines) if new != old]
    assert changed == [
        "with _claim(18): assert low < 2",
        "with _claim(19): assert (",
        "    with _claim(24): assert low < step + 1",
    ]


def test_of_the_template_two_claims_are_told_and_three_hold(tmp_path):
    text = TEMPLATE.read_text()
    text = text.replace("frames_per_batch=400", "frames_per_batch=399")
    found = told(tmp_path, text.replace('batch["no such key"]', 'batch["action"]'))
    assert [item.says for item in found.broken] == [
        "A batch holds as many steps as you ask for.",
        "A missing key raises a ``KeyError`` that names it.",
    ]
    assert (found.claims, found.unchecked, found.ended) == (5, 0, "")


def test_broken_claims_are_no_failure(repository, capsys, monkeypatch):
    write(repository, PAGE.replace("low = 1", "low = 9").format(more=""))
    file = repository / "summary.md"
    file.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    assert claim_report.main([], repository) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("## torch ")
    assert "Pages: 1, claims: 3, broken: 2, not checked: 0." in printed.out
    assert file.read_text() == "before\n" + printed.out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["gone/10_x"], "claim_report: no page tutorials/gone/10_x.py"),
        ([], "tutorials/first/10_page.py:3: not Python: invalid syntax"),
        (["--deadline", "soon"], None),
    ],
)
def test_what_cannot_be_read_is_one_clear_line(repository, capsys, arguments, line):
    write(repository, '"""\nTitle\n"""; x = = 1\n')
    if line is None:
        with pytest.raises(SystemExit, match="2"):
            claim_report.main(arguments, repository)
        return
    assert claim_report.main(arguments, repository) == 2
    assert capsys.readouterr().err.splitlines()[-1] == line


def test_no_page_is_one_clear_line(tmp_path, capsys):
    assert claim_report.main([], tmp_path) == 2
    assert capsys.readouterr().err == "claim_report: no page in tutorials/\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a", "`a`"), ("a `b`", "`` a `b` ``"), ("a\n  b", "`a b`"), ("``", "``` `` ```")],
)
def test_code_is_code_whatever_it_holds(text, expected):
    assert claim_report.code(text) == expected
