"""Every claim of every page: seen to fail when it is made false."""

from __future__ import annotations

from pathlib import Path

import claims
import pytest
from conftest import SCRIPTS
from page_run import page_name
from pagelint import claims_name
from pageparts import Page


def claims_file(script: Path) -> Path:
    """The claims file of a page."""
    return claims.FOLDER / claims_name(script)


def every_claim() -> list:
    """One parameter set for each claim of each page."""
    return [
        pytest.param(script, claim, id=f"{page_name(script)}-{number}")
        for script in SCRIPTS
        if claims_file(script).exists()
        for number, claim in enumerate(claims.read(claims_file(script)), 1)
    ]


def test_bullets_asserts_and_mutations_match(script):
    file = claims_file(script)
    if not file.exists():
        pytest.fail(f"no claims file tests/claims/{file.name}", pytrace=False)
    if found := claims.mismatches(Page(script), claims.read(file)):
        pytest.fail("\n".join(found), pytrace=False)


def test_no_claims_file_without_a_page():
    known = {claims_file(script).name for script in SCRIPTS}
    assert {path.name for path in claims.FOLDER.glob("*")} == known


@pytest.mark.parametrize(("path", "claim"), every_claim())
def test_assert_fails_when_the_claim_is_false(path, claim, tmp_path):
    if said := claims.verdict(Page(path), claim, tmp_path):
        pytest.fail(f"{claim.says}\n{said}", pytrace=False)


# -- The harness itself ----------------------------------------------------------------

PAGE = '''"""
Title
=====

Promise.
"""

low = 1

# %%
# A section
# ---------

assert low < 2
assert low > 0

# %%
# What you can rely on
# --------------------
#
# * It is below
#   two.
# * It is above zero.
'''
BELOW = claims.Claim("It is below two.", "assert low < 2", "low = 1", "low = 3")
ABOVE = claims.Claim("It is above zero.", "assert low > 0", "low = 1", "low = 0")


@pytest.fixture
def page(tmp_path) -> Page:
    """A small page with two claims."""
    path = tmp_path / "10_page.py"
    path.write_text(PAGE)
    return Page(path)


def test_harness_accepts_a_true_match(page, tmp_path):
    assert claims.mismatches(page, [BELOW, ABOVE]) == []
    (tmp_path / "run").mkdir()
    assert claims.verdict(page, BELOW, tmp_path / "run") == ""
    assert claims.verdict(page, ABOVE, tmp_path / "run") == ""


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("low = 1.5", "nothing failed"),
        ("low = 0", "line 15 failed, not the assert in line 14"),
        ("low = None", "line 14 raised TypeError"),
        ("low =", "raised SyntaxError"),
        ("raise AssertionError", "line 8 failed, not the assert"),
    ],
)
def test_harness_refuses_a_mutation_that_misses(page, tmp_path, by, expected):
    (tmp_path / "run").mkdir()
    claim = claims.Claim("It is below two.", "assert low < 2", "low = 1", by)
    assert expected in claims.verdict(page, claim, tmp_path / "run")


def test_harness_names_what_does_not_match(page):
    assert claims.mismatches(page, [BELOW]) == [
        "bullet without a claim: It is above zero.",
        "assert without a claim: assert low > 0",
    ]
    assert claims.mismatches(page, [ABOVE, BELOW]) == [
        "claims and bullets stand in different orders"
    ]
    other = claims.Claim("New.", "assert low < 2", "low = 7", "low = 7")
    assert claims.mismatches(page, [other, ABOVE]) == [
        "bullet without a claim: It is below two.",
        "claim without a bullet: New.",
        "line to replace stands 0 times: low = 7",
        "mutation changes nothing: low = 7",
    ]


def test_harness_refuses_a_changed_assert(page):
    cheat = claims.Claim(BELOW.says, BELOW.pin, "assert low < 2", "assert low > 2")
    assert "mutation changes an assert itself: assert low < 2" in claims.mismatches(
        page, [cheat, ABOVE]
    )


def test_claims_file_with_a_wrong_key_is_named(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text('[[claim]]\nsays = "a"\nassert = "assert 1"\nreplace = "b"\n')
    with pytest.raises(ValueError, match=r"x\.toml: claim 1 needs exactly assert, rep"):
        claims.read(path)
