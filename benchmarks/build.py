"""Measures the build of the site: ``make bench`` writes ``results/build.json``.

Works on a copy of the repository, so that the site of this checkout stays as it is.
Times depend on the machine: compare the ratios of one run.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "build.json"
ROUNDS = 3
DEADLINE = 1800  # seconds for one build
PACKAGES = ("torch", "torchrl", "tensordict", "gymnasium", "sphinx", "sphinx-gallery")
COPIED = ("conf.py", "docs", "requirements.txt", "constraints.txt", "tutorials")


def build(root: Path, *arguments: str) -> tuple[float, float]:
    """Seconds of one build and, of those, seconds outside tutorial code.

    The second number is 0 if nothing had changed.

    Raises
    ------
    SystemExit
        If the build fails: a failed build measures nothing.
    """
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, root / "docs" / "_ext" / "build.py", *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    seconds = time.perf_counter() - begin
    outside = re.search(r"([\d.]+) s outside", done.stdout)
    idle = "nothing has changed" in done.stdout
    if done.returncode or not (outside or idle):
        raise SystemExit(f"bench: the build failed: {done.stderr.strip()}")
    return seconds, float(outside[1]) if outside else 0.0


def measure(root: Path) -> dict[str, float]:
    """One round: a cold build, an unchanged one, one with new prose, one page."""
    shutil.rmtree(root / "build", ignore_errors=True)
    shutil.rmtree(root / "docs" / "tutorials", ignore_errors=True)
    cold, outside = build(root)
    unchanged, _ = build(root)
    home = root / "docs" / "index.rst"
    home.write_text(home.read_text() + "\n")
    prose, _ = build(root)
    page = root / "tutorials" / "assemble" / "10_collect.py"
    page.write_text(page.read_text() + "\n")
    one, _ = build(root, "--page", "assemble/10_collect")
    return {
        "cold": cold,
        "outside tutorials": outside,
        "unchanged": unchanged,
        "home page edited": prose,
        "one page edited": one,
    }


def main() -> None:
    """Measure in rounds, write medians in seconds and as ratios to the cold build."""
    with tempfile.TemporaryDirectory() as folder:
        for name in COPIED:
            source, target = ROOT / name, Path(folder, name)
            ignored = shutil.ignore_patterns("tutorials", "__pycache__")
            if source.is_dir():
                ignore = ignored if name == "docs" else None
                shutil.copytree(source, target, ignore=ignore)
            else:
                shutil.copy2(source, target)
        rounds = [measure(Path(folder)) for _ in range(ROUNDS)]
    seconds = {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}
    pages = len(list((ROOT / "tutorials").glob("*/*.py")))
    result = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "pages": pages,
        "rounds": ROUNDS,
        "seconds": {key: round(value, 1) for key, value in seconds.items()},
        "ratio_to_cold": {
            key: round(value / seconds["cold"], 2) for key, value in seconds.items()
        },
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(f"wrote {RESULT.relative_to(ROOT)}")
    for key, value in result["ratio_to_cold"].items():
        print(f"  {key:17} {value:5.0%} of a cold build")


if __name__ == "__main__":
    main()
