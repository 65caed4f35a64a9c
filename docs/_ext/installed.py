"""Says whether this interpreter holds the pins, and whether torchrl is whole.

``python docs/_ext/installed.py`` prints a line for each pin that it does not hold.
``environment.py`` checks the pins of an environment that a reader gives, before the
build. This looks at the one that builds, which somebody may have changed with pip.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from environment import PIN, satisfies

ROOT = Path(__file__).parents[2]
LOAD_SECONDS = 120  # importing torch takes 3 on a quiet machine, a cold disk far more


def pins(root: Path, name: str) -> Iterator[tuple[int, str, str]]:
    """Line, normalised name and version of each exact pin that holds here.

    Parameters
    ----------
    root : Path
        The repository.
    name : str
        ``requirements.txt`` or ``constraints.txt``.
    """
    text = (root / name).read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        # Up to a comment, or the hashes of a pin.
        bare = re.split(r"(?:^|\s)(?:#|--|\\$)", line)[0].strip()
        if (pin := PIN.fullmatch(bare)) and _holds(pin[3]):
            yield number, _normal(pin[1]), pin[2]


def mismatches(root: Path) -> list[str]:
    """One line for each pin that the running interpreter does not hold.

    A package of ``constraints.txt`` may be missing: some are for other machines.
    """
    wrong, asked = [], {}
    for number, name, needed in pins(root, "requirements.txt"):
        asked[name] = needed
        found = _version(name)
        if not found or not satisfies(found, needed):
            state = f"{found} is installed" if found else "is not installed"
            wrong.append(
                f"requirements.txt:{number}: {name} {state}, {needed} is pinned; "
                f"{_advice(root)}"
            )
    for number, name, needed in pins(root, "constraints.txt"):
        found = _version(name)
        if name in asked:
            if not satisfies(needed, asked[name]):
                wrong.append(
                    f"constraints.txt:{number}: {name} {needed} is pinned, "
                    f"requirements.txt pins {asked[name]}; run: make constraints"
                )
        elif found and not satisfies(found, needed):
            wrong.append(
                f"constraints.txt:{number}: {name} {found} is installed, {needed} is "
                f"pinned; {_advice(root)}"
            )
    return wrong


def compiled_part(root: Path = ROOT) -> str:
    """One line if torchrl's compiled part does not load, else "".

    torchrl itself at most warns, and only its prioritized samplers fail, later. That it
    loads is remembered in ``build/compiled.json`` until a file or a version changes. A
    failure is not: it may pass, like a full memory.
    """
    memory, key = root / "build" / "compiled.json", _compiled_key()
    try:
        if json.loads(memory.read_text(encoding="utf-8")) == key:
            return ""
    except (OSError, ValueError):
        pass  # never checked, or the file is broken
    # In a process of its own: a build in which no page runs imports no torch.
    # -P: the folder in which make runs is no place of packages.
    command = [sys.executable, "-P", "-c", "import torch, torchrl._torchrl"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=LOAD_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return _complaint(root, f"no end of loading it within {LOAD_SECONDS} s")
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        # Of a path only the file: the rest speaks of this machine.
        return _complaint(root, re.sub(r"/\S*/(?=[^\s/])", "", said[-1])[:300])
    memory.parent.mkdir(exist_ok=True)
    memory.write_text(json.dumps(key), encoding="utf-8")
    return ""


def _complaint(root: Path, reason: str) -> str:
    """Tell which torch the compiled part needs, which there is, and what happened."""
    lines = {name: (line, pin) for line, name, pin in pins(root, "requirements.txt")}
    number, pinned = lines.get("torch", (1, ""))
    # Read, not imported. Wheels of torchrl may lack the file; then the pin knows.
    text = "".join(
        file.read_text(encoding="utf-8", errors="replace")
        for file in _folder("torchrl").glob("version.py")
    )
    built = re.search(
        r"^pytorch_version\s*(?::[^=\n]*)?=\s*['\"](.+?)['\"]", text, re.M
    )
    needed = built[1] if built else pinned or "of its release"
    return (
        f"requirements.txt:{number}: torchrl's compiled part does not load: it needs "
        f"torch {needed}, torch {_version('torch') or 'none'} is installed ({reason}); "
        f"{_advice(root)}"
    )


def _compiled_key() -> list:
    """All that decides whether the compiled part loads, as JSON knows it."""
    files = [_folder("torch") / "version.py"]
    files += sorted(_folder("torchrl").glob("_torchrl*"))
    stats = [(file, file.stat()) for file in files if file.is_file()]
    key = [[str(file), stat.st_size, stat.st_mtime_ns] for file, stat in stats]
    return [sys.version, _version("torch"), _version("torchrl"), *key]


def _folder(package: str) -> Path:
    """Where a package lies, found without importing it."""
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else Path("missing")


def _version(name: str) -> str:
    """The installed version of a package, "" if there is none."""
    try:
        return metadata.version(name) or ""
    except metadata.PackageNotFoundError:
        return ""


def _normal(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _holds(marker: str | None) -> bool:
    """Whether the condition after a pin's semicolon is met, or there is none."""
    if not marker:
        return True
    from packaging.markers import Marker  # comes with Sphinx; not needed without one

    return Marker(marker).evaluate()


def _advice(root: Path) -> str:
    """What to do about this environment: ours is made anew, another one is not ours."""
    if Path(sys.prefix).resolve() == (root / ".venv").resolve():
        return "run: rm -rf .venv, then make html"
    return "give another environment, or run make without VENV"


def main() -> int:
    """Print what does not match; return the exit code."""
    wrong = mismatches(ROOT)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
