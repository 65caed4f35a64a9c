"""What a site must not be published with, though Sphinx would be content.

`build.py` asks here once the pages have run and the site is written.
"""

from __future__ import annotations

import json
from pathlib import Path

from downloads import leftovers
from links import broken_links
from messages import GENERATED, at
from page_run import page_name, pages
from pagelint import GATE, lint
from warned import LIST, allowed


def complaints(root: Path, used: set[str]) -> list[str]:
    """One line for each thing that is wrong with a whole site.

    Parameters
    ----------
    root : Path
        The repository, with a site in ``build/html``.
    used : set of str
        Names of the allowed warnings that some page used.
    """
    scripts = pages(root)
    found = [line for script in scripts for line in lint(script, GATE)]
    found += [line for script in scripts for line in raw_markup(root, script)]
    found += unused_warnings(root, used)
    return found + broken_links(root / "build" / "html", root)


def unused_warnings(root: Path, used: set[str]) -> list[str]:
    """One line for each allowed warning that no page gives any more."""
    return [
        f"{LIST}:{item.line}: no page gives this warning ({item.name}); remove it"
        for item in allowed(root)
        if item.name not in used
    ]


def raw_markup(root: Path, script: Path) -> list[str]:
    """One line for each reStructuredText that shows in the notebook of a page."""
    page = page_name(script)
    notebook = root / GENERATED / f"{page}.ipynb"
    if not notebook.exists():
        return [at(page, 1, "has no notebook")]
    lines = script.read_text().splitlines()
    found = []
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] != "markdown":
            continue
        for text in leftovers("".join(cell["source"])):
            where = next((n for n, line in enumerate(lines, 1) if text in line), 1)
            found.append(at(page, where, f"markup shows in the notebook: {text}"))
    return found
