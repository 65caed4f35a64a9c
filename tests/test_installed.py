"""Pins against what is installed, and torchrl's compiled part."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import installed
import pytest
from conftest import ROOT

HELD = {"torch": "2.13.0+cpu", "sphinx-gallery": "0.22.1", "babel": "2.0", "numpy": "2"}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A repository whose two files of pins a test writes: ``root(asked, resolved)``."""

    def find(name: str) -> str:
        if name not in HELD:
            raise installed.metadata.PackageNotFoundError(name)
        return HELD[name]

    monkeypatch.setattr(installed.metadata, "version", find)
    monkeypatch.setattr(installed.sys, "prefix", str(tmp_path / ".venv"))

    def write(asked: str, resolved: str = ""):
        (tmp_path / "requirements.txt").write_text(asked)
        (tmp_path / "constraints.txt").write_text(resolved)
        return tmp_path

    return write


def test_this_interpreter_holds_the_pins_and_a_whole_torchrl():
    assert installed.mismatches(ROOT) == []
    assert installed.compiled_part(ROOT) == ""


def test_another_version_and_a_missing_package_are_named_with_their_line(root):
    asked = "# torch==1\n\nTorch==2.14.1  # why\nno_such[extra]==1.0\n"
    advice = "run: rm -rf .venv, then make html"
    assert installed.mismatches(root(asked)) == [
        "requirements.txt:3: torch 2.13.0+cpu is installed, 2.14.1 is pinned; "
        + advice,
        f"requirements.txt:4: no-such is not installed, 1.0 is pinned; {advice}",
    ]


def test_an_environment_of_the_readers_own_is_not_to_be_removed(root, monkeypatch):
    monkeypatch.setattr(installed.sys, "prefix", "/elsewhere")
    [line] = installed.mismatches(root("torch==2.14.1\n"))
    assert line.endswith("; give another environment, or run make without VENV")


@pytest.mark.parametrize(
    "pin",
    [
        "torch==2.13.0",
        "torch==2.13",
        "torch[opt]==2.13.0 --hash=sha256:ab",
        "torch===2.13.0+cpu",
        'no-such==1; python_version < "3"',
        "Sphinx_Gallery==0.22.1",
        "torch>=9",
        "-r other.txt",
    ],
)
def test_what_holds_is_silent(root, pin):
    assert installed.mismatches(root(pin, pin)) == []


def test_of_the_resolved_set_only_other_versions_matter(root):
    lines = installed.mismatches(root("", "no-such==1\nbabel==2.1\nnumpy==2.0\n"))
    assert lines == [
        "constraints.txt:2: babel 2.0 is installed, 2.1 is pinned; "
        "run: rm -rf .venv, then make html"
    ]


def test_a_package_is_told_once_and_a_stale_resolved_set_by_its_own_cure(root):
    lines = installed.mismatches(root("torch==2.14.1", "torch==2.14.1"))
    assert len(lines) == 1
    assert installed.mismatches(root("babel==2.0", "babel==2.1")) == [
        "constraints.txt:1: babel 2.1 is pinned, requirements.txt pins 2.0; "
        "run: make constraints"
    ]


@pytest.fixture
def torchrl(tmp_path, monkeypatch):
    """A torchrl and a torch that come first on the path: ``torchrl(_torchrl text)``."""
    place = tmp_path / "packages"
    for package in ("torch", "torchrl"):
        (place / package).mkdir(parents=True)
        (place / package / "__init__.py").write_text("")
    (place / "torch" / "version.py").write_text("__version__ = '2.13.0'\n")
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setenv("PYTHONPATH", str(place))
    for package in ("torch", "torchrl"):  # another test may have imported the real one
        monkeypatch.delitem(sys.modules, package, raising=False)
    calls = []
    run = subprocess.run
    monkeypatch.setattr(
        installed.subprocess, "run", lambda *a, **k: calls.append(a) or run(*a, **k)
    )

    def write(compiled: str | None, version: str | None = None):
        if compiled is not None:
            (place / "torchrl" / "_torchrl.py").write_text(compiled)
        if version is not None:
            (place / "torchrl" / "version.py").write_text(version)

    write.calls = calls
    write.place = place
    return write


def test_a_compiled_part_of_another_torch_is_one_line(root, torchrl):
    torchrl(
        "raise ImportError('/a/b/_torchrl.so: undefined symbol: _ZN3c10')",
        "raise SystemExit  # not to be run\npytorch_version = '2.14.0'\n",
    )
    repository = root("# x\ntorch==2.14.1\n")
    line = installed.compiled_part(repository)
    assert line == (
        "requirements.txt:2: torchrl's compiled part does not load: it needs torch "
        "2.14.0, torch 2.13.0+cpu is installed (ImportError: _torchrl.so: undefined "
        "symbol: _ZN3c10); run: rm -rf .venv, then make html"
    )
    assert not (repository / "build").exists()


def test_without_a_version_file_the_pin_says_what_is_needed(root, torchrl):
    line = installed.compiled_part(root("torch==2.14.1\n"))
    assert "it needs torch 2.14.1, torch 2.13.0+cpu is installed" in line
    assert "No module named 'torchrl._torchrl'" in line


def test_that_it_loads_is_remembered_until_a_file_changes(root, torchrl):
    repository = root("torch==2.14.1\n")
    torchrl("")
    for _ in range(2):
        assert installed.compiled_part(repository) == ""
    assert len(torchrl.calls) == 1
    for file in ("torch/version.py", "torchrl/_torchrl.py"):
        path = torchrl.place / file
        os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))
        assert installed.compiled_part(repository) == ""
    assert len(torchrl.calls) == 3
    (repository / "build" / "compiled.json").write_text("{")
    assert installed.compiled_part(repository) == ""
    assert json.loads((repository / "build" / "compiled.json").read_text())


def test_a_compiled_part_that_never_ends_loading_is_given_up(
    root, torchrl, monkeypatch
):
    monkeypatch.setattr(installed, "LOAD_SECONDS", 0.5)
    torchrl("import time; time.sleep(60)")
    line = installed.compiled_part(root("torch==2.14.1\n"))
    assert "no end of loading it within 0.5 s" in line


def test_a_process_that_dies_without_a_word_is_told(root, torchrl):
    torchrl("import os; os._exit(9)")
    assert "(exit code 9)" in installed.compiled_part(root("torch==2.14.1\n"))


def test_nothing_heavy_is_imported_to_know_it():
    code = (
        "import sys, installed as i; i.compiled_part(); print('torch' in sys.modules)"
    )
    env = os.environ | {"PYTHONPATH": str(ROOT / "docs" / "_ext")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=env,
        timeout=60,
    )
    assert done.stdout.strip() == "False"


def test_the_command_prints_one_line_for_each_mismatch(monkeypatch, capsys):
    monkeypatch.setattr(installed, "mismatches", lambda root: ["a:1: x", "b:2: y"])
    assert installed.main() == 1
    assert capsys.readouterr().err == "a:1: x\nb:2: y\n"
    monkeypatch.setattr(installed, "mismatches", lambda root: [])
    assert installed.main() == 0
