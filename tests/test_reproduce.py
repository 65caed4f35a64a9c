"""Two builds of one site: what is compared, what is named, and what is left behind."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import psutil
import pytest
import reproduce
from reproduce import MARK, SITE, Failure, compare

SCRIPT = '''"""
Title
=====
"""

import torch

print("first", 1)
print("seconds", time.time())

# %%
# A figure.

fig, ax = plt.subplots()
fig.set_label("A.")
'''
PAGE = """\
Title
=====

.. GENERATED FROM PYTHON SOURCE LINES 5-11

.. code-block:: Python

    import torch

.. rst-class:: sphx-glr-script-out

 .. code-block:: none

    first 1
    seconds {}

.. GENERATED FROM PYTHON SOURCE LINES 12-14

A figure.

.. GENERATED FROM PYTHON SOURCE LINES 14-16

.. figure-pair:: /tutorials/assemble/images/sphx_glr_10_a_001.svg
    :alt: A.
"""


def write(root: Path, seconds: str = "5", figure: str = "<svg>", **others: str) -> Path:
    """Write what a build leaves, with one page; a keyword names a file of the site."""
    images = root / "docs" / "tutorials" / "assemble" / "images"
    files = {
        root / "tutorials" / "assemble" / "10_a.py": SCRIPT,
        root / "docs" / "tutorials" / "assemble" / "10_a.rst": PAGE.format(seconds),
        images / "sphx_glr_10_a_001.svg": figure,
        images / "sphx_glr_10_a_001_dark.svg": figure,
        root / SITE / "index.html": "home",
        root / SITE / "tutorials" / "assemble" / "10_a.html": f"<p>{seconds}</p>",
        root / SITE / "_images" / "sphx_glr_10_a_001.svg": figure,
        root / SITE / "_images" / "sphx_glr_10_a_001_dark.svg": figure,
        root / SITE / "searchindex.js": f"index({seconds})",
        **{root / SITE / name: text for name, text in others.items()},
    }
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.fixture
def two(tmp_path):
    """Two repositories, built."""
    return write(tmp_path / "first"), write(tmp_path / "second")


# -- What differs ----------------------------------------------------------------------


def test_the_same_bytes_are_no_complaint(two):
    assert compare(*two) == ([], [], 5)


def test_a_printed_time_is_named_by_the_line_that_prints_it(two):
    first, second = two
    write(second, seconds="6")
    complaints, differences, _ = compare(first, second)
    assert complaints == [
        "tutorials/assemble/10_a.py:9: the output differs between two builds"
    ]
    assert differences[0] == "  docs/tutorials/assemble/10_a.rst"
    assert "    -    seconds 5" in differences
    assert "    +    seconds 6" in differences


def test_a_figure_is_named_once_by_the_cell_that_shows_it(two):
    first, second = two
    write(second, figure="<svg>\n<path>")
    complaints, differences, _ = compare(first, second)
    assert complaints == [
        "tutorials/assemble/10_a.py:14: figure 001 differs between two builds"
    ]
    assert differences == [
        "  docs/tutorials/assemble/images/sphx_glr_10_a_001.svg",
        *("    @@", "     <svg>", "    +<path>"),
    ]


def test_other_files_are_named_by_their_path_and_line(two):
    first, second = two
    write(first, **{"llms.txt": "a\nb", "only.txt": "x", "a.bin": "\0a"})
    write(second, **{"llms.txt": "a\nc", "new.txt": "x", "a.bin": "\0b"})
    complaints, differences, number = compare(first, second)
    assert complaints == [
        "build/html/a.bin:1: differs between two builds",
        "build/html/llms.txt:2: differs between two builds",
        "build/html/new.txt:1: only the second of two builds has it",
        "build/html/only.txt:1: only the first of two builds has it",
    ]
    assert differences == [
        "  build/html/llms.txt",
        "    @@",
        "     a",
        "    -b",
        "    +c",
    ]
    assert number == 9


def test_html_that_differs_from_the_same_text_is_named_itself(two):
    first, second = two
    write(second, **{"tutorials/assemble/10_a.html": "<p>\nx"})
    assert compare(first, second)[0] == [
        "build/html/tutorials/assemble/10_a.html:1: differs between two builds"
    ]


def test_differences_are_short(two):
    first, second = two
    many = {f"{name}.txt": f"{name}\n" * 500 for name in "abcdefg"}
    write(first, **many)
    write(second, **{name: text.upper() for name, text in many.items()})
    complaints, differences, _ = compare(first, second)
    assert len(complaints) == 7
    assert len(differences) == reproduce.DIFF_FILES * (reproduce.DIFF_LINES + 2)


def test_a_file_of_one_line_shows_where_it_differs():
    ours = b"0123456789" * 50_000
    lines = reproduce.difference("x", ours + b"a", ours + b"b")
    assert lines[-2:] == ["    -a", "    +b"]
    assert len(lines) < 8


@pytest.mark.parametrize(
    "code, said, line",
    [
        ("print('a b', x)\nprint('c d', x)", "c d 5", 2),
        ("print('a b', x)\nprint(f'{x} steps')", "5 steps", 2),
        ("print('a b', x)\nprint(x)\nprint('c d')", "140", 2),
        ("print('a b', x)\nx", "140", 1),
        ("x = 1\nx.show()", "<x at 0x7f>", 2),
        ("fig = 1\nprint('y')\n", "", 1),
    ],
)
def test_the_statement_that_most_likely_printed_it(code, said, line):
    assert reproduce.statement(ast.parse(code), said) == line


# -- Two builds ------------------------------------------------------------------------


@pytest.mark.parametrize("zone", ["UTC", "<+14>-14", "<-12>+12", "<+0530>-5:30"])
def test_another_zone_has_another_date_at_any_hour(zone, monkeypatch):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for now in range(1_900_000_000, 1_900_090_000, 600):
            here = datetime.fromtimestamp(now).date()
            monkeypatch.setenv("TZ", reproduce.other_zone(now, now))
            time.tzset()
            there = {datetime.fromtimestamp(now + s).date() for s in (0, 1800, 3600)}
            assert here not in there
            monkeypatch.setenv("TZ", zone)
            time.tzset()
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_second_build_has_another_hash_seed_and_its_own_folder(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    environment = reproduce.another_environment(tmp_path, time.time())
    assert environment["PYTHONHASHSEED"] == "2"
    assert environment["TMPDIR"].startswith(str(tmp_path))


def test_tracked_and_new_files_are_copied_and_no_ignored_ones(tmp_path):
    root, copy = tmp_path / "root", tmp_path / "copy"
    (root / "docs").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / ".gitignore").write_text("/build\n")
    for name in ("gone.txt", "docs/é ü.rst", "run.sh"):
        (root / name).write_text(name)
    (root / "run.sh").chmod(0o755)
    subprocess.run(["git", "-C", root, "add", "."], check=True)
    (root / "gone.txt").unlink()
    (root / "new.txt").write_text("new")
    (root / "build").mkdir()
    (root / "build" / "x").write_text("made")
    reproduce.copy_tree(root, copy)
    found = {p.relative_to(copy).as_posix() for p in copy.rglob("*") if p.is_file()}
    assert found == {".gitignore", "docs/é ü.rst", "run.sh", "new.txt"}
    assert os.access(copy / "run.sh", os.X_OK)


def test_what_is_no_checkout_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(Failure, match=r"^reproduce: git does not list the files: .+$"):
        reproduce.copy_tree(tmp_path, tmp_path / "copy")


def test_nothing_is_left_behind_even_in_another_session():
    code = "import os, time; os.fork() or os.setsid(); print(flush=True); time.sleep(9)"
    with pytest.raises(KeyboardInterrupt), reproduce.scratch() as folder:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            env=os.environ | {MARK: str(folder)},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        for _ in range(2):
            process.stdout.readline()
        children = psutil.Process(process.pid).children()
        assert len(children) == 1
        raise KeyboardInterrupt
    process.stdout.close()
    assert process.wait(timeout=10) == -signal.SIGKILL
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert not folder.exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_clock_is_shifted_where_faketime_is_installed(tmp_path):
    environment = dict(os.environ)
    prefix = reproduce.shift_clock(tmp_path, environment)
    assert bool(prefix) == bool(shutil.which("faketime"))
    code = "import time; t = time.monotonic(); time.sleep(0.2); print(time.time());"
    code += "print(time.monotonic() - t)"
    command = [*prefix, sys.executable, "-c", code]
    clock, slept = subprocess.check_output(command, env=environment, text=True).split()
    assert (float(clock) > time.time() + 300 * 86400) == bool(prefix)
    assert 0.1 < float(slept) < 10


@pytest.mark.parametrize("program", ["exit 1", 'shift 3; exec "$@"'])
def test_a_faketime_that_does_not_work_is_not_used(tmp_path, monkeypatch, program):
    fake = tmp_path / "faketime"
    fake.write_text(f"#!/bin/sh\n{program}\n")
    fake.chmod(0o755)
    monkeypatch.setattr(reproduce.shutil, "which", lambda _: str(fake))
    environment = {"A": "1"}
    assert reproduce.shift_clock(tmp_path, environment) == []
    assert environment == {"A": "1"}


def test_a_build_that_hangs_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce, "DEADLINE", 0.5)
    (tmp_path / "docs" / "_ext").mkdir(parents=True)
    (tmp_path / "docs/_ext/build.py").write_text("import time; time.sleep(60)")
    with (
        pytest.raises(Failure, match="did not end within"),
        reproduce.scratch() as folder,
    ):
        reproduce.run_build(tmp_path, os.environ | {MARK: str(folder)}, [])
    assert reproduce.marked(folder) == []


@pytest.fixture
def builds(tmp_path, monkeypatch):
    """A repository, and stand-ins for its builds: what each prints, and its code."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(reproduce.shutil, "which", lambda _: None)
    monkeypatch.setattr(reproduce, "copy_tree", lambda root, to: to.mkdir())

    def set_up(seconds=("5", "5"), codes=(0, 0), keys=("k", "k")) -> Path:
        values = iter(zip(seconds, codes, keys))

        def run(root: Path, environment: dict, prefix: list) -> int:
            told, code, key = next(values)
            write(root, told)
            (root / "build" / "site.key").write_text(key)
            (root / "build" / "sphinx.log").write_text(key)
            return code

        monkeypatch.setattr(reproduce, "run_build", run)
        monkeypatch.setattr(reproduce, "ROOT", tmp_path)
        return tmp_path

    return set_up


def test_identical_builds_are_one_line_and_zero(builds, capsys):
    builds()
    assert reproduce.main() == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.splitlines()[-1] == "two builds are identical: 5 files"
    assert "same clock: no faketime here" in said.out


def test_different_builds_are_one(builds, capsys):
    builds(seconds=("5", "6"))
    assert reproduce.main() == 1
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith("tutorials/assemble/10_a.py:9: the output differs")


@pytest.mark.parametrize(
    "settings, line",
    [
        ({"codes": (1, 0)}, "reproduce: the site does not build"),
        ({"codes": (0, 1)}, "reproduce: the second build fails (hash seed"),
        ({"keys": ("a", "b")}, "reproduce: the two builds had other sources"),
    ],
)
def test_what_cannot_be_compared_is_two(builds, capsys, settings, line):
    root = builds(**settings)
    assert reproduce.main() == 2
    [said] = capsys.readouterr().err.splitlines()
    assert said.startswith(line)
    assert (root / "build" / "second-sphinx.log").exists() == ("second" in line)


def test_ci_demands_faketime(builds, capsys, monkeypatch):
    builds()
    monkeypatch.setenv("CI", "true")
    assert reproduce.main() == 2
    assert "apt-get install faketime" in capsys.readouterr().err


def test_an_interruption_is_one_line(builds, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    builds()
    monkeypatch.setattr(reproduce, "run_build", interrupted)
    assert reproduce.main() == 130
    assert len(capsys.readouterr().err.splitlines()) == 1
