"""Takes a tutorial script apart: prose, cells, sections, bullets, asserts, solution.

Shared by the page linter and the claims harness, so that both see the same page.
"""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sphinx_gallery.py_source_parser import split_code_and_text_blocks

#: Headings of the frame; every other heading is a section of the page's own.
CLOSING = ["Try it", "In practice", "What you can rely on", "Next"]
DRAWING = "Drawing"

_LABEL = re.compile(r"^\.\. _(tut-[\w-]+):$", re.MULTILINE)
_HEADING = re.compile(r"^(\S.*)\n-{3,}$", re.MULTILINE)
_CODE_BLOCK = re.compile(
    r"^([ ]*)\.\. code-block::[^\n]*\n(?:[ ]*\n|\1[ ]+[^\n]*\n?)*", re.MULTILINE
)
_MARKUP = [
    (re.compile(r"^[ ]*\.\. _[^\n]*$", re.MULTILINE), ""),  # labels
    (re.compile(r"^[ ]*\.\. grid::[^\n]*$", re.MULTILINE), ""),
    (re.compile(r"^[ ]*\.\. [\w-]+::[ ]*", re.MULTILINE), ""),  # directive, not title
    (re.compile(r"^[ ]*:[\w-]+:(?!`)[^\n]*$", re.MULTILINE), ""),  # options
    (re.compile(r"^[=~^-]{3,}$", re.MULTILINE), ""),  # underlines
    (re.compile(r":[\w:]+:(?=`)"), ""),  # roles
    (re.compile(r" <[^<>\n]*>(?=`)"), ""),  # targets
]


def words(rest: str) -> int:
    """How many words of a reStructuredText a reader reads; code is not counted."""
    rest = _CODE_BLOCK.sub("", rest + "\n")
    for pattern, replacement in _MARKUP:
        rest = pattern.sub(replacement, rest)
    return len(re.findall(r"[^\W_][\w'’.-]*", rest))


@dataclass(frozen=True)
class Cell:
    """One code cell: its text, first line in the script, and section heading."""

    code: str
    line: int
    section: str

    @cached_property
    def tree(self) -> ast.Module:
        """Syntax tree, with the line numbers of the script."""
        return ast.increment_lineno(ast.parse(self.code), self.line - 1)

    @property
    def lines(self) -> list[str]:
        """Lines that are not blank."""
        return [line for line in self.code.splitlines() if line.strip()]

    def calls(self) -> list[str]:
        """Dotted names of all calls, in source order: ``["plt.subplots", …]``."""
        found = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        found.sort(key=lambda node: (node.lineno, node.col_offset))
        return [ast.unparse(node.func) for node in found]

    def defines(self, name: str) -> bool:
        """Whether the cell defines a function of that name at its top level."""
        return any(
            isinstance(node, ast.FunctionDef) and node.name == name
            for node in self.tree.body
        )


@dataclass(frozen=True)
class Prose:
    """One text block and the heading under which it begins (its own included)."""

    text: str
    line: int
    section: str


@dataclass(frozen=True)
class Assertion:
    """A visible assert: its text on one line, first and last line in the script."""

    text: str
    line: int
    end: int


@dataclass
class Page:
    """A tutorial script, taken apart.

    Raises
    ------
    SyntaxError
        If the script is not Python.
    """

    path: Path
    blocks: list[Cell | Prose] = field(init=False)
    sections: list[tuple[str, int]] = field(init=False)

    def __post_init__(self) -> None:
        """Split the script as sphinx-gallery does."""
        section = ""
        self.blocks, self.sections = [], []
        for block in split_code_and_text_blocks(self.path)[1]:
            if block.type == "code":
                self.blocks.append(Cell(block.content, block.lineno, section))
                continue
            for match in _HEADING.finditer(block.content):
                section = match[1]
                line = block.lineno + block.content[: match.start()].count("\n")
                self.sections.append((section, line))
            self.blocks.append(Prose(block.content, block.lineno, section))

    @property
    def label(self) -> str:
        """The page's label, ``tut-…``; "" if it has none."""
        found = _LABEL.search(self.prose[0].text)
        return found[1] if found else ""

    @property
    def cells(self) -> list[Cell]:
        """Code cells in order."""
        return [block for block in self.blocks if isinstance(block, Cell)]

    @property
    def prose(self) -> list[Prose]:
        """Text blocks in order; the first is the docstring."""
        return [block for block in self.blocks if isinstance(block, Prose)]

    def asserts(self) -> list[Assertion]:
        """The page's asserts in order, those inside ``check`` left out."""
        found = []
        for cell in self.cells:
            body = [n for n in cell.tree.body if getattr(n, "name", "") != "check"]
            nodes = [node for part in body for node in ast.walk(part)]
            found += [node for node in nodes if isinstance(node, ast.Assert)]
        found.sort(key=lambda node: node.lineno)
        return [
            Assertion(ast.unparse(node), node.lineno, node.end_lineno or node.lineno)
            for node in found
        ]

    def bullets(self) -> list[str]:
        """The claims of "What you can rely on", each on one line."""
        text = self._under("What you can rely on")
        items = re.findall(r"^\* (.*(?:\n  .*)*)", text, re.MULTILINE)
        return [" ".join(item.split()) for item in items]

    def solution(self) -> str:
        """The code of the folded solution, "" if there is none."""
        match = re.search(r"\.\. dropdown:: Solution\n(.*)", self._all_prose(), re.S)
        code = match and re.search(
            r"\.\. code-block:: python\n\s*\n((?:[ ]+[^\n]*\n|\s*\n)+)", match[1] + "\n"
        )
        return textwrap.dedent(code[1]).strip() if code else ""

    def _all_prose(self) -> str:
        return "\n\n".join(block.text for block in self.prose)

    def _under(self, heading: str) -> str:
        """Text from a heading to the next one."""
        parts = _HEADING.split(self._all_prose())
        return dict(zip(parts[1::2], parts[2::2], strict=True)).get(heading, "")
