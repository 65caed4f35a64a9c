"""What every file of results says: when and where it was measured, and with what."""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def origin(packages: Iterable[str]) -> dict:
    """Date, machine, Python and versions; nothing that names the machine."""
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
    }


def spread(rounds: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Median, lowest and highest ratio of each case over the rounds."""
    found = {}
    for name in rounds[0]:
        values = [part[name] for part in rounds]
        found[name] = {
            "median": round(statistics.median(values), 2),
            "lowest": round(min(values), 2),
            "highest": round(max(values), 2),
        }
    return found


def write_ratios(name: str, packages: Iterable[str], key: str, rounds: list) -> None:
    """Write the ratios of a comparison to ``results/<name>.json`` and print medians.

    Parameters
    ----------
    name : str
        Of the file.
    packages : iterable of str
        Whose versions the file names.
    key : str
        Under which the ratios stand; it says what they are relative to.
    rounds : list of dict
        One ratio for each case, in each round.
    """
    ratios = spread(rounds)
    result = {**origin(packages), "rounds": len(rounds), key: ratios}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    print(f"wrote {RESULTS.name}/{name}.json")
    for case, ratio in ratios.items():
        print(f"  {case:34} {ratio['median']:5.0%}, {key.replace('_', ' ')}")
