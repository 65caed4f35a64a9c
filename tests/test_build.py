"""The build command: what runs again, what is reported, and how."""

from __future__ import annotations

import contextlib
import json
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import psutil
import pytest

import build

TRACEBACK = """Traceback (most recent call last):
  File "/home/x/tutorials/assemble/20_split.py", line 57, in <module>
    assert split.shape == (10, 62)
           ^^^^^^^^^^^^^^^^^^^^^^^
AssertionError
"""
DEEP = """Traceback (most recent call last):
  File "/home/x/tutorials/assemble/20_split.py", line 31, in <module>
    batch = next(batches)
  File "/usr/lib/python3/site-packages/torchrl/collectors/x.py", line 9, in step
    raise KeyError("observation")
KeyError: 'observation'
"""
SPHINX_LOG = """Timeout (0:01:00)!
Thread 0x00007f (most recent call first):
  File "/usr/lib/python3.11/queue.py", line 171 in get
  File "/home/x/tutorials/assemble/70_background.py", line 44 in <module>
  File "/usr/lib/python3/site-packages/sphinx_gallery/gen_rst.py", line 9 in __call__
"""


@pytest.fixture
def root(tmp_path) -> Path:
    """A repository with two pages, and a Sphinx that only writes what it is told."""
    for name in ("requirements.txt", "constraints.txt", "conf.py"):
        (tmp_path / name).write_text(f"# {name}\n")
    (tmp_path / "docs" / "_ext").mkdir(parents=True)
    (tmp_path / "docs" / "_ext" / "x.py").write_text("x = 1\n")
    for name in ("10_a", "20_b"):
        page = tmp_path / "tutorials" / "assemble" / f"{name}.py"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f'"""{name}"""\n')
    return tmp_path


@pytest.fixture
def sphinx(root, monkeypatch):
    """Stand-in for one run of Sphinx; collects which pages had to run."""

    class Sphinx:
        def __init__(self) -> None:
            self.code, self.log, self.warnings = 0, "", ""
            self.failing: dict[str, str] = {}
            self.skipped: tuple[str, ...] = ()
            self.ran: list[str] = []
            self.calls = 0

        def __call__(self, root: Path, page: str | None) -> int:
            generated = root / build.GENERATED / "assemble"
            (generated / "images" / "thumb").mkdir(parents=True, exist_ok=True)
            (root / "build").mkdir(exist_ok=True)
            suite, self.ran = ET.Element("testsuite"), []
            for script in build.pages(root):
                name, stamp = build.page_name(script), generated / f"{script.name}.md5"
                (generated / script.name).write_text(script.read_text())
                (generated / f"images/sphx_glr_{script.stem}_001.svg").write_text("x")
                if name in self.skipped or (page and name != page) or stamp.exists():
                    continue
                self.ran.append(name)
                case = ET.SubElement(suite, "testcase", time="1.5")
                case.set("file", f"../tutorials/{name}.py")
                if name in self.failing:
                    ET.SubElement(case, "failure").text = self.failing[name]
                else:
                    stamp.write_text("digest")
            ET.ElementTree(suite).write(root / "build" / "gallery-junit.xml")
            (root / "build" / "html").mkdir(exist_ok=True)
            (root / "build" / "html" / "index.html").write_text("home")
            self.calls += 1
            (root / "build" / "sphinx.log").write_text(self.log)
            (root / "build" / "warnings.log").write_text(self.warnings)
            return self.code

    stand_in = Sphinx()
    monkeypatch.setattr(build, "run_sphinx", stand_in)
    return stand_in


def test_an_unchanged_page_does_not_run_again(root, sphinx, capsys):
    assert build.build(root) == []
    assert sphinx.ran == ["assemble/10_a", "assemble/20_b"]
    (root / "docs" / "index.rst").write_text("Home\n====\n")
    assert build.build(root) == []
    assert sphinx.ran == []
    printed = capsys.readouterr().out
    assert "pages run: 0, unchanged: 2; 0.0 s in tutorials" in printed


def test_an_unchanged_site_is_not_built_again(root, sphinx, capsys):
    for _ in range(2):
        assert build.build(root) == []
    assert sphinx.calls == 1
    assert "nothing has changed; pages: 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["docs/index.rst", "tutorials/assemble/index.rst", "tutorials/limits.toml"]
)
def test_a_changed_source_builds_again(root, sphinx, name):
    build.build(root)
    (root / name).write_text("new")
    build.build(root)
    assert sphinx.calls == 2


def test_a_site_that_is_gone_or_failed_or_partial_is_built_again(root, sphinx):
    build.build(root)
    (root / "build" / "html" / "index.html").unlink()
    build.build(root)
    assert sphinx.calls == 2
    build.build(root, "assemble/10_a")
    build.build(root)
    assert sphinx.calls == 4
    sphinx.code, sphinx.warnings = 1, "docs/index.rst:1: WARNING: bad\n"
    (root / "docs" / "index.rst").write_text("bad")
    assert build.build(root) == ["docs/index.rst:1: WARNING: bad"]
    assert build.build(root) == ["docs/index.rst:1: WARNING: bad"]
    assert sphinx.calls == 6


@pytest.mark.parametrize(
    "name", ["requirements.txt", "constraints.txt", "conf.py", "docs/_ext/x.py"]
)
def test_every_page_runs_again_when_pins_or_extensions_change(root, sphinx, name):
    build.build(root)
    (root / name).write_text("# changed\n")
    build.build(root)
    assert sphinx.ran == ["assemble/10_a", "assemble/20_b"]


def test_only_the_changed_page_runs_again(root, sphinx):
    build.build(root)
    (root / "tutorials/assemble/20_b.py").write_text('"""new"""\n')
    build.build(root)
    assert sphinx.ran == ["assemble/20_b"]


def test_a_removed_page_leaves_nothing(root, sphinx):
    build.build(root)
    (root / "tutorials/assemble/20_b.py").unlink()
    build.build(root)
    assert sphinx.ran == [], "the other page must not run again"
    assert list((root / build.GENERATED).rglob("*20_b*")) == []
    assert len(list((root / build.GENERATED).rglob("*10_a*"))) == 3
    assert list(json.loads((root / build.GENERATED / "ledger.json").read_text())) == [
        "assemble/10_a"
    ]


def test_a_page_that_was_rendered_but_not_run_fails(root, sphinx):
    sphinx.skipped = ("assemble/20_b",)
    assert build.build(root) == ["tutorials/assemble/20_b.py:1: rendered but never run"]


@pytest.mark.parametrize("name", ["assemble/20_b", "tutorials/assemble/20_b.py"])
def test_a_page_may_be_named_by_its_path(root, sphinx, monkeypatch, capsys, name):
    monkeypatch.setattr(build, "ROOT", root)
    monkeypatch.setattr(build.sys, "argv", ["build.py", "--page", name])
    assert build.main() == 0
    assert capsys.readouterr().out.endswith(
        "open build/html/tutorials/assemble/20_b.html\n"
    )


def test_one_page_alone(root, sphinx, capsys):
    assert build.build(root, "assemble/20_b") == []
    assert sphinx.ran == ["assemble/20_b"]
    assert "only one page ran: assemble/10_a\n" in capsys.readouterr().out
    assert build.build(root) == []
    assert sphinx.ran == ["assemble/10_a"]


def test_an_unknown_page_is_named(root, sphinx):
    with pytest.raises(
        build.Failure, match=r"no page tutorials/assemble/x\.py; there is"
    ):
        build.build(root, "assemble/x")


def test_all_failures_are_reported_and_run_again(root, sphinx):
    sphinx.code = 2
    sphinx.failing = {
        "assemble/10_a": "Traceback\nKeyError: 1",
        "assemble/20_b": "E: 2",
    }
    expected = [
        "tutorials/assemble/10_a.py:1: KeyError: 1",
        "tutorials/assemble/20_b.py:1: E: 2",
    ]
    assert build.build(root) == expected
    assert build.build(root) == expected
    cases = ET.parse(root / "build" / "junit.xml").getroot()
    assert (cases.get("tests"), cases.get("failures")) == ("2", "2")
    messages = [failure.get("message") for failure in cases.iter("failure")]
    assert messages == expected
    assert [case.get("time") for case in cases] == ["1.500", "1.500"]


def test_junit_lists_remembered_pages_with_their_seconds(root, sphinx):
    build.build(root)
    build.build(root, "assemble/20_b")
    cases = ET.parse(root / "build" / "junit.xml").iter("testcase")
    assert {case.get("name"): case.get("time") for case in cases} == {
        "assemble/10_a": "1.500",
        "assemble/20_b": "1.500",
    }


def test_a_crash_without_a_verdict_is_a_failure(root, sphinx):
    sphinx.code, sphinx.log = 2, "Extension error:\nno module named x\n\n"
    assert build.build(root) == ["build: Sphinx stopped: no module named x"]
    sphinx.log = (
        "Traceback\n\n  sphinx.errors.ExtensionError: no header\n\nPlease report"
    )
    assert build.build(root) == [
        "build: Sphinx stopped: sphinx.errors.ExtensionError: no header"
    ]


def test_a_page_that_ends_sphinx_is_named_whatever_the_exit_code(root, sphinx):
    sphinx.skipped = ("assemble/10_a", "assemble/20_b")
    (root / "build").mkdir()
    (root / "build" / "running").write_text("assemble/20_b")
    expected = "tutorials/assemble/20_b.py:1: ended the whole build, with exit code"
    for sphinx.code in (0, 3):
        assert build.build(root) == [f"{expected} {sphinx.code}"]


def test_failure_line_of_a_figure_names_its_lines():
    text = "Traceback:\nfigures.FigureError: assemble/x.py:7-9: figure without alt"
    assert build.failure_line("assemble/x", text) == (
        "tutorials/assemble/x.py:7: figure without alt"
    )


def test_failure_line_names_file_line_and_assert():
    assert build.failure_line("assemble/20_split", TRACEBACK) == (
        "tutorials/assemble/20_split.py:57: AssertionError: "
        "assert split.shape == (10, 62)"
    )


def test_failure_line_names_the_page_and_not_the_library():
    assert build.failure_line("assemble/20_split", DEEP) == (
        "tutorials/assemble/20_split.py:31: KeyError: 'observation'"
    )


def test_a_page_over_its_limit_is_named_with_the_stuck_line():
    line = build.crash_line(1, SPHINX_LOG, "assemble/70_background")
    assert line.startswith(
        "tutorials/assemble/70_background.py:44: over its time limit"
    )


def test_warnings_point_at_the_script(root):
    page = root / build.GENERATED / "assemble" / "10_a.rst"
    page.parent.mkdir(parents=True)
    page.write_text(
        "head\n\n.. GENERATED FROM PYTHON SOURCE LINES 40-44\n\nbad\nworse\n"
    )
    text = (
        f"{page}:6: \x1b[31mWARNING: target not found: x [ref.ref]\x1b[39m\n"
        f"{root}/docs/index.rst:3: WARNING: title too short\n"
        f"{root}/docs/tutorials/assemble/index.rst:4: WARNING: no such label\n"
        f"{page}: WARNING: document isn't included in any toctree [toc.x]\n"
        "WARNING: \n\n../tutorials/assemble/10_a.py unexpectedly failed:\n"
    )
    assert build.warning_lines(text, root) == [
        "tutorials/assemble/10_a.py:41: WARNING: target not found: x [ref.ref]",
        "docs/index.rst:3: WARNING: title too short",
        "tutorials/assemble/index.rst:4: WARNING: no such label",
        "tutorials/assemble/10_a.py:1: WARNING: document isn't included in any toctree "
        "[toc.x]; list it in the index.rst of its folder",
    ]


def test_nothing_of_an_earlier_site_stays(root, monkeypatch):
    monkeypatch.setattr(build.sys, "executable", "/bin/true")
    (root / "build" / "html").mkdir(parents=True)
    (root / "build" / "html" / "old.html").write_text("old")
    assert build.run_sphinx(root, None) == 0
    assert not (root / "build" / "html" / "old.html").exists()


def test_a_sphinx_that_hangs_is_ended_with_its_children(root, monkeypatch):
    monkeypatch.setattr(build, "DEADLINE", 1.0)
    hang = root / "hang"
    hang.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {root}/child\nwait\n")
    hang.chmod(0o755)
    monkeypatch.setattr(build.sys, "executable", str(hang))
    with pytest.raises(build.Failure, match=r"did not end within 1\.0 s"):
        build.run_sphinx(root, None)
    child = int((root / "child").read_text())

    def is_running() -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(child).status() != psutil.STATUS_ZOMBIE
        return False

    deadline = time.monotonic() + 10  # a kill takes a moment to arrive
    while is_running() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running()
