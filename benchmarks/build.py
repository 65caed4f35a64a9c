"""Measures the build of the site: ``make bench`` writes ``results/build.json``.

First the site itself, then copies of it that hold more and more synthetic pages, each
with one and with two workers. All of it in a temporary folder, so that the site of this
checkout stays as it is. Times depend on the machine and on what else it does: compare
the ratios, which are taken within one round.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

import synthetic
from report import origin
from trial import Trial, build

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "build.json"
ROUNDS = 3  # of the site itself
SIZES = (10, 40, 160)  # synthetic pages
GROWTH_ROUNDS = 2
TIME = 11 * 60  # seconds for everything, if that is enough for one round
WORKERS = (1, 2)
PACKAGES = ("torch", "torchrl", "tensordict", "gymnasium", "sphinx", "sphinx-gallery")
COPIED = (
    "conf.py",
    "requirements.txt",
    "constraints.txt",
    "docs",
    "tutorials",
    "tests/claims",
    "benchmarks/results",
)

Numbers = dict[str, float]


def copy_site(target: Path) -> None:
    """Copy what a build reads, and nothing that a build made."""
    generated = str(ROOT / "docs" / "tutorials")

    def ignored(folder: str, names: list[str]) -> set[str]:
        made = {name for name in names if str(Path(folder, name)) == generated}
        return made | {"__pycache__"}

    for name in COPIED:
        source, copy = ROOT / name, target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=ignored)
        else:
            shutil.copy2(source, copy)


def edit(file: Path) -> None:
    """Change a file without changing what it says."""
    file.write_text(file.read_text() + "\n")


def cold(root: Path, workers: int) -> Trial:
    """Build with nothing left of an earlier build."""
    shutil.rmtree(root / "build", ignore_errors=True)
    shutil.rmtree(root / "docs" / "tutorials", ignore_errors=True)
    return build(root, workers=workers)


def one_page(root: Path) -> float:
    """Seconds of building the first page alone, after an edit."""
    page = min((root / "tutorials").glob("*/*.py"))
    edit(page)
    return build(root, "--page", f"{page.parent.name}/{page.stem}", workers=1).seconds


def measure(root: Path, workers: int) -> Numbers:
    """One round: a cold build, then one with nothing changed."""
    first = cold(root, workers)
    return {
        "cold": first.seconds,
        "in tutorials": first.inside,
        "outside tutorials": first.outside,
        "unchanged": build(root, workers=workers).seconds,
        "peak": first.peak,
    }


def site(root: Path, rounds: int) -> dict:
    """Measure the site with the workers that `conf.py` takes by itself."""
    workers = WORKERS[-1]
    found = []
    for number in range(rounds):
        numbers = measure(root, workers)
        edit(root / "docs" / "index.rst")
        numbers["home page edited"] = build(root, workers=workers).seconds
        numbers["one page edited"] = one_page(root)
        found.append(numbers)
        print(f"site, round {number + 1}: cold {numbers['cold']:.1f} s", flush=True)
    pages = len(list((root / "tutorials").glob("*/*.py")))
    return {"pages": pages, "workers": workers, **summary(found)}


def growth(root: Path, sizes: list[int], rounds: int, until: float) -> list[dict]:
    """Measure copies with synthetic pages; one row for each size and each workers.

    Rounds and workers are interleaved, so that a machine that slows down for a while
    slows both down. Odd rounds turn the order around. After the first round a size is
    left out that would last past ``until``, a time of the monotonic clock.
    """
    found: dict[tuple[int, int], list[Numbers]] = {}
    lasted = dict.fromkeys(sizes, 0.0)
    for number in range(rounds):
        for size in sizes:
            begin = time.monotonic()
            if begin + lasted[size] > until and number:
                print(f"{size} pages, round {number + 1}: no time left", flush=True)
                continue
            synthetic.write_site(root, size)
            for workers in WORKERS[:: -1 if number % 2 else 1]:
                numbers = measure(root, workers)
                if workers == WORKERS[0]:  # one page runs alone, whatever the workers
                    numbers["one page edited"] = one_page(root)
                found.setdefault((size, workers), []).append(numbers)
                what = f"{size} pages, {workers} at a time, round {number + 1}"
                print(f"{what}: cold {numbers['cold']:.1f} s", flush=True)
            lasted[size] = time.monotonic() - begin
    return [row(found, size, workers) for size in sizes for workers in WORKERS]


def row(found: dict, size: int, workers: int) -> dict:
    """Numbers of one size and one count of workers, and how they compare."""
    own = found[size, workers]
    one, fewest = found[size, WORKERS[0]], found[min(found)[0], workers]
    compared = {
        "cold, to one worker": ratio(own, one, "cold"),
        "cold, to fewest pages": ratio(own, fewest, "cold"),
    }
    return {"pages": size, "workers": workers, **summary(own), "ratio": compared}


def summary(rounds: list[Numbers]) -> dict:
    """Medians of the times, in seconds and as ratios to the cold build; memory."""
    times = [key for key in rounds[0] if key != "peak"]
    return {
        "rounds": len(rounds),
        "seconds": {
            key: round(statistics.median(numbers[key] for numbers in rounds), 1)
            for key in times
        },
        "ratio_to_cold": {
            key: round(statistics.median(n[key] / n["cold"] for n in rounds), 2)
            for key in times
        },
        "peak_memory_mib": round(max(numbers["peak"] for numbers in rounds)),
    }


def ratio(rounds: list[Numbers], others: list[Numbers], key: str) -> float:
    """Median over the rounds of one time divided by another of the same round.

    A large size may have had fewer rounds; the rounds that only one had do not count.
    """
    pairs = zip(rounds, others, strict=False)
    return round(statistics.median(one[key] / other[key] for one, other in pairs), 2)


def run(sizes: list[int], rounds: int, growth_rounds: int) -> dict:
    """Measure everything in a temporary folder, which goes away even on failure."""
    until = time.monotonic() + TIME
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "site")
        copy_site(root)
        return {
            **origin(PACKAGES),
            **site(root, rounds),
            "growth": growth(root, sizes, growth_rounds, until),
        }


def main(arguments: list[str]) -> None:
    """Command line: measure, then write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--growth-rounds", type=int, default=GROWTH_ROUNDS)
    asked = parser.parse_args(arguments)
    # So that temporary folders and builds end with this process however it ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: told to end"))
    result = run(sorted(set(asked.sizes)), asked.rounds, asked.growth_rounds)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(f"wrote {RESULT.parent.name}/{RESULT.name}")
    for key, value in result["ratio_to_cold"].items():
        print(f"  {key:17} {value:5.0%} of a cold build")


if __name__ == "__main__":
    main(sys.argv[1:])
