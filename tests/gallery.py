"""A copy of the site in a folder of its own, with other pages, to be built for real."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEADLINE = 600  # seconds for one build
HOME = """Home
====

.. toctree::

    tutorials/index
"""
COPIED = ("conf.py", "docs", "requirements.txt", "constraints.txt", "benchmarks")


@dataclass(frozen=True)
class Built:
    """How a build ended: exit code, lines on stdout and on stderr."""

    code: int
    said: list[str]
    wrong: list[str]


def copy_site(folder: Path) -> Path:
    """Copy the site without its pages, tutorials or others; returns the new root."""
    ignored = shutil.ignore_patterns("tutorials", "__pycache__")
    for name in COPIED:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=ignored)
        else:
            shutil.copy2(source, target)
    # The hand-written pages link to tutorials that are not copied.
    shutil.rmtree(folder / "docs" / "reference")
    (folder / "docs" / "index.rst").write_text(HOME)
    (folder / "tests" / "claims").mkdir(parents=True)
    tutorials = folder / "tutorials"
    tutorials.mkdir()
    for name in ("limits.toml", "warnings.toml"):
        shutil.copy2(ROOT / "tutorials" / name, tutorials)
    return folder


def write_indexes(root: Path, folder: str, listed: list[str]) -> None:
    """List pages in the index of their folder, and the folder in that of the site."""
    cards = "".join(
        f"    .. grid-item-card:: {stem}\n        :link: tut-{stem.replace('_', '-')}\n"
        "        :link-type: ref\n\n"
        for stem in listed
    )
    entries = "".join(f"    {stem}\n" for stem in listed)
    (root / "tutorials" / folder / "index.rst").write_text(
        f"{folder.title()}\n{'=' * len(folder)}\n\n.. grid:: 1\n\n{cards}"
        f".. toctree::\n    :hidden:\n\n{entries}"
    )
    (root / "tutorials" / "index.rst").write_text(
        ".. _tutorials:\n\nTutorials\n=========\n\n"
        f".. toctree::\n\n    {folder}/index\n"
    )
    for name in listed:
        (root / "tests" / "claims" / f"{folder}_{name}.toml").touch()


def build(root: Path, *arguments: str, **environment: str) -> Built:
    """Run the build command of a copied site."""
    process = subprocess.Popen(
        [sys.executable, root / "docs" / "_ext" / "build.py", *arguments],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said, wrong = process.communicate(timeout=DEADLINE)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return Built(process.returncode, said.splitlines(), wrong.splitlines())
