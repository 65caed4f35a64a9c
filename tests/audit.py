"""Audits the built site with Lighthouse and the Nu HTML checker: ``make audit``.

Needs Node and Java, which nothing else here needs. One page of each kind is measured by
Lighthouse, on a phone and on a desktop, three times each; the median counts. Each page
is checked for valid HTML. What was found stands in ``build/audit``.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import browser
import sites

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "html"
TOOLS = ROOT / "build" / "node"
FOUND = ROOT / "build" / "audit"

#: One page of each kind.
KINDS = {
    "home": "index.html",
    "tutorial": "tutorials/assemble/10_collect.html",
    "section": "tutorials/assemble/index.html",
    "reference": "reference/glossary.html",
    "results": "reference/benchmarks.html",
}
PRESETS = {"mobile": [], "desktop": ["--preset=desktop"]}
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
ROUNDS = 3
GATE = 95
DEADLINE = 300  # seconds for one command


class AuditError(Exception):
    """Why the site could not be audited, in one line."""


def need(*programs: str) -> None:
    """Look for programs.

    Raises
    ------
    AuditError
        If one is not on the path.
    """
    for program in programs:
        if shutil.which(program) is None:
            raise AuditError(f"no '{program}' on the path; `make audit` needs it")


def run(command: list[str], **more) -> subprocess.CompletedProcess:
    """Run a command within the deadline.

    Raises
    ------
    AuditError
        If it does not end.
    """
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=DEADLINE, **more
        )
    except subprocess.TimeoutExpired:
        raise AuditError(f"{command[0]} did not end in {DEADLINE} seconds") from None


def install() -> None:
    """Install the tools of ``tests/package.json``, if they are not the ones there.

    Raises
    ------
    AuditError
        If npm fails.
    """
    wanted = (ROOT / "tests" / "package.json").read_text()
    installed = TOOLS / "installed.json"
    if installed.exists() and installed.read_text() == wanted:
        return
    shutil.rmtree(TOOLS, ignore_errors=True)
    TOOLS.mkdir(parents=True)
    (TOOLS / "package.json").write_text(wanted)
    # Scripts of packages would fetch more; the lock would name a host.
    command = ["npm", "install", "--no-package-lock", "--ignore-scripts", "--no-audit"]
    done = run([*command, "--no-fund", "--loglevel=error"], cwd=TOOLS)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[0]
        raise AuditError(f"npm could not install tests/package.json: {said}")
    installed.write_text(wanted)


def lighthouse(address: str, preset: str, executable: str) -> dict[str, int]:
    """Scores of one visit, by category.

    Raises
    ------
    AuditError
        If Lighthouse gives none.
    """
    flags = " ".join(["--headless", *browser.FLAGS])
    done = run(
        [
            "node",
            str(TOOLS / "node_modules/lighthouse/cli/index.js"),
            address,
            "--quiet",
            "--output=json",
            f"--only-categories={','.join(CATEGORIES)}",
            f"--chrome-flags={flags}",
            *PRESETS[preset],
        ],
        env=os.environ | {"CHROME_PATH": executable},
    )
    try:
        found = json.loads(done.stdout)["categories"]
        return {name: round(100 * found[name]["score"]) for name in CATEGORIES}
    except (ValueError, KeyError, TypeError):
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise AuditError(f"Lighthouse gave no scores for {address}: {said}") from None


def median(rounds: list[dict[str, int]]) -> dict[str, int]:
    """Median of each category."""
    return {
        name: round(statistics.median(part[name] for part in rounds))
        for name in CATEGORIES
    }


def invalid(site: Path) -> Iterator[str]:
    """What the HTML checker complains of, as ``file:line: message``.

    Raises
    ------
    AuditError
        If it does not run.
    """
    jar = TOOLS / "node_modules/vnu-jar/build/dist/vnu.jar"
    pages = [str(p) for p in sorted(site.rglob("*.html")) if "_static" not in p.parts]
    options = ["--errors-only", "--format", "json", "--exit-zero-always"]
    done = run(["java", "-jar", str(jar), *options, *pages])
    try:
        messages = json.loads(done.stderr)["messages"]
    except (ValueError, KeyError):
        raise AuditError(f"the HTML checker failed: {done.stderr[:80]!r}") from None
    for item in messages:
        name = Path(item["url"].removeprefix("file:")).relative_to(site)
        yield f"{name}:{item.get('lastLine', 1)}: {item['message']}"


def main() -> int:
    """Audit; print scores and complaints; 1 if a median is below the gate."""
    try:
        if not (SITE / "index.html").exists():
            raise AuditError("no build/html; run `make html` first")
        need("node", "npm", "java")
        executable = browser.chromium()
        if executable is None:
            raise AuditError("no Chromium on the path; Lighthouse needs one")
        install()
        complaints = list(invalid(SITE))
        scores = {}
        with sites.served(SITE) as site:
            for kind, page in KINDS.items():
                for preset in PRESETS:
                    rounds = [
                        lighthouse(f"{site}/{page}", preset, executable)
                        for _ in range(ROUNDS)
                    ]
                    scores[f"{kind}, {preset}"] = found = median(rounds)
                    print(f"{kind:10} {preset:8}", *found.values(), flush=True)
    except (AuditError, browser.NoBrowserError) as error:
        print(f"audit: {error}", file=sys.stderr)
        return 2
    FOUND.mkdir(parents=True, exist_ok=True)
    results = {"scores": scores, "html": complaints}
    (FOUND / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    low = [
        f"{visit}: {name} is {score}, the gate is {GATE}"
        for visit, found in scores.items()
        for name, score in found.items()
        if score < GATE
    ]
    for line in complaints + low:
        print(f"audit: {line}", file=sys.stderr)
    return 1 if complaints or low else 0


if __name__ == "__main__":
    sys.exit(main())
