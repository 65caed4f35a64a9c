"""Writes what to install to try the newest releases: ``build/newest/requirements.txt``.

The pages' own packages lose their pins, all else keeps its pin. With ``--resolve``,
``constraints.txt`` beside it names what pip would take today, so that an environment is
made anew only when a release came. With ``--nightly``, builds before a release count;
uv (not pip) then takes them for these packages alone.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "newest"
#: The packages whose behaviour the pages state.
FREED = ["torch", "torchrl", "tensordict", "gymnasium"]


def freed(requirements: str, nightly: bool = False) -> str:
    """The requirements, with no pin on the packages that the pages speak of.

    Raises
    ------
    ValueError
        If one of them is not pinned there.
    """
    for package in FREED:
        pattern = rf"^({package}(?:\[[^]]*\])?)==\S+"
        # An explicit mark: uv then takes pre-releases of this package, of no other.
        instead = r"\1>=0.dev0" if nightly else r"\1"
        requirements, count = re.subn(pattern, instead, requirements, flags=re.M)
        if count != 1:
            raise ValueError(f"requirements.txt pins {package} {count} times, not once")
    return requirements


def main(arguments: list[str], root: Path = ROOT, folder: Path = FOLDER) -> int:
    """Write the files, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--resolve", action="store_true", help="ask pip what is newest")
    parser.add_argument("--nightly", action="store_true", help="before a release, too")
    options = parser.parse_args(arguments)
    try:
        text = freed((root / "requirements.txt").read_text(), options.nightly)
    except (OSError, ValueError) as error:
        print(f"newest: {error}", file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "requirements.txt").write_text(text)
    if options.resolve:
        sys.path.insert(0, str(ROOT / "docs" / "_ext"))
        from constraints import resolve

        print("asking for the newest releases ...", flush=True)
        (folder / "constraints.txt").write_text(resolve(folder / "requirements.txt"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
