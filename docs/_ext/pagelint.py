"""Checks every tutorial against the frame of a page: ``make lint``.

Each rule is a function that takes a `Page` and yields ``(line, message)``. The rules
of `GATE` are about truth, not form: `make html` refuses a page that breaks one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from page_run import page_name, pages
from pageparts import CLOSING, DRAWING, Cell, Page, Prose, words

ROOT = Path(__file__).parents[2]

CARD_WORDS = 60
FIRST_OUTPUT_WORDS = 120
FIRST_PICTURE_WORDS = 250
PAGE_WORDS = range(600, 1101)
CODE_LINES = range(60, 111)
SECTIONS = range(3, 7)
CELL_LINES = 20
RIBBON_LINES = 18
COLUMNS = 72

Complaints = Iterator[tuple[int, str]]

_CARD = re.compile(
    r"^    \.\. grid-item-card:: (You will|You need)\n((?:\s*\n|        .*\n)+)",
    re.MULTILINE,
)


def draws(cell: Cell) -> bool:
    """Whether a cell makes a figure."""
    return any(call in ("plt.subplots", "plt.figure") for call in cell.calls())


def shows(cell: Cell) -> bool:
    """Whether a cell leaves something for the reader to see."""
    last = cell.tree.body[-1] if cell.tree.body else None
    value = isinstance(last, ast.Expr) and not isinstance(last.value, ast.Constant)
    return value or "print" in cell.calls() or draws(cell)


def opening(page: Page) -> Complaints:
    """Title, label and two short cards."""
    text = page.prose[0].text
    if not re.match(r"\s*\.\. _tut-[\w-]+:\n\n\S.*\n={3,}\n\n\S", text):
        yield (
            1,
            "the docstring must start: `.. _tut-…:`, title underlined by =, promise",
        )
    cards = dict(_CARD.findall(text + "\n"))
    for name in ("You will", "You need"):
        if name not in cards:
            yield 1, f"no card '{name}'"
    count = sum(words(card) for card in cards.values())
    if count > CARD_WORDS:
        yield 1, f"{count} words on the cards, at most {CARD_WORDS}"


def early(page: Page) -> Complaints:
    """Seeds in the first cell; something to see soon, and a picture soon after."""
    if not any(call.endswith("manual_seed") for call in page.cells[0].calls()):
        yield page.cells[0].line, "the first cell sets no seed (torch.manual_seed)"
    read, output, picture = 0, None, None
    for block in page.blocks[1:]:
        if block.section == DRAWING:
            continue
        if isinstance(block, Prose):
            read += words(block.text)
            continue
        output = read if output is None and shows(block) else output
        picture = read if picture is None and draws(block) else picture
    for name, at, limit in (
        ("output", output, FIRST_OUTPUT_WORDS),
        ("picture", picture, FIRST_PICTURE_WORDS),
    ):
        if at is None or at > limit:
            after = "never comes" if at is None else f"comes after {at} words"
            yield 1, f"the first {name} {after}, at most {limit}"


def sections(page: Page) -> Complaints:
    """Own sections, then the closing ones in order; an assert in each."""
    names = [name for name, _ in page.sections]
    if names[-len(CLOSING) :] != CLOSING:
        yield 1, f"the page must end with the sections {', '.join(CLOSING)}"
    asserted = {
        cell.section
        for cell in page.cells
        for node in ast.walk(cell.tree)
        if isinstance(node, ast.Assert)
    }
    own = [(n, line) for n, line in page.sections if n not in [*CLOSING, DRAWING]]
    if len(own) not in SECTIONS:
        yield 1, f"{len(own)} sections, {SECTIONS[0]} to {SECTIONS[-1]} fit the frame"
    for name, line in own:
        if name not in asserted:
            yield line, f"section '{name}' has no assert"


def length(page: Page) -> Complaints:
    """Words, code lines, lines of a cell, columns."""
    texts = [block for block in page.prose if block.section != DRAWING]
    count = sum(words(block.text) for block in texts)
    if count not in PAGE_WORDS:
        yield 1, f"{count} words, {PAGE_WORDS[0]} to {PAGE_WORDS[-1]} fit the frame"
    cells = [cell for cell in page.cells if cell.section != DRAWING]
    count = sum(len(cell.lines) for cell in cells)
    if count not in CODE_LINES:
        yield 1, f"{count} lines of code, {CODE_LINES[0]} to {CODE_LINES[-1]} fit"
    for cell in cells:
        if len(cell.lines) > CELL_LINES:
            yield cell.line, f"a cell of {len(cell.lines)} lines, at most {CELL_LINES}"
    for cell in page.cells:
        for number, line in enumerate(cell.code.splitlines(), cell.line):
            if len(line) > COLUMNS:
                yield number, f"{len(line)} columns of code, at most {COLUMNS}"


def figures(page: Page) -> Complaints:
    """An alt sentence for each figure, and no stray value below it."""
    for cell in filter(draws, page.cells):
        calls = cell.calls()
        made = sum(call in ("plt.subplots", "plt.figure") for call in calls)
        if sum(call.endswith(".set_label") for call in calls) < made:
            yield cell.line, 'figure without alt sentence: fig.set_label("….")'
        if isinstance(cell.tree.body[-1], ast.Expr):
            line = cell.tree.body[-1].lineno
            yield line, "a value would show under the figure; assign it: _ = …"


def honest(page: Page) -> Complaints:
    """Nothing hidden but teardown, no silenced warning, public names only."""
    source = page.path.read_text()
    hidden = r"# sphinx_gallery_start_ignore\n(.*?)# sphinx_gallery_end_ignore"
    for match in re.finditer(hidden, source, re.DOTALL):
        code = [line.strip() for line in match[1].splitlines() if line.strip()]
        if not all(re.fullmatch(r"\w+\.(close|shutdown)\(\)", line) for line in code):
            line = source[: match.start()].count("\n") + 1
            yield line, "hidden code; only .close() and .shutdown() may be hidden"
    for cell in page.cells:
        for node in ast.walk(cell.tree):
            names = []
            if isinstance(node, ast.Attribute):
                names = [node.attr]
            elif isinstance(node, ast.ImportFrom):
                names = (node.module or "").split(".")
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [part for a in node.names for part in a.name.split(".")]
            for name in names:
                if re.match(r"_(?!_)", name):
                    yield node.lineno, f"private name {name}"
            if isinstance(node, ast.Call) and re.search(
                r"(simplefilter|filterwarnings|catch_warnings)$", ast.unparse(node.func)
            ):
                values = [*node.args, *(keyword.value for keyword in node.keywords)]
                if any(ast.unparse(value) == "'ignore'" for value in values):
                    yield node.lineno, "a warning is filtered; avoid or explain it"
    allowed = "(parallel|start_ignore|end_ignore)"
    for match in re.finditer(rf"# sphinx_gallery_(?!{allowed}\b)(\w+)", source):
        line = source[: match.start()].count("\n") + 1
        yield line, f"the setting {match[2]} hides how the page comes about"


#: Names whose call, or keywords whose use, starts processes that import the page.
SPAWNING = {
    "AsyncCollector",
    "AsyncEnvPool",
    "MultiCollector",
    "MultiAsyncCollector",
    "MultiSyncCollector",
    "ParallelEnv",
    "Pool",
    "Process",
    "ProcessPoolExecutor",
    "spawn",
}
SPAWNING_KEYWORDS = {"num_collectors", "num_workers"}
MAIN = "__name__ == '__main__'"


def spawns(node: ast.AST) -> bool:
    """Whether a node is a call that starts worker processes."""
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func).split(".")[-1]
    return name in SPAWNING or any(k.arg in SPAWNING_KEYWORDS for k in node.keywords)


def guarded(page: Page) -> Complaints:
    """From the first cell that spawns on, all code stands behind the main guard.

    A worker process runs the page's top level again. The gallery does not show that a
    guard is missing; a reader's machine does.
    """
    found = False
    for cell in page.cells:
        for node in cell.tree.body:
            is_guard = isinstance(node, ast.If) and ast.unparse(node.test) == MAIN
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Import):
                continue  # runs when it is called, or is what a worker needs
            calls = [part for part in ast.walk(node) if spawns(part)]
            found = found or bool(calls)
            if found and not is_guard and not isinstance(node, ast.ImportFrom):
                what = "starts a process" if calls else "follows a cell that does"
                line = calls[0].lineno if calls else node.lineno
                yield line, f'{what}, not behind `if __name__ == "__main__":`'


def imports(page: Page) -> Complaints:
    """Only what a download has: the standard library and the pinned packages."""
    for cell in page.cells:
        for node in ast.walk(cell.tree):
            names = []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "." * node.level]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                if name.split(".")[0] not in PACKAGES | sys.stdlib_module_names:
                    yield node.lineno, f"imports {name}, which a download does not have"


#: What the first part of requirements.txt brings; NumPy comes with PyTorch.
PACKAGES = {"gymnasium", "matplotlib", "numpy", "tensordict", "torch", "torchrl"}


def bound_in(handler: ast.ExceptHandler) -> set[str]:
    """Names that a handler assigns to, or to a part of."""
    found = set()
    for node in ast.walk(handler):
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        for target in targets:
            while isinstance(target, ast.Subscript | ast.Attribute):
                target = target.value
            if isinstance(target, ast.Name):
                found.add(target.id)
    return found


def caught(page: Page) -> Complaints:
    """An expected failure names its exact type, and an assert looks at what it said."""
    pins = [
        {name.id for name in ast.walk(node.test) if isinstance(name, ast.Name)}
        for cell in page.cells
        for node in ast.walk(cell.tree)
        if isinstance(node, ast.Assert)
    ]
    pinned = set().union(*pins)
    for cell in page.cells:
        for node in ast.walk(cell.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
                "suppress"
            ):
                yield node.lineno, "suppress() hides whether the error came; assert it"
            if not isinstance(node, ast.ExceptHandler):
                continue
            if node.type is None or ast.unparse(node.type) in BROAD:
                yield node.lineno, "name the exact exception, or any error passes"
            returns = any(isinstance(part, ast.Return) for part in ast.walk(node))
            if not returns and not bound_in(node) & pinned:
                yield node.lineno, "no assert looks at what this handler caught"


BROAD = {"Exception", "BaseException"}


def exercise(page: Page) -> Complaints:
    """``answer = None`` and ``check(answer)`` close "Try it"; a solution is folded."""
    cells = [cell for cell in page.cells if cell.section == "Try it"]
    if not cells or not cells[-1].defines("check"):
        yield 1, "the last cell of 'Try it' must define check(answer)"
    if not any("answer = None" in cell.code for cell in cells):
        yield 1, "'Try it' must start from `answer = None`"
    if not page.solution():
        yield 1, "no folded Solution with a python code block"


def drawing(page: Page) -> Complaints:
    """The ribbon in a cell of its own, short enough to read."""
    for cell in page.cells:
        if cell.defines("ribbon") != (cell.section == DRAWING):
            yield cell.line, f"ribbon stands under '{DRAWING}', in a cell of its own"
        elif cell.defines("ribbon") and len(cell.lines) > RIBBON_LINES:
            yield cell.line, f"ribbon of {len(cell.lines)} lines, at most 18"


def claims_name(path: Path) -> str:
    """Name of the claims file of a page, from the path of its script."""
    return page_name(path).replace("/", "_") + ".toml"


def listed(page: Page) -> Complaints:
    """An entry and a card in the folder's index, and a claims file."""
    folder, stem = page.path.parent, page.path.stem
    index = folder / "index.rst"
    text = index.read_text() if index.exists() else ""
    if not re.search(rf"^    {re.escape(stem)}$", text, re.MULTILINE):
        yield 1, f"not in the toctree of {folder.name}/index.rst"
    if page.label and f":link: {page.label}\n" not in text:
        yield 1, f"no card with `:link: {page.label}` in {folder.name}/index.rst"
    claims = folder.parents[1] / "tests" / "claims" / claims_name(page.path)
    if not claims.exists():
        yield 1, f"no claims file tests/claims/{claims.name}"


Rule = Callable[[Page], Complaints]
GATE: list[Rule] = [figures, honest, guarded, imports, caught, listed]
FRAME: list[Rule] = [opening, early, sections, length, exercise, drawing]


def lint(path: Path, rules: list[Rule] = GATE + FRAME) -> list[str]:
    """Complaints about one script, as ``folder/name.py:line: message``."""
    name = f"tutorials/{page_name(path)}.py"
    try:
        page = Page(path)
        if not page.cells:
            return [f"{name}:1: no code, so nothing runs"]
        found = [item for rule in rules for item in rule(page)]
    except SyntaxError as error:
        found = [(error.lineno or 1, f"not Python: {error.msg}")]
    return [f"{name}:{line}: {message}" for line, message in sorted(found)]


def same_ribbon(paths: list[Path]) -> list[str]:
    """One complaint for each page whose ribbon differs from the first page's."""
    texts = {}
    for path in paths:
        for cell in Page(path).cells:
            if cell.defines("ribbon"):
                texts[path] = cell.code.strip()
    if not texts:
        return []
    first = next(iter(texts))
    return [
        f"tutorials/{page_name(path)}.py:1: ribbon differs from {first.name}"
        for path, text in texts.items()
        if text != texts[first]
    ]


def orphans(root: Path, paths: list[Path]) -> list[str]:
    """One complaint for each claims file whose page is gone."""
    wanted = {claims_name(path) for path in paths}
    files = sorted((root / "tests" / "claims").glob("*.toml"))
    return [
        f"tests/claims/{file.name}:1: claims of a page that does not exist"
        for file in files
        if file.name not in wanted
    ]


def main(root: Path = ROOT) -> int:
    """Lint all tutorials; print complaints; return the exit code."""
    paths = pages(root)
    found = [line for path in paths for line in lint(path)]
    found += orphans(root, paths)
    found += [] if found else same_ribbon(paths)
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
