"""Warnings are errors; the list of exceptions is short, reasoned and used."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import warned
from warned import Strict, allowed

ENTRY = """[[allow]]
category = "UserWarning"
module = "lib"
message = "mind the"
reason = "the library cannot do without"
"""


def repository(tmp_path: Path, text: str) -> Path:
    """A repository with this list."""
    (tmp_path / "tutorials").mkdir(exist_ok=True)
    (tmp_path / warned.LIST).write_text(text)
    return tmp_path


def warn(text: str, category: type[Warning] = UserWarning, module: str = "lib") -> None:
    """Warn as a module does."""
    warnings.warn_explicit(text, category, f"{module}.py", 1, module=module)


@pytest.fixture
def strict(tmp_path):
    """One entry, armed; disarmed at the end."""
    armed = Strict(allowed(repository(tmp_path, ENTRY)))
    before = list(warnings.filters)
    armed.start()
    yield armed
    armed.stop()
    assert list(warnings.filters) == before


@pytest.mark.parametrize(
    "category", [UserWarning, DeprecationWarning, ResourceWarning, FutureWarning]
)
def test_a_warning_is_an_error(strict, category):
    with pytest.raises(category, match="other"):
        warn("other", category)


def test_an_allowed_warning_is_silent_and_noted(strict):
    warn("mind the gap")
    assert strict.stop() == ["UserWarning lib: mind the"]
    strict.start()


@pytest.mark.parametrize(
    ("text", "category", "module"),
    [
        ("mind the gap", FutureWarning, "lib"),
        ("mind the gap", UserWarning, "other"),
        ("do mind the gap", UserWarning, "lib"),
    ],
)
def test_an_entry_allows_nothing_else(strict, text, category, module):
    with pytest.raises(category):
        warn(text, category, module)


def test_an_entry_that_meets_nothing_is_not_used(strict):
    with pytest.raises(UserWarning):
        warn("something else")
    assert strict.stop() == []
    strict.start()


def test_a_page_may_record_warnings(strict):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn("anything")
    assert [str(item.message) for item in caught] == ["anything"]
    assert not strict.is_touched()


def test_other_filters_are_noticed(strict):
    warnings.simplefilter("ignore")
    assert strict.is_touched()


def test_the_list_of_the_site_is_readable():
    assert len(allowed(Path(warned.__file__).parents[2])) <= warned.MOST


def test_an_entry_knows_its_line(tmp_path):
    entries = allowed(repository(tmp_path, f"# why\n\n{ENTRY}\n{ENTRY}"))
    assert [item.line for item in entries] == [3, 9]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (ENTRY * 11, ":1: 11 entries, at most 10"),
        (ENTRY.replace("reason =", "because ="), ":1: needs exactly category, messa"),
        (ENTRY.replace('"the library cannot do without"', '" "'), ":1: needs exactly"),
        (ENTRY.replace("UserWarning", "ValueError"), ":1: ValueError is no built-in"),
        (ENTRY.replace("mind the", "mind ("), ":1: message: missing )"),
        ("[[allow", ":1: TOMLDecodeError"),
    ],
)
def test_a_broken_list_gives_one_line(tmp_path, text, told):
    with pytest.raises(ValueError) as caught:
        allowed(repository(tmp_path, text))
    assert str(caught.value).startswith(warned.LIST + told)
    assert "\n" not in str(caught.value)


def test_a_missing_list_gives_one_line(tmp_path):
    with pytest.raises(ValueError, match=r"^tutorials/warnings\.toml:1: FileNotFound"):
        allowed(tmp_path)
