"""Resolves requirements.txt into constraints.txt: ``make constraints``.

Asks pip what it would install into an empty environment, without installing it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEADER = "# The full resolved set. Made by `make constraints`; do not edit.\n"


def resolve(requirements: Path) -> str:
    """The text of a constraints file for a requirements file.

    Raises
    ------
    SystemExit
        With pip's last line, if it finds no set that fits together.
    """
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet"]
    command += ["--ignore-installed", "--no-input", "--report", "-", "-r"]
    answer = subprocess.run(
        [*command, str(requirements)], capture_output=True, text=True, timeout=1200
    )
    if answer.returncode:
        raise SystemExit(f"constraints: {answer.stderr.strip().splitlines()[-1]}")
    found = [item["metadata"] for item in json.loads(answer.stdout)["install"]]
    pins = {f"{package['name'].lower()}=={package['version']}" for package in found}
    return HEADER + "\n".join(sorted(pins)) + "\n"


if __name__ == "__main__":
    (ROOT / "constraints.txt").write_text(resolve(ROOT / "requirements.txt"))
