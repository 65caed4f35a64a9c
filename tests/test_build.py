"""The build command: what runs again, what is reported, and how."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import messages
import page_run
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
  File "/home/x/build/run/assemble_20_b/assemble/20_b.py", line 44 in <module>
  File "/usr/lib/python3/site-packages/sphinx_gallery/gen_rst.py", line 9 in __call__
"""


@pytest.fixture
def root(tmp_path) -> Path:
    """A repository with two pages, and a Sphinx that only writes what it is told."""
    (tmp_path / "tutorials").mkdir()
    for name in build.SETTINGS:
        (tmp_path / name).write_text(f"# {name}\n")
    (tmp_path / "tutorials" / "limits.toml").write_text("default = 60\n[raised]\n")
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
            self.ending: tuple[str, ...] = ()  # they end Sphinx when they run
            self.together = 1  # pages that run at a time
            self.ran: list[str] = []
            self.calls = 0

        def record(self, root: Path, page: str, **known: object) -> None:
            file = root / "build" / "runs" / f"{page.replace('/', '_')}.json"
            file.parent.mkdir(exist_ok=True)
            record = page_run.Record(page, began=1.5 * len(self.ran), **known)
            file.write_text(json.dumps(dataclasses.asdict(record)))

        def __call__(self, root: Path, which: build.Pages, deadline: float) -> int:
            generated = root / build.GENERATED / "assemble"
            (generated / "images" / "thumb").mkdir(parents=True, exist_ok=True)
            self.calls += 1
            (root / "build" / "sphinx.log").write_text(self.log)
            (root / "build" / "warnings.log").write_text(self.warnings)
            started, self.ran = [], []
            assert self.calls < 10
            for script in build.pages(root):
                name, stamp = build.page_name(script), generated / f"{script.name}.md5"
                (generated / script.name).write_text(script.read_text())
                (generated / f"images/sphx_glr_{script.stem}_001.svg").write_text("x")
                matches = re.search(which.pattern, str(script))
                if name in self.skipped or not matches or stamp.exists():
                    continue
                started.append(name)
            workers = which.workers or self.together
            for name in started:
                if name in self.ending:
                    at_a_time = [n for n in started if n not in self.ran][:workers]
                    for running in at_a_time:
                        self.record(root, running, line=3)
                    return 1
                error = self.failing.get(name, "")
                self.record(root, name, seconds=1.5, error=error)
                self.ran.append(name)
                if not error:
                    (generated / f"{Path(name).name}.py.md5").write_text("digest")
            (root / "build" / "html").mkdir(exist_ok=True)
            (root / "build" / "html" / "index.html").write_text("home")
            return self.code

    stand_in = Sphinx()
    monkeypatch.setattr(build, "run_sphinx", stand_in)
    # Tested elsewhere; these look at real pages, a real site, a real torch.
    monkeypatch.setattr(build, "complaints", lambda root, used: [])
    monkeypatch.setattr(build, "compiled_part", lambda root: "")
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


def test_another_address_builds_the_site_and_runs_no_page(root, sphinx, monkeypatch):
    monkeypatch.delenv("SITE_URL", raising=False)
    assert build.build(root) == []
    monkeypatch.setenv("SITE_URL", "https://example.org/")
    assert build.build(root) == []
    assert sphinx.calls == 2
    assert sphinx.ran == []
    monkeypatch.setenv("SITE_URL", "example.org")
    with pytest.raises(ValueError, match=r"^SITE_URL: 'example\.org' is not"):
        build.build(root)


@pytest.mark.parametrize(
    "name", ["docs/index.rst", "tutorials/assemble/index.rst", "tests/claims/a.toml"]
)
def test_a_changed_source_builds_again(root, sphinx, name):
    build.build(root)
    (root / name).parent.mkdir(parents=True, exist_ok=True)
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


@pytest.mark.parametrize("name", [*build.SETTINGS, "docs/_ext/x.py"])
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


@pytest.mark.parametrize("together", [1, 2])
def test_a_page_that_ends_sphinx_is_named_and_the_others_run(root, sphinx, together):
    script = root / "tutorials/assemble/10_a.py"
    script.write_text("import sys\n\nprint(1)\nprint(2)\nsys.exit(0)\n")
    sphinx.ending, sphinx.together = ("assemble/10_a",), together
    line = "tutorials/assemble/10_a.py:5: ended the process that ran the page"
    assert build.build(root) == [f"{line}: sys.exit()"]
    assert sphinx.ran == ["assemble/20_b"]
    cases = ET.parse(root / "build" / "junit.xml").iter("testcase")
    assert {c.get("name"): c.find("failure") is None for c in cases} == {
        "assemble/10_a": False,
        "assemble/20_b": True,
    }


def test_every_page_that_ends_sphinx_is_named(root, sphinx):
    sphinx.ending = ("assemble/10_a", "assemble/20_b")
    assert [line.split(": ")[1] for line in build.build(root)] == [
        "ended the process that ran the page"
    ] * 2
    assert sphinx.calls == 3


def test_a_build_gives_up_when_too_many_pages_end_it(root, sphinx, monkeypatch):
    monkeypatch.setattr(build, "ENDINGS", 1)
    sphinx.ending = ("assemble/10_a",)
    assert build.build(root)[1:] == [
        "tutorials/assemble/20_b.py:1: rendered but never run"
    ]


def test_a_page_that_hangs_is_named_with_its_line_and_the_stack_is_kept(root, sphinx):
    sphinx.ending, sphinx.together = ("assemble/20_b",), 2
    sphinx.log = SPHINX_LOG
    kept = "build/stack-assemble-20_b.log"
    assert build.build(root) == [
        "tutorials/assemble/20_b.py:44: over its time limit (tutorials/limits.toml), "
        f"and no exception could end it; see {kept}"
    ]
    assert (root / kept).read_text() == SPHINX_LOG


def test_the_pattern_says_which_pages_run():
    def runs(which: build.Pages) -> list[str]:
        paths = ["/x/tutorials/a/1.py", "/x/tutorials/a/11.py", "/x/tutorials/b/1.py"]
        return [path[-6:-3] for path in paths if re.search(which.pattern, path)]

    assert len(runs(build.Pages())) == 3
    assert runs(build.Pages("a/1")) == ["/a/1"[1:]]
    assert runs(build.Pages(ended={"a/1": "", "b/1": ""})) == ["/11"]


def test_time_in_pages_counts_pages_at_the_same_time_once():
    found = [
        page_run.Record("a/1", began=10.0, seconds=5.0),
        page_run.Record("a/2", began=12.0, seconds=1.0),
        page_run.Record("a/3", began=14.0, seconds=3.0),
        page_run.Record("a/4", began=20.0, seconds=1.0),
    ]
    assert build.time_in_pages(found) == 8.0


def test_a_torch_that_does_not_fit_stops_the_build(root, sphinx, monkeypatch):
    monkeypatch.setattr(build, "compiled_part", lambda root: "needs torch 2.14")
    assert build.build(root) == ["needs torch 2.14"]
    assert sphinx.calls == 0


def test_which_allowed_warnings_were_used_is_remembered(root, sphinx, monkeypatch):
    asked = []
    monkeypatch.setattr(
        build, "complaints", lambda root, used: asked.append(used) or []
    )
    build.build(root)
    ledger = root / build.GENERATED / "ledger.json"
    runs = json.loads(ledger.read_text())
    runs["assemble/10_a"]["allowed"] = ["UserWarning x: y"]
    ledger.write_text(json.dumps(runs))
    (root / "docs" / "index.rst").write_text("changed")
    build.build(root)
    assert asked == [set(), {"UserWarning x: y"}]


def test_failure_line_of_a_figure_names_its_lines():
    text = "Traceback:\nfigures.FigureError: assemble/x.py:7-9: figure without alt"
    assert messages.failure_line("assemble/x", text) == (
        "tutorials/assemble/x.py:7: figure without alt"
    )


def test_failure_line_names_file_line_and_assert():
    assert messages.failure_line("assemble/20_split", TRACEBACK) == (
        "tutorials/assemble/20_split.py:57: AssertionError: "
        "assert split.shape == (10, 62)"
    )


def test_failure_line_names_the_page_and_not_the_library():
    assert messages.failure_line("assemble/20_split", DEEP) == (
        "tutorials/assemble/20_split.py:31: KeyError: 'observation'"
    )


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import os\n\nos._exit(3)", "3: os._exit()"),
        ("\nraise SystemExit(2)", "2: raise SystemExit"),
        ("x = 1\n", "1: in this cell"),
        # A call above the cell that ran is not it.
        ("exit()\n\n\nx = 2", "2: in this cell"),
    ],
)
def test_the_end_of_a_process_is_looked_for(root, code, told):
    (root / "tutorials/assemble/10_a.py").write_text(code)
    line = 2 if code.startswith("exit") else 1
    told = told.replace(": ", ": ended the process that ran the page: ")
    place = f"tutorials/assemble/10_a.py:{told}"
    assert messages.ending_line(root, "assemble/10_a", line) == place


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
    assert messages.warning_lines(text, root) == [
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
    assert build.run_sphinx(root, build.Pages(), time.monotonic() + 60) == 0
    assert not (root / "build" / "html" / "old.html").exists()


def test_a_sphinx_that_hangs_is_ended_with_its_children(root, monkeypatch):
    hang = root / "hang"
    hang.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {root}/child\nwait\n")
    hang.chmod(0o755)
    monkeypatch.setattr(build.sys, "executable", str(hang))
    (root / "build").mkdir()
    with pytest.raises(build.Failure, match=r"did not end within 2700 s"):
        build.run_sphinx(root, build.Pages(), time.monotonic() + 1.0)
    child = int((root / "child").read_text())

    def is_running() -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(child).status() != psutil.STATUS_ZOMBIE
        return False

    deadline = time.monotonic() + 10  # a kill takes a moment to arrive
    while is_running() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running()
