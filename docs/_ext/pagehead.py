"""What a reader wants to know first, below the title of each tutorial.

How long it takes to read, how long to run, with which versions it ran, and where its
script and notebook are. Also marks each assert in its code as checked, and folds an
output that is long: what the reader looks for stands out, what fills the page does not.
"""

from __future__ import annotations

import html
import math
import os
import re
from pathlib import Path

from page_run import limits, page_name
from pageparts import Page, words
from sitefacts import versions
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
WORDS_A_MINUTE = 200
LINES_A_MINUTE = 20  # of code, which is read slower
LONG = 180  # seconds of a limit, which is some three times what a page needs
FOLD = 15  # lines of an output that stand open
SHOWN = ("torch", "torchrl")  # versions that a reader compares with his own
BRANCH = "notebooks"  # where check.yml publishes the notebooks, for Colab to read

_DOWNLOAD = re.compile(r'<a class="reference download[^>]*\bhref="([^"]*\.(py|ipynb))"')
_OUTPUT = re.compile(
    r'(<div class="sphx-glr-script-out[^>]*>)(.*?<pre>)(.*?)(</pre>.*?</div>\n?</div>)',
    re.DOTALL,
)
_SECTION = re.compile(r'(?=<section id=")')
_EXERCISE = '<section id="try-it">'
_CELL = re.compile(r'<div class="highlight-Python .*?</pre>', re.DOTALL)
_ASSERT = '<span class="k">assert</span>'
_CHECKED = '<span class="k checked">assert</span>'


def minutes(page: Page) -> int:
    """Minutes that a page takes to read, at least one."""
    prose = sum(words(block.text) for block in page.prose)
    code = sum(len(cell.lines) for cell in page.cells)
    return max(1, math.ceil(prose / WORDS_A_MINUTE + code / LINES_A_MINUTE))


def lasts(name: str, raised: dict[str, float]) -> str:
    """How long a page runs, from its limit: a measured time would differ each time."""
    if name not in raised:
        return "runs in seconds"
    is_long = raised[name] >= LONG
    return "runs for a minute or so" if is_long else "runs in under a minute"


def source(name: str, environ: dict[str, str]) -> str:
    """Address of a script where it is developed; "" if the build does not know.

    Parameters
    ----------
    name : str
        Name of the page.
    environ : dict
        With what GitHub's workflows set: server, repository and commit.
    """
    keys = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_SHA")
    if not all(environ.get(key) for key in keys):
        return ""
    server, repository, commit = (environ[key] for key in keys)
    return f"{server}/{repository}/blob/{commit}/tutorials/{name}.py"


def colab(name: str, environ: dict[str, str]) -> str:
    """Address that opens a notebook in Colab; "" if the build does not publish it.

    Colab takes notebooks from branches on GitHub and from nowhere else.

    Parameters
    ----------
    name : str
        Name of the page.
    environ : dict
        With what GitHub's workflows set: server, repository and event.
    """
    repository = environ.get("GITHUB_REPOSITORY")
    is_published = (
        environ.get("GITHUB_SERVER_URL") == "https://github.com"
        and environ.get("GITHUB_EVENT_NAME") == "push"
    )
    if not (repository and is_published):
        return ""
    host = "https://colab.research.google.com"
    return f"{host}/github/{repository}/blob/{BRANCH}/{name}.ipynb"


def head(script: Path, root: Path, body: str, environ: dict[str, str]) -> str:
    """The line below the title.

    Parameters
    ----------
    script : Path
        Of the page.
    root : Path
        Of the repository.
    body : str
        The page as HTML, which links its downloads.
    environ : dict
        The environment of the build.
    """
    name = page_name(script)
    facts = [f"{minutes(Page(script))} min to read", lasts(name, limits(root)[1])]
    facts.append(versions(root, SHOWN))
    links = {kind: address for address, kind in _DOWNLOAD.findall(body)}
    names = {"py": "script", "ipynb": "notebook"}
    shown = [
        f'<a href="{links[kind]}" download>{text}</a>'
        for kind, text in names.items()
        if kind in links
    ]
    for address, text in (
        (colab(name, environ), "Colab"),
        (source(name, environ), "source"),
    ):
        if address:
            shown.append(f'<a href="{html.escape(address)}">{text}</a>')
    items = "".join(f"<li>{item}</li>" for item in [*facts, *shown])
    return f'<ul class="page-facts" aria-label="About this page">{items}</ul>'


def folded(found: re.Match) -> str:
    """An output, folded after its first lines if it is long."""
    count = found[3].count("\n")
    if count <= FOLD:
        return found[0]
    summary = f"<summary>Output of {count} lines</summary>"
    return f'<details class="long-output">{summary}{found[0]}</details>'


def marked(body: str) -> str:
    """Mark each assert that the build has run.

    Those of the exercise wait for the reader's answer, and code that is only shown, not
    a cell of the page, holds nothing.
    """

    def mark(cell: re.Match) -> str:
        return cell[0].replace(_ASSERT, _CHECKED)

    return "".join(
        section if section.startswith(_EXERCISE) else _CELL.sub(mark, section)
        for section in _SECTION.split(body)
    )


def add(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Change the body of a tutorial as it is about to be written."""
    script = ROOT / f"{pagename}.py"
    if not script.is_file():
        return
    body = context["body"]
    line = head(script, ROOT, body, dict(os.environ))
    body = body.replace("</h1>", f"</h1>\n{line}", 1)
    context["body"] = _OUTPUT.sub(folded, marked(body))


def setup(app: Sphinx) -> dict:
    """Run for each page, when its body stands and its file does not."""
    app.connect("html-page-context", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
