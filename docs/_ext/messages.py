"""One line for each thing that is wrong, at the place a person can mend.

sphinx-gallery and Sphinx report tracebacks and lines of generated files; here they
become lines of the scripts.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

GENERATED = "docs/tutorials"

#: What to do about a warning whose text does not say it.
HINTS = {
    "isn't included in any toctree": "list it in the index.rst of its folder",
    "term not in glossary": "add it to docs/reference/glossary.rst",
}

#: Calls that end a process without an exception that sphinx-gallery would catch.
ENDINGS = {"exit", "quit", "sys.exit", "os._exit", "os.abort", "os.kill", "os.execv"}

_GENERATED = re.compile(rf"^{GENERATED}/(\S+?)\.rst(?::(\d+))?(?=:)")
_RUNNING = re.compile(r'File "[^"]*/build/run/[^/"]+/(\S+?)\.py", line (\d+)')


def at(page: str, line: int, message: str) -> str:
    """A message at a line of a page's script."""
    return f"tutorials/{page}.py:{line}: {' '.join(message.split())}"


def failure_line(page: str, traceback: str) -> str:
    """One line for a failed page: file, line, error, and the text of an assert."""
    error = traceback.strip().splitlines()[-1]
    if figure := re.match(
        rf"figures\.FigureError: {re.escape(page)}\.py:(\d+)-", error
    ):
        return at(page, int(figure[1]), error.split(": ", 2)[2])
    frames = re.findall(
        rf'File "[^"]*{re.escape(page)}\.py", line (\d+)[^\n]*\n\s*([^\n]*)', traceback
    )
    line, code = frames[-1] if frames else ("1", "")
    if error == "AssertionError":
        error = f"AssertionError: {code}"
    return at(page, int(line), error)


def ending_line(root: Path, page: str, line: int) -> str:
    """One line for a page that ended its process in the cell that begins at ``line``.

    The call that may have done it is looked for, because nothing reports it.
    """
    tree = ast.parse((root / f"tutorials/{page}.py").read_text())
    calls = [
        (node.lineno, f"{ast.unparse(node.func)}()")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ENDINGS
    ]
    calls += [
        (node.lineno, "raise SystemExit")
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and "SystemExit" in ast.unparse(node)
    ]
    found, what = min(
        (call for call in calls if call[0] >= line), default=(line, "in this cell")
    )
    return at(page, found, f"ended the process that ran the page: {what}")


def stuck(log: str) -> tuple[str, int] | None:
    """Page and line of a hang that only the end of the process could break."""
    if "Timeout (" not in log:
        return None
    frames = _RUNNING.findall(log.split("Timeout (", 1)[1])
    return (frames[-1][0], int(frames[-1][1])) if frames else None


def crash_line(log: str) -> str:
    """One line for a Sphinx that failed without a word about a page."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    return f"build: Sphinx stopped: {(errors or lines or ['without a word'])[-1]}"


def warning_lines(text: str, root: Path) -> list[str]:
    """Sphinx's warnings, one line each; failing pages are left out.

    `failure_line` tells those better.
    """
    lines = []
    for line in re.sub(r"\x1b\[[\d;]*m", "", text).splitlines():
        if re.search(r"(WARNING|ERROR|CRITICAL): ", line) and line[-1] not in " :":
            line = line.replace(f"{root}/", "")
            line = _GENERATED.sub(lambda match: script_place(root, match), line)
            hints = [hint for text, hint in HINTS.items() if text in line]
            lines.append("; ".join([line, *hints]))
    return lines


def script_place(root: Path, match: re.Match) -> str:
    """Turn a line of a generated page into the line of its script.

    Parameters
    ----------
    root : Path
        The repository.
    match : re.Match
        Page, as ``folder/stem``, and line in its generated file, or no line.
    """
    page, line = match[1], int(match[2] or 1)
    script = root / "tutorials" / f"{page}.py"
    if not script.exists():
        return f"tutorials/{page}.rst:{line}"  # a hand-written index, copied
    before = (root / f"{GENERATED}/{page}.rst").read_text().splitlines()[:line]
    for number in range(len(before), 0, -1):
        start = re.match(
            r"\.\. GENERATED FROM PYTHON SOURCE LINES (\d+)-", before[number - 1]
        )
        if start:
            return f"tutorials/{page}.py:{int(start[1]) + max(line - number - 2, 0)}"
    return f"tutorials/{page}.py:1"
