"""Says whether the site is the same when it is built again: ``make reproduce``.

The site of ``make html`` is compared with one more, built from nothing in a copy of the
working tree: in another folder, with another hash seed, in a time zone where it is
another day and, if the program ``faketime`` is installed, with a clock that is more
than a year ahead. Whatever of these shows on a page is named by its line.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import psutil
import sitefacts
from messages import script_place
from page_run import page_name, pages
from pageparts import Page

ROOT = Path(__file__).parents[2]
SITE = Path("build") / "html"
GENERATED = Path("docs") / "tutorials"

DEADLINE = 30 * 60  # seconds for a build; the whole site is to take 10 minutes
DAYS = 400  # another year, month and weekday
DIFF_FILES, DIFF_LINES = 5, 20
WIDTH = 160  # characters of a line in a difference; the search index is one line

#: Set to the scratch folder in all that a build starts, so that it can be found again.
MARK = "REPRODUCE_FOLDER"

#: Time zones 26 hours apart: at any moment, one of them has another date than here.
ZONES = {"<+14>-14": 14, "<-12>+12": -12}

#: What ``faketime`` has to leave alone: the age of files, and the clock of deadlines.
REAL = {
    "NO_FAKE_STAT": "1",
    "DONT_FAKE_MONOTONIC": "1",
    "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # the name in libfaketime up to 0.9.7
}

#: libfaketime 0.9.10 refuses Python's own sleep, which waits for a point in time.
SLEEP = """\
import select, time
def sleep(seconds, /):
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    select.select([], [], [], seconds)
time.sleep = sleep
"""

_CELL = ".. GENERATED FROM PYTHON SOURCE LINES "
_DIFFERS = "differs between two builds"


class Failure(Exception):
    """One clear line about what kept the two sites from being compared."""


# -- Two builds ------------------------------------------------------------------------


def marked(folder: Path) -> list[psutil.Process]:
    """The processes that the builds of a scratch folder started and left running."""
    found = []
    for process in psutil.process_iter():
        # It may end meanwhile, or belong to somebody else.
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == str(folder):
                found.append(process)
    return found


def end(folder: Path) -> None:
    """End all that the builds of a scratch folder left running, in any session."""

    def tidies(process: psutil.Process) -> bool:
        # They remove what lies in /dev/shm once the processes they serve are gone.
        with contextlib.suppress(psutil.Error):
            return "resource_tracker" in " ".join(process.cmdline()) or (
                process.name() == "faketime"
            )
        return False

    deadline = time.monotonic() + 10
    while (running := marked(folder)) and time.monotonic() < deadline:
        late = time.monotonic() > deadline - 5
        for process in running:
            if late or not tidies(process):
                with contextlib.suppress(psutil.Error):
                    process.kill()
        time.sleep(0.05)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Finish what is inside: a second Ctrl+C must not leave half of it."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder that is gone afterwards, and with it all that was started for it."""
    folder = Path(tempfile.mkdtemp(prefix="two-")).resolve()
    try:
        yield folder
    finally:
        with undisturbed():
            end(folder)
            shutil.rmtree(folder, ignore_errors=True)


def copy_tree(root: Path, to: Path) -> None:
    """Copy the files that git tracks, or would if they were added.

    Raises
    ------
    Failure
        If git cannot list them.
    """
    # The owner of a checkout in a container is often another user: git would refuse.
    command = [
        "git",
        "-c",
        "safe.directory=*",
        "ls-files",
        "-coz",
        "--exclude-standard",
    ]
    try:
        names = subprocess.check_output(
            command, cwd=root, stderr=subprocess.PIPE, text=True, timeout=60
        )
    except FileNotFoundError:
        raise Failure(
            "reproduce: git is not installed; it lists what to copy"
        ) from None
    except subprocess.SubprocessError as error:
        said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1]
        raise Failure(f"reproduce: git does not list the files: {said}") from None
    for name in sorted(set(names.split("\0"))):
        if name and (root / name).is_file():  # one may be deleted and not committed
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            # Without the times: the site may not depend on them either.
            shutil.copy(root / name, to / name, follow_symlinks=False)


def other_zone(first: float, now: float) -> str:
    """A time zone in which the date, now and in an hour, is not that of ``first``.

    Parameters
    ----------
    first, now : float
        Moments, in seconds as of `time.time`; ``first`` is read in the local zone.
    """
    day = datetime.fromtimestamp(first).date()
    for zone, hours in ZONES.items():
        there = datetime.fromtimestamp(now, timezone(timedelta(hours=hours)))
        if day not in (there.date(), (there + timedelta(hours=1)).date()):
            return zone
    return zone


def another_environment(folder: Path, first: float) -> dict[str, str]:
    """Variables for a second build: hash seed, time zone, folder of temporary files."""
    (folder / "tmp").mkdir()
    return os.environ | {
        # If none is set, the first build took one by chance.
        "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1",
        "TZ": other_zone(first, time.time()),
        "TMPDIR": str(folder / "tmp"),
        sitefacts.DATE: sitefacts.commit_date(ROOT),  # the copy is no repository
        MARK: str(folder),
    }


def shift_clock(folder: Path, environment: dict[str, str]) -> list[str]:
    """How to start a command with a shifted clock; changes the environment for it.

    Returns
    -------
    list of str
        The words before the command; none if there is no ``faketime`` that works.
    """
    program = shutil.which("faketime")
    if program is None:
        return []
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(SLEEP)
    path = [str(folder / "site"), environment.get("PYTHONPATH", "")]
    shifted = environment | REAL | {"PYTHONPATH": os.pathsep.join(filter(None, path))}
    prefix = [program, "-m", "-f", f"+{DAYS}d"]  # -m: torch has threads
    code = "import time; time.sleep(0.01); print(time.time())"
    try:
        told = subprocess.check_output(
            [*prefix, sys.executable, "-c", code],
            env=shifted,
            stderr=subprocess.DEVNULL,
            timeout=60,
        )
        if float(told) < time.time() + (DAYS - 1) * 86400:
            return []
    except (OSError, subprocess.SubprocessError, ValueError):
        return []
    environment.update(shifted)
    return prefix


def run_build(root: Path, environment: dict[str, str], prefix: list[str]) -> int:
    """Build the site in a folder, pass on what it says, return its exit code.

    Raises
    ------
    Failure
        If it outlives the deadline.
    """
    sys.stdout.flush()
    process = subprocess.Popen(
        [*prefix, sys.executable, "docs/_ext/build.py"],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # on Ctrl+C we end it, without its traceback
    )
    try:
        return process.wait(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        raise Failure(f"reproduce: a build did not end within {DEADLINE} s") from None
    finally:
        with undisturbed():
            end(Path(environment[MARK]))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)


# -- What differs ----------------------------------------------------------------------


def files(site: Path) -> dict[str, bytes]:
    """All files of a site by their path."""
    found = sorted(path for path in site.rglob("*") if path.is_file())
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in found}


def place_of(root: Path, page: str, rest: list[str], line: int, said: str = "") -> str:
    """``file:line`` of the statement that made a line of a generated page.

    Parameters
    ----------
    root : Path
        The repository.
    page : str
        Name of the page, ``folder/stem``.
    rest : list of str
        Lines of the generated page.
    line : int
        The line in question, from 0.
    said : str
        What was printed there; "" for a figure.
    """
    starts = [n for n, text in enumerate(rest[: line + 1], 1) if text.startswith(_CELL)]
    start = starts[-1] if starts else 1
    place = script_place(root, re.fullmatch(r"(.*):(\d+)", f"{page}:{start}"))
    file, _, number = place.rpartition(":")
    for cell in reversed(Page(root / "tutorials" / f"{page}.py").cells):
        if starts and cell.line <= int(number):
            return f"{file}:{statement(cell.tree, said)}"
    return place


def statement(cell: ast.Module, said: str) -> int:
    """Line of the statement of a cell that most likely printed a text.

    That is a ``print`` with a piece of the text, else one without any text of its own,
    else the expression at the end, which the page shows; for a figure the first one.
    """
    if not said:
        return cell.body[0].lineno
    prints = {
        node.lineno: [
            part.value.strip()
            for part in ast.walk(node)
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        ]
        for node in ast.walk(cell)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
    }
    for line, pieces in prints.items():
        if any(len(piece) > 1 and piece in said for piece in pieces):
            return line
    bare = [line for line, pieces in prints.items() if not "".join(pieces)]
    return next(iter(bare or prints), cell.body[-1].lineno)


def page_complaints(first: Path, second: Path, page: str) -> list[str]:
    """One line for each statement of a page whose output differs."""
    name = GENERATED / f"{page}.rst"
    ours, theirs = ((root / name).read_text().splitlines() for root in (first, second))
    places = []
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for tag, begin, stop, start, finish in matcher.get_opcodes():
        if tag == "equal":
            continue
        told = list(enumerate(ours[begin:stop], begin))
        told = told or [(begin, text) for text in theirs[start:finish]]
        for line, text in told:
            if text.strip():  # blank lines follow the text that differs
                places.append(place_of(first, page, ours, line, text))
    return [f"{place}: the output {_DIFFERS}" for place in dict.fromkeys(places)]


def figure_complaints(first: Path, page: str, changed: set[str]) -> list[str]:
    """One line for each figure of a page that differs.

    Parameters
    ----------
    first : Path
        The repository.
    page : str
        Name of the page, ``folder/stem``.
    changed : set of str
        Names of the files in the page's folder of images that differ.
    """
    lines = (first / GENERATED / f"{page}.rst").read_text().splitlines()
    places = {}
    stem = re.escape(page.rpartition("/")[2])
    for name in sorted(changed):
        if match := re.fullmatch(rf"(sphx_glr_{stem}_(\d+))\D.*", name):
            shown = [n for n, text in enumerate(lines) if f"/{match[1]}." in text]
            place = place_of(first, page, lines, shown[0] if shown else 0)
            places[match[2]] = f"{place}: figure {match[2]} {_DIFFERS}"
    return list(places.values())


def difference(name: str, ours: bytes, theirs: bytes) -> list[str]:
    """The beginning of a unified diff, indented; nothing for what is not text."""
    if b"\0" in ours + theirs:
        return []
    sides = []
    for data in (ours, theirs):
        lines = data.decode("utf-8", "replace").splitlines()
        sides.append([part for line in lines for part in _pieces(line)])
    # What both begin with tells nothing, and all of a search index would take long.
    same = 0
    for one, other in zip(*sides):
        if one != other:
            break
        same += 1
    begin = max(same - 2, 0)
    sides = [side[begin : same + 200] for side in sides]
    lines = list(difflib.unified_diff(*sides, "first", "second", lineterm="", n=2))
    # Not the numbers: they count the pieces of a part.
    lines = [re.sub(r"^@@ .* @@$", "@@", line) for line in lines[2:]]
    shown = [f"  {name}", *(f"    {line}" for line in lines[:DIFF_LINES])]
    return [*shown, "    …"] if len(lines) > DIFF_LINES else shown


def _pieces(line: str) -> list[str]:
    """A line, cut where it is longer than a screen is wide."""
    return textwrap.wrap(
        line, WIDTH, drop_whitespace=False, replace_whitespace=False, expand_tabs=False
    ) or [""]


def first_line(ours: bytes, theirs: bytes) -> int:
    """Number of the first line that differs."""
    pairs = zip(ours.split(b"\n"), theirs.split(b"\n"))
    return next((n for n, (a, b) in enumerate(pairs, 1) if a != b), 1)


def compare(first: Path, second: Path) -> tuple[list[str], list[str], int]:
    """Compare the sites of two repositories byte by byte.

    Returns
    -------
    complaints : list of str
        One line for each place to mend, in the paths of the first repository.
    differences : list of str
        Some of the differing text, indented.
    number : int
        How many files there are.
    """
    ours, theirs = files(first / SITE), files(second / SITE)
    names = sorted(ours.keys() | theirs.keys())
    changed = [name for name in names if ours.get(name) != theirs.get(name)]
    complaints: list[str] = []
    shown: list[tuple[str, bytes, bytes]] = []
    told: set[str] = set()  # files that differ because of something already named
    for script in pages(first):
        page = page_name(script)
        html, rest = f"tutorials/{page}.html", GENERATED / f"{page}.rst"
        lines = []
        if html in changed and (first / rest).exists() and (second / rest).exists():
            lines = page_complaints(first, second, page)
            if lines:
                shown.append((str(rest), *_both(first, second, rest)))
        images = GENERATED / script.parent.name / "images"
        before, after = (_images(root / images) for root in (first, second))
        unlike = {n for n in before.keys() | after if before.get(n) != after.get(n)}
        figures = figure_complaints(first, page, unlike) if unlike else []
        if figures:
            file = min(n for n in unlike if f"glr_{script.stem}_" in n)
            shown.append(
                (str(images / file), before.get(file, b""), after.get(file, b""))
            )
        if lines or figures:
            complaints += lines + figures
            part = re.compile(
                rf"(sphx_glr_)?{re.escape(script.stem)}(\.|_\d+\D|_thumb)"
            )
            told |= {n for n in changed if part.match(n.rpartition("/")[2])}
            told |= {html, "searchindex.js"}
    for name in changed:
        if name in told:
            continue
        if name not in ours or name not in theirs:
            where = "first" if name in ours else "second"
            complaints.append(f"{SITE}/{name}:1: only the {where} of two builds has it")
            continue
        line = first_line(ours[name], theirs[name])
        complaints.append(f"{SITE}/{name}:{line}: {_DIFFERS}")
        shown.append((f"{SITE}/{name}", ours[name], theirs[name]))
    texts = [text for one in shown if (text := difference(*one))]
    return complaints, [x for text in texts[:DIFF_FILES] for x in text], len(names)


def _both(first: Path, second: Path, name: Path) -> list[bytes]:
    return [(root / name).read_bytes() for root in (first, second)]


def _images(folder: Path) -> dict[str, bytes]:
    """Images of a folder of pages, without the thumbnails made of them."""
    found = (path for path in folder.glob("sphx_glr_*") if path.is_file())
    return {path.name: path.read_bytes() for path in found}


def reproduce(root: Path) -> int:
    """Build the site if it is not current, build it again elsewhere, and compare.

    Returns
    -------
    int
        0 if all files are the same, 1 if not; the lines are printed.

    Raises
    ------
    Failure
        If the two sites cannot be had.
    """
    if not shutil.which("faketime") and os.environ.get("CI"):
        raise Failure(
            "reproduce: no faketime, which CI needs: apt-get install faketime"
        )
    with scratch() as folder:
        if run_build(root, os.environ | {MARK: str(folder)}, []):
            raise Failure("reproduce: the site does not build; nothing was compared")
        copy = folder / "copy"
        copy_tree(root, copy)
        made = (root / SITE / "index.html").stat().st_mtime
        environment = another_environment(folder, made)
        prefix = shift_clock(folder, environment)
        if not prefix and os.environ.get("CI"):
            raise Failure("reproduce: faketime does not shift the clock of this Python")
        clock = f"clock {DAYS} days ahead" if prefix else "same clock: no faketime here"
        settings = f"hash seed {environment['PYTHONHASHSEED']}, TZ={environment['TZ']}"
        print(f"building once more, in a copy: {settings}, {clock}", flush=True)
        if run_build(copy, environment, prefix):
            for log in (copy / "build").glob("*.log"):  # the copy will be gone
                shutil.copy(log, root / "build" / f"second-{log.name}")
            raise Failure(
                f"reproduce: the second build fails ({settings}, {clock}); "
                "what Sphinx said: build/second-*.log"
            )
        keys = [folder / "build" / "site.key" for folder in (root, copy)]
        keys = [key.read_text() for key in keys if key.exists()]
        if len(set(keys)) > 1:
            raise Failure(
                "reproduce: the two builds had other sources: a file changed meanwhile,"
                " or the build reads one that git ignores (git status --ignored)"
            )
        complaints, differences, number = compare(root, copy)
    for line in complaints + differences:
        print(line, file=sys.stderr)
    if complaints:
        return 1
    print(f"two builds are identical: {number} files")
    return 0


def main() -> int:
    """Command line: 0 identical, 1 different, 2 not compared, 130 interrupted."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # so nohup works
            signal.signal(number, signal.default_int_handler)
    try:
        return reproduce(ROOT)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("reproduce: interrupted; nothing was compared", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
