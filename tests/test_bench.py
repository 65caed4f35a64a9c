"""The benchmark of the build, without a build: its measuring, its pages, its file."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import tempfile
import tomllib
from pathlib import Path

import measured
import pagelint
import psutil
import pytest
from conftest import ROOT
from page_run import limits, page_name, pages
from pageparts import Page
from running import run

FOLDER = ROOT / "benchmarks"
sys.path.append(str(FOLDER))  # last: `build` stays the one of docs/_ext

import report  # noqa: E402  (these are found through the line above)
import synthetic  # noqa: E402
import trial  # noqa: E402


def load(path: Path):
    """Import a module under a name of its own."""
    spec = importlib.util.spec_from_file_location(f"bench_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bench = load(FOLDER / "build.py")

SUMMARY = (
    "pages run: 3, unchanged: 0; 8.1 s in tutorials, 4.2 s outside, 9.9 s together"
)


# -- One build -------------------------------------------------------------------------


def test_the_times_are_those_of_the_summary():
    assert trial.times(f"building\n{SUMMARY}\n", "", 0) == (8.1, 4.2)
    assert trial.times("nothing has changed; pages: 3\n", "", 0) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("stdout", "stderr", "code", "expected"),
    [
        (SUMMARY, "tutorials/a/b.py:3: AssertionError\nfailures: 1\n", 1, "b.py:3"),
        ("", "", 1, "a build failed: it said nothing"),
        ("open build/html/index.html", "", 0, "did not say its times"),
    ],
)
def test_a_build_that_measured_nothing_gives_one_line(stdout, stderr, code, expected):
    with pytest.raises(SystemExit) as caught:
        trial.times(stdout, stderr, code)
    assert str(caught.value).startswith("bench: ")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def fake(tmp_path):
    """A repository whose build is a script of ours."""

    def write(code: str) -> Path:
        file = tmp_path / "site" / "docs" / "_ext" / "build.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code)
        return tmp_path / "site"

    return write


CHILD = """
import subprocess, sys, time
code = (
    "import time; held = bytearray(60 * 2**20); print(1, flush=True);"
    "time.sleep({s})"
)
child = subprocess.Popen(
    [sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True
)
child.stdout.readline()
open({note!r}, "w").write(str(child.pid))
time.sleep({s})
"""


def is_gone(pid: int) -> bool:
    """Whether a process has ended, even if nobody has asked how."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_build_is_measured_with_all_its_processes(fake, tmp_path):
    note = str(tmp_path / "pid")
    root = fake(CHILD.format(note=note, s=1.5) + f"print({SUMMARY!r})")
    found = trial.build(root, workers=2)
    assert found.seconds > 1.5
    assert (found.inside, found.outside) == (8.1, 4.2)
    assert 60 < found.peak < 600


def test_a_build_gets_its_workers_and_a_scratch_folder_beside_the_copy(fake, tmp_path):
    root = fake(
        "import os, sys, tempfile\n"
        "said = os.environ['GALLERY_WORKERS'], sys.argv[1:], tempfile.gettempdir()\n"
        "print(said, file=sys.stderr)\nsys.exit(1)\n"
    )
    with pytest.raises(SystemExit) as caught:
        trial.build(root, "--page", "a/b", workers=7)
    said = ("7", ["--page", "a/b"], str(tmp_path / "scratch"))
    assert str(caught.value) == f"bench: a build failed: {said}"


def test_a_build_that_hangs_ends_with_all_it_started(fake, tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "DEADLINE", 5)
    note = tmp_path / "pid"
    root = fake(CHILD.format(note=str(note), s=120))
    with pytest.raises(SystemExit, match="no end of a build within 5 s"):
        trial.build(root, workers=1)
    assert is_gone(int(note.read_text()))


def test_a_process_is_ended_even_when_its_parent_is_gone(fake, tmp_path):
    note = tmp_path / "pid"
    orphan = CHILD.format(note=str(note), s=120).replace(
        "\ntime.sleep(120)", f"\ntime.sleep(1)\nprint({SUMMARY!r})"
    )
    trial.build(fake(orphan), workers=1)
    assert is_gone(int(note.read_text()))


def test_the_memory_is_the_most_that_was_held_at_one_time():
    class Process:
        def __init__(self, *held):
            self.held, self.children_ = list(held), []

        def memory_info(self):
            if not self.held:
                raise psutil.NoSuchProcess(1)
            return type("Memory", (), {"rss": self.held.pop(0) * 2**20})

        def children(self, recursive):
            return self.children_

    watch = trial.Watch(os.getpid())
    first, second = Process(100, 100, 100), Process(50, 20)
    watch._first, watch._known = first, {first}
    first.children_ = [second]
    for peak in (150, 150, 150):
        watch.look()
        assert watch.peak == peak


# -- What is measured ------------------------------------------------------------------


@pytest.fixture
def builds(monkeypatch):
    """Replace the build; collects what was asked, and what was there to build."""
    asked = []

    def build(root, *arguments, workers):
        there = sorted(p.name for p in (root / "docs").iterdir())
        asked.append((arguments, workers, there))
        return trial.Trial(10.0 / len(arguments or "x"), 6.0, 4.0, 100.0)

    monkeypatch.setattr(bench, "build", build)
    return asked


@pytest.fixture
def copied(tmp_path) -> Path:
    """A repository with three pages and what an earlier build left."""
    for folder in ("build", "docs/tutorials", "tutorials/b", "tutorials/a"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("b/10_x.py", "a/20_y.py", "a/10_z.py"):
        (tmp_path / "tutorials" / name).write_text("x = 1\n")
    (tmp_path / "docs" / "index.rst").write_text("Home\n")
    return tmp_path


def test_a_round_builds_cold_and_then_again(builds, copied):
    numbers = bench.measure(copied, workers=2)
    assert builds == [((), 2, ["index.rst"])] * 2
    assert not (copied / "build").exists()
    assert numbers == {
        "cold": 10.0,
        "in tutorials": 6.0,
        "outside tutorials": 4.0,
        "unchanged": 10.0,
        "peak": 100.0,
    }


def test_the_site_is_measured_with_an_edit_of_prose_and_one_of_a_page(builds, copied):
    found = bench.site(copied, 2)
    alone = (("--page", "a/10_z"), 1)
    assert [ask[:2] for ask in builds] == [((), 2), ((), 2), ((), 2), alone] * 2
    assert (copied / "docs/index.rst").read_text() == "Home\n\n\n"
    assert (copied / "tutorials/a/10_z.py").read_text() == "x = 1\n\n\n"
    assert (copied / "tutorials/a/20_y.py").read_text() == "x = 1\n"
    assert found["seconds"]["one page edited"] == 5.0
    assert found["ratio_to_cold"] == {
        "cold": 1.0,
        "in tutorials": 0.6,
        "outside tutorials": 0.4,
        "unchanged": 1.0,
        "home page edited": 1.0,
        "one page edited": 0.5,
    }
    assert (found["pages"], found["workers"], found["rounds"]) == (3, 2, 2)
    assert found["peak_memory_mib"] == 100


@pytest.fixture
def rounds(monkeypatch):
    """Replace the measuring; collects (pages, workers) in the order of measuring."""
    order = []

    def measure(root, workers):
        count = len(list((root / "tutorials").glob("*/*.py")))
        order.append((count, workers))
        slow = 1 + order.count((count, workers))  # each round is slower by itself
        cold = slow * count * (1.0 if workers == 1 else 0.6)
        times = dict.fromkeys(measured.TIMES, cold / 4)
        return times | {"cold": cold, "peak": 100.0 * slow}

    monkeypatch.setattr(bench, "measure", measure)
    monkeypatch.setattr(bench, "one_page", lambda root: 1.0)
    return order


FOREVER = float("inf")


def test_workers_are_interleaved_and_the_order_turns(rounds, tmp_path):
    (tmp_path / "docs").mkdir()
    bench.growth(tmp_path, [2, 4], 2, FOREVER)
    assert rounds == [(2, 1), (2, 2), (4, 1), (4, 2), (2, 2), (2, 1), (4, 2), (4, 1)]


def test_without_time_each_size_is_measured_once(rounds, tmp_path):
    (tmp_path / "docs").mkdir()
    found = bench.growth(tmp_path, [2, 4], 2, 0.0)
    assert rounds == [(2, 1), (2, 2), (4, 1), (4, 2)]
    assert [row["rounds"] for row in found] == [1, 1, 1, 1]


def test_ratios_are_taken_within_a_round(rounds, tmp_path):
    (tmp_path / "docs").mkdir()
    found = bench.growth(tmp_path, [2, 4], 2, FOREVER)
    assert [(row["pages"], row["workers"]) for row in found] == [
        (2, 1),
        (2, 2),
        (4, 1),
        (4, 2),
    ]
    assert [("one page edited" in row["seconds"]) for row in found] == [1, 0, 1, 0]
    last = found[-1]
    assert last["rounds"] == 2
    assert last["seconds"]["cold"] == 6.0  # median of 4.8 and 7.2
    assert last["ratio_to_cold"]["unchanged"] == 0.25
    assert last["ratio"]["cold, to one worker"] == 0.6
    assert last["ratio"]["cold, to fewest pages"] == 2.0
    assert last["peak_memory_mib"] == 300


def test_a_ratio_pairs_the_rounds():
    fast, slow = {"cold": 1.0}, {"cold": 10.0}
    assert bench.ratio([fast, slow], [fast, slow], "cold") == 1.0
    assert bench.ratio([fast, slow, slow], [fast, fast, slow], "cold") == 1.0
    assert bench.ratio([slow], [fast, slow], "cold") == 10.0, "the first of each"


@pytest.fixture
def nowhere(tmp_path, monkeypatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_file_is_what_the_page_reads_and_names_no_machine(
    rounds, builds, nowhere, monkeypatch, capsys
):
    file = nowhere / "results" / "build.json"
    monkeypatch.setattr(bench, "RESULT", file)
    handler = []
    monkeypatch.setattr(bench.signal, "signal", lambda *call: handler.append(call))
    bench.main(["--sizes", "4", "2", "--rounds", "1", "--growth-rounds", "2"])
    results = measured.read(file)
    assert [row["pages"] for row in results["growth"]] == [2, 2, 4, 4]
    assert results["rounds"] == 1
    assert results["pages"] == len(pages(ROOT))
    written = file.read_text()
    assert os.uname().nodename not in re.findall(r"[\w.-]+", written)
    assert str(ROOT) not in written
    assert str(nowhere) not in written
    assert [path.name for path in nowhere.iterdir()] == ["results"]
    assert "wrote results/build.json" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="told to end"):
        handler[0][1]()


def test_a_failure_leaves_no_folder_and_the_old_file(nowhere, monkeypatch):
    def fail(*_, **__):
        raise SystemExit("bench: a build failed: x")

    monkeypatch.setattr(bench, "build", fail)
    before = bench.RESULT.read_bytes()
    with pytest.raises(SystemExit, match="bench: a build failed: x"):
        bench.main(["--sizes", "2"])
    assert bench.RESULT.read_bytes() == before
    assert list(nowhere.iterdir()) == []


def test_the_copy_holds_what_a_build_reads_and_nothing_it_made(tmp_path):
    bench.copy_site(tmp_path / "site")
    copied = {p.relative_to(tmp_path / "site") for p in tmp_path.rglob("*")}
    wanted = (*bench.COPIED, "tutorials/limits.toml", "docs/reference/build_times.rst")
    assert {Path(name) for name in wanted} <= copied
    assert Path("docs/tutorials") not in copied
    assert not [path for path in copied if path.name == "__pycache__"]


def test_the_settings_read_the_number_of_workers():
    assert 'os.environ.get("GALLERY_WORKERS"' in (ROOT / "conf.py").read_text()


# -- Synthetic pages -------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A repository with more synthetic pages than fit one folder, and none of ours."""
    root = tmp_path_factory.mktemp("synthetic")
    (root / "tutorials" / "old").mkdir(parents=True)
    (root / "tutorials" / "old" / "10_page.py").write_text("x = 1\n")
    (root / "docs").mkdir()
    synthetic.write_site(root, 12)
    return root


def test_there_are_as_many_pages_as_asked(made):
    names = [page_name(script) for script in pages(made)]
    assert len(names) == 12
    assert names[0] == "part01/001_walk"
    assert names[-1] == "part02/012_walk"


def test_synthetic_pages_pass_the_gate_of_the_build(made):
    rules = [*pagelint.GATE, pagelint.opening]
    assert [line for page in pages(made) for line in pagelint.lint(page, rules)] == []
    assert pagelint.orphans(made, pages(made)) == []
    assert limits(made) == (60, {})


def test_every_page_of_the_synthetic_site_is_reached_from_its_home(made):
    home = (made / "docs" / "index.rst").read_text()
    assert "    tutorials/index\n" in home
    index = (made / "tutorials" / "index.rst").read_text()
    for script in pages(made):
        assert f"    {script.parent.name}/index\n" in index
    texts = [path.read_text() for path in made.rglob("*.rst")]
    texts += [path.read_text() for path in pages(made)]
    labels = re.findall(r"^\.\. _([\w-]+):$", "\n".join(texts), re.MULTILINE)
    assert len(labels) == len(set(labels)) == 12 + 2 + 2
    asked = re.findall(r":link: (\S+)|:ref:`([\w-]+)`", "\n".join(texts))
    assert {one or other for one, other in asked} <= set(labels)


def test_a_synthetic_page_runs_and_its_claim_can_fail(made, tmp_path):
    script = pages(made)[-1]
    copy = tmp_path / script.name
    copy.write_bytes(script.read_bytes())
    ran = run(copy, tmp_path)
    assert ran.code == 0, ran.stderr
    file = made / "tests" / "claims" / pagelint.claims_name(script)
    (claim,) = tomllib.loads(file.read_text())["claim"]
    assert claim["assert"] in [found.text for found in Page(script).asserts()]
    text = script.read_text()
    assert text.count(f"\n{claim['replace']}\n") == 1
    copy.write_text(text.replace(claim["replace"], claim["with"]))
    assert run(copy, tmp_path).error == "AssertionError"


def test_the_committed_file_says_how_it_was_measured():
    results = json.loads(bench.RESULT.read_text())
    assert all(row["workers"] in bench.WORKERS for row in results["growth"])
    assert set(results["versions"]) == set(bench.PACKAGES)


def test_a_comparison_keeps_median_and_range_of_each_case():
    rounds = [{"a": 1.0, "b": 0.5}, {"a": 4.0, "b": 0.5}, {"a": 2.0, "b": 0.5}]
    assert report.spread(rounds) == {
        "a": {"median": 2.0, "lowest": 1.0, "highest": 4.0},
        "b": {"median": 0.5, "lowest": 0.5, "highest": 0.5},
    }
