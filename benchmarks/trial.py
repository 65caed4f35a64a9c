"""Runs one build and measures it: seconds, seconds in and outside pages, memory."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

DEADLINE = 1200  # seconds for one build
PERIOD = 0.2  # seconds between two looks at the memory; a look takes about 5 ms

_TIMES = re.compile(r"([\d.]+) s in tutorials, (-?[\d.]+) s outside")


@dataclass(frozen=True)
class Trial:
    """What one build cost.

    Attributes
    ----------
    seconds : float
        Wall-clock time of the command.
    inside : float
        Time in tutorial code, a sum over the workers. So with two workers it can be
        longer than the build.
    outside : float
        Time in which no page ran. With two workers this is not ``seconds - inside``:
        `docs/_ext/build.py` subtracts the time in which at least one page ran, and its
        summary is what we read.
    peak : float
        Memory of the build and all its processes at the worst moment, in MiB.
    """

    seconds: float
    inside: float
    outside: float
    peak: float


class Watch(threading.Thread):
    """Follows a process and all that it starts: the most memory they held together.

    ``resource.getrusage(RUSAGE_CHILDREN)`` would not do: its ``ru_maxrss`` is the
    largest single process of the tree, and here Sphinx and its workers live side by
    side. This is the sum of their resident sets. Pages that two processes share, such
    as the code of torch, count once in each: the sum is an upper bound.

    Parameters
    ----------
    pid : int
        The first process.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak = 0.0
        self._first = psutil.Process(pid)
        self._known = {self._first}
        self._over = threading.Event()

    def run(self) -> None:
        """Look again and again until `end`."""
        while not self._over.wait(PERIOD):
            self.look()

    def look(self) -> None:
        """Add up what is resident now."""
        with contextlib.suppress(psutil.Error):
            self._known.update(self._first.children(recursive=True))
        total = 0
        for process in list(self._known):
            try:
                total += process.memory_info().rss
            except psutil.Error:
                self._known.discard(process)
        self.peak = max(self.peak, total / 2**20)

    def end(self) -> None:
        """Stop looking, and end what still runs, even where its parent is gone."""
        self._over.set()
        self.join()
        with contextlib.suppress(psutil.Error):
            self._known.update(self._first.children(recursive=True))
        for process in self._known:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(list(self._known), timeout=10)


def build(root: Path, *arguments: str, workers: int) -> Trial:
    """Build a copy of the repository and measure it.

    Parameters
    ----------
    root : Path
        The copy. Its parent holds a folder for what the build writes elsewhere.
    *arguments : str
        For ``docs/_ext/build.py``.
    workers : int
        How many pages run at a time.

    Raises
    ------
    SystemExit
        In one line, if the build fails or does not end: then nothing was measured.
    """
    scratch = root.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    own = {"GALLERY_WORKERS": str(workers)}
    own |= {"TMPDIR": str(scratch), "JOBLIB_TEMP_FOLDER": str(scratch)}
    command = [sys.executable, root / "docs" / "_ext" / "build.py", *arguments]
    begin = time.perf_counter()
    # Files and not pipes: what a build leaves running would hold a pipe open.
    with (
        tempfile.TemporaryFile("w+", dir=scratch) as out,
        tempfile.TemporaryFile("w+", dir=scratch) as err,
        subprocess.Popen(
            command, env=os.environ | own, stdout=out, stderr=err
        ) as process,
    ):
        watch = Watch(process.pid)
        watch.start()
        try:
            process.wait(timeout=DEADLINE)
            seconds = time.perf_counter() - begin
        except subprocess.TimeoutExpired:
            raise SystemExit(f"bench: no end of a build within {DEADLINE} s") from None
        finally:
            watch.end()
        for file in (out, err):
            file.seek(0)
        inside, outside = times(out.read(), err.read(), process.returncode)
    return Trial(seconds, inside, outside, watch.peak)


def times(stdout: str, stderr: str, code: int) -> tuple[float, float]:
    """Seconds in tutorials and outside, from what a build said; 0 if it had no work.

    Raises
    ------
    SystemExit
        If the build failed or said something else.
    """
    said = (stderr.strip() or stdout.strip() or "it said nothing").splitlines()
    if code:
        raise SystemExit(f"bench: a build failed: {said[0]}")
    if "nothing has changed" in stdout:
        return 0.0, 0.0
    if found := _TIMES.search(stdout):
        return float(found[1]), float(found[2])
    raise SystemExit(f"bench: a build did not say its times: {said[-1]}")
