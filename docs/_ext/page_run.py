"""What happens around the run of a page, in the process that runs it.

sphinx-gallery calls `around` before and after each page, `start` before its first cell
and `after_cell` after each; all are named in ``conf.py``. A page runs as its download
does: in a folder that holds its script alone. What is to be said about the run goes
into a record, a small file, because a page can end its process at any moment.
"""

from __future__ import annotations

import ast
import dataclasses
import gc
import importlib
import json
import os
import shutil
import sys
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from figures import STYLE
from left_behind import Watch, open_collectors, place
from pageparts import Cell, Page
from time_limit import TimeLimit, line_in
from warned import Strict, allowed

ROOT = Path(__file__).parents[2]

#: Imported before warnings become errors: what they say at import is not the page's.
HEAVY = (
    "gymnasium",
    "torchrl.collectors",
    "torchrl.data",
    "torchrl.envs",
    "torchrl.modules",
    "torchrl.objectives",
    "matplotlib.pyplot",
)

#: The same in the process of Sphinx and in the workers of its gallery.
THREADS = 2
START_METHOD = "spawn"  # what `import torchrl` chooses in a fresh process


@dataclass
class Record:
    """What is known about one run of a page.

    Attributes
    ----------
    page : str
        Its name, ``folder/stem``.
    line : int
        First line of the cell that runs, or ran last.
    began, seconds : float
        Start on the machine's monotonic clock, and length; no length while it runs.
    wrong : list of (int, str)
        Line and message of each complaint.
    error : str
        Traceback of the exception that ended the page, "" if none did.
    allowed : list of str
        The entries of the list of allowed warnings that it used.
    """

    page: str
    line: int = 1
    began: float = 0.0
    seconds: float | None = None
    wrong: list = field(default_factory=list)
    error: str = ""
    allowed: list = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether the page ran to its end and there is nothing to say."""
        return self.seconds is not None and not self.wrong and not self.error

    def path(self, root: Path) -> Path:
        """Where the record of this page lies."""
        return root / "build" / "runs" / f"{self.page.replace('/', '_')}.json"

    def write(self) -> None:
        """Put the record where `records` finds it, whole or not at all."""
        path = self.path(ROOT)
        path.parent.mkdir(parents=True, exist_ok=True)
        made = path.with_suffix(".new")
        made.write_text(json.dumps(dataclasses.asdict(self)))
        made.replace(path)


def records(root: Path) -> list[Record]:
    """The records of the pages that ran, or still run, in this build."""
    files = sorted((root / "build" / "runs").glob("*.json"))
    return [Record(**json.loads(file.read_text())) for file in files]


def limits(root: Path) -> tuple[float, dict[str, float]]:
    """The default time limit of a page in seconds, and the raised ones by page.

    Raises
    ------
    ValueError
        If ``tutorials/limits.toml`` is broken, in one line.
    """
    try:
        table = tomllib.loads((root / "tutorials" / "limits.toml").read_text())
        return table["default"], table["raised"]
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"tutorials/limits.toml: {error!r}") from None


def pages(root: Path) -> list[Path]:
    """The tutorial scripts of a repository, in the order of the site."""
    return sorted((root / "tutorials").glob("*/*.py"))


def page_name(script: str | Path) -> str:
    """Name of a page, ``folder/stem``, from the path of its script."""
    script = Path(script)
    return f"{script.parent.name}/{script.stem}"


class Run:
    """One run of a page, from its first cell to the last thing said about it.

    Parameters
    ----------
    script_vars : dict
        What sphinx-gallery knows about the run; its ``src_file`` decides in which
        folder the cells run and under which name they are compiled.
    """

    def __init__(self, script_vars: dict[str, Any]) -> None:
        script = Path(script_vars["src_file"])
        self._vars = script_vars
        self._cells = Page(script).cells
        self._passed = 0  # cells
        self._process = os.getpid()
        self.record = Record(
            page_name(script), self._cells[0].line if self._cells else 1
        )
        self._home = ROOT / "build" / "run" / self.record.page.replace("/", "_")
        shutil.rmtree(self._home, ignore_errors=True)
        folder = self._home / script.parent.name
        folder.mkdir(parents=True)
        script_vars["src_file"] = str(shutil.copy(script, folder))
        default, raised = limits(ROOT)
        self._limit = TimeLimit(
            script_vars["src_file"], raised.get(self.record.page, default)
        )
        self._strict = Strict(allowed(ROOT))
        self._hooks = sys.unraisablehook
        sys.unraisablehook = self._lost
        self._watch = Watch(folder)
        self._over = False

    def start(self) -> None:
        """Start the clock and make warnings errors, last before the first cell."""
        self.record.began = time.monotonic()
        if not self._cells:  # the linter refuses such a page
            self._over, self.record.seconds = True, 0.0
            return
        self.record.write()
        self._strict.start()
        self._limit.start()

    def cell_passed(self) -> None:
        """Look after each cell; stop at the last one, or at the first that fails."""
        if os.getpid() != self._process:
            os._exit(1)  # a fork of the page would go on as a second build
        if self._over:
            return
        self._watch.look(self.record.line)
        self._passed += 1
        if self._passed >= len(self._cells) or not self._vars["execute_script"]:
            self.stop()
        else:
            self.record.line = self._cells[self._passed].line
            self.record.write()

    def stop(self) -> None:
        """The page's own code is over: stop the clock, allow warnings again."""
        if self._over:
            return
        self._over = True
        self._limit.stop(self.record.line)
        self.record.seconds = time.monotonic() - self.record.began
        has_failed = "formatted_exception" in self._vars
        for is_so, what in (
            (self._strict.is_touched(), "left the warning filters changed"),
            (self._limit.was_taken, "took SIGALRM, which holds the time limit"),
        ):
            if is_so and not has_failed:
                line = self._place(self.record.line, what)
                self.record.wrong.append((line, what))
        self.record.allowed = self._strict.stop()

    def finish(self) -> None:
        """Judge what the page left behind, clean up, and write the record."""
        self.stop()
        if self._limit.line is not None:
            self.record.wrong.append((self._limit.line, self._limit.message))
        elif error := self._vars.get("formatted_exception"):
            self.record.error = error
        else:  # after an error, what is left behind is its consequence
            left = self._watch.complaints()
            self.record.wrong += [(self._place(*item), item[1]) for item in left]
            self.record.wrong += self._unclosed()
        self._watch.clean()
        # Now, and not in the middle of the next page: what the page still held goes.
        self._vars["example_globals"].clear()
        gc.collect()
        sys.unraisablehook = self._hooks
        shutil.rmtree(self._home, ignore_errors=True)
        self.record.write()

    def _lost(self, lost: Any) -> None:
        """Note an exception that Python could only have printed."""
        what = f"{lost.exc_type.__name__}: {lost.exc_value}"
        line = line_in(self._vars["src_file"], sys._getframe()) or self.record.line
        self.record.wrong.append((line, f"an exception was lost: {what}"))

    def _place(self, line: int, message: str) -> int:
        """The line that a message is about, in the cell that begins at ``line``."""
        code = next((cell.code for cell in self._cells if cell.line == line), "")
        return place(code, line, message)

    def _unclosed(self) -> list[tuple[int, str]]:
        """A complaint for each open collector, where its name is bound."""
        names = {
            id(value): name for name, value in self._vars["example_globals"].items()
        }
        found = []
        for collector in open_collectors():
            name = names.get(id(collector), "")
            line = binding(self._cells, name) or self.record.line
            what = f"left an open {type(collector).__name__} behind"
            found.append((line, f"{what}: call {name or 'its'}.shutdown()"))
            collector.shutdown()
        return found


def binding(cells: list[Cell], name: str) -> int:
    """Line of the last assignment to a name of a page, 0 if there is none."""
    lines = [0]
    for cell in cells:
        for node in ast.walk(cell.tree):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if any(isinstance(t, ast.Name) and t.id == name for t in targets):
                lines.append(node.lineno)
    return lines[-1]


_current: list[Run] = []  # at most one: a process runs one page at a time


def around(gallery_conf: dict, fname: str, when: str) -> None:
    """Before a page: load what pages need, apply the style. After it: judge it."""
    if when == "after" and _current:
        run = _current.pop()
        run.finish()
        say(f"{run.record.page} {run.record.seconds:.1f} s")
    import torch

    torch.set_num_threads(THREADS)  # before torchrl remembers the number
    for name in HEAVY:
        importlib.import_module(name)
    if not gc.get_freeze_count():  # the collector need not look at these again
        gc.collect()
        gc.freeze()
    import matplotlib.pyplot as plt

    plt.close("all")
    plt.style.use(STYLE)


def start(gallery_conf: dict, script_vars: dict) -> list[str]:
    """Announce a page and begin its run; returns its (empty) arguments."""
    import torch.multiprocessing

    torch.multiprocessing.set_start_method(START_METHOD, force=True)
    run = Run(script_vars)
    _current.append(run)
    say(f"{run.record.page} …")
    run.start()
    return []


def after_cell(block: Any, block_vars: dict, gallery_conf: dict) -> str:
    """Look at what a cell did. Called as a scraper, after the one for the figures."""
    if _current:
        _current[-1].cell_passed()
    return ""


def say(line: str) -> None:
    """One line of progress, whole, even if two processes speak at a time."""
    os.write(sys.__stdout__.fileno(), f"  {line}\n".encode())
