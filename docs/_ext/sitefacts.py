"""What makes the site trustworthy, in numbers that are counted: ``.. site-facts::``."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

from docutils import nodes
from installed import pins
from page_run import pages
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]

#: Set for a build in a copy that is no repository, so that it says the same.
DATE = "COMMIT_DATE"
PACKAGES = ("torch", "torchrl", "tensordict", "gymnasium")


def commit_date(root: Path) -> str:
    """Day of the last commit, as YYYY-MM-DD; "" outside of a repository."""
    if DATE in os.environ:
        return os.environ[DATE]
    command = ["git", "-c", "safe.directory=*", "log", "-1", "--format=%cs"]
    above = ["git", "-c", "safe.directory=*", "rev-parse", "--show-cdup"]
    how = {"cwd": root, "stderr": subprocess.DEVNULL, "text": True, "timeout": 60}
    try:
        if subprocess.check_output(above, **how).strip():
            return ""  # a folder in someone else's repository
        return subprocess.check_output(command, **how).strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def claims(root: Path) -> int:
    """How many claims the tutorials make, each with a mutation that breaks it."""
    files = sorted((root / "tests" / "claims").glob("*.toml"))
    return sum(len(tomllib.loads(file.read_text())["claim"]) for file in files)


def versions(root: Path, names: tuple[str, ...]) -> str:
    """The pinned versions of some packages: ``torch 2.14.1, torchrl 0.14.1``."""
    found = {name: version for _, name, version in pins(root, "requirements.txt")}
    return ", ".join(f"{name} {found[name]}" for name in names)


def facts(root: Path) -> list[str]:
    """Sentences about the site as it stands."""
    found = [
        f"{claims(root)} claims on {len(pages(root))} tutorials, each asserted and "
        "each seen to fail.",
        f"Run with {versions(root, PACKAGES)}.",
    ]
    if date := commit_date(root):
        found.append(f"Built from the commit of {date}.")
    return found


class SiteFacts(SphinxDirective):
    """``.. site-facts::``: a list of them."""

    def run(self) -> list[nodes.Node]:
        """Count anew in each build: the page depends on other files than its own."""
        self.env.note_reread()
        items = [nodes.list_item("", nodes.paragraph("", text)) for text in facts(ROOT)]
        return [nodes.bullet_list("", *items, classes=["site-facts"])]


def setup(app) -> dict:
    """Register the directive."""
    app.add_directive("site-facts", SiteFacts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
