"""Runs a page as a reader does: a fresh process in an empty folder."""

from __future__ import annotations

import ast
import contextlib
import multiprocessing
import os
import re
import runpy
import signal
import subprocess
import sys
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from unittest import mock

from pagelint import spawns
from pageparts import Page

DEADLINE = 240  # seconds; the longest page may take 90 on a quiet machine

#: Two tests run at a time, on as few as two cores: with more threads each waits for the
#: other's, and takes three times as long.
SETTINGS = {
    "MPLBACKEND": "agg",
    "RL_LOGGING_LEVEL": "WARNING",
    "OMP_NUM_THREADS": "1",
}

#: What nearly every page imports, and gymnasium only when the first env is made.
PRELOAD = [
    "matplotlib.pyplot",
    "matplotlib.backends.backend_agg",
    "gymnasium.envs.classic_control",
    "torchrl.collectors",
    "torchrl.data",
    "torchrl.envs",
    "torchrl.modules",
    "torchrl.objectives.value",
]


@dataclass(frozen=True)
class Run:
    """How a script ended: exit code, last line of stderr, line of the page it names."""

    code: int
    error: str
    line: int
    stderr: str


def run(script: Path, folder: Path, deadline: float = DEADLINE, **more: str) -> Run:
    """Run a script with this interpreter, in a folder, within the deadline.

    What else stands in ``more`` becomes part of its environment.

    Raises
    ------
    subprocess.TimeoutExpired
        If it does not end; it and its children are ended then.
    """
    env = os.environ | SETTINGS | more
    process = subprocess.Popen(
        [sys.executable, script],
        cwd=folder,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that its children can be ended with it
    )
    try:
        stderr = process.communicate(timeout=deadline)[1]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return outcome(process.returncode, stderr, script)


def outcome(code: int, stderr: str, script: Path) -> Run:
    """What a script's exit code and stderr say."""
    lines = stderr.strip().splitlines()
    frames = re.findall(r'^  File "([^"]*)", line (\d+)', stderr, re.MULTILINE)
    innermost = frames[-1] if frames else ("", "0")
    line = int(innermost[1]) if innermost[0] == str(script) else 0
    return Run(code, lines[-1] if lines else "", line, stderr)


def run_forked(script: Path, folder: Path, deadline: float = DEADLINE) -> Run:
    """Run a script in a fork of a process that has imported its libraries already.

    Saves the four seconds of imports that `run` needs for each script; for hundreds of
    runs of which the imports are not what is tested. Not for a script that spawns.

    Raises
    ------
    subprocess.TimeoutExpired
        If it does not end; it is ended then.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    with mock.patch.dict(os.environ, SETTINGS):  # what holds when the server starts
        forkserver.ensure_running()
    log = folder / f"{script.stem}.stderr"
    process = context.Process(target=_as_script, args=(script, folder, log))
    process.start()
    process.join(deadline)
    is_over = process.exitcode is not None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # the script, or what it left behind
    process.join()
    stderr = log.read_text()
    log.unlink()
    if not is_over:
        raise subprocess.TimeoutExpired(str(script), deadline, stderr=stderr)
    return outcome(process.exitcode, stderr, script)


def run_quickly(script: Path, folder: Path, page: Page) -> Run:
    """Run a script made from a page in the quicker of the two ways that can run it."""
    does_spawn = any(spawns(n) for cell in page.cells for n in ast.walk(cell.tree))
    return (run if does_spawn else run_forked)(script, folder)


def _as_script(script: Path, folder: Path, log: Path) -> None:
    """Become the process that ``python script`` would be."""
    os.setsid()
    os.chdir(folder)
    for number, target in ((1, os.devnull), (2, log)):
        stream = os.open(target, os.O_WRONLY | os.O_CREAT)
        os.dup2(stream, number)
        os.close(stream)
    sys.argv, sys.path[0] = [str(script)], str(script.parent)
    runpy.run_path(str(script), run_name="__main__")
