"""Runs a page as a reader does: a fresh process in an empty folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

DEADLINE = 240  # seconds; the longest page may take 90 on a quiet machine


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
    env = os.environ | {"MPLBACKEND": "agg", "RL_LOGGING_LEVEL": "WARNING"} | more
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
    lines = stderr.strip().splitlines()
    frames = re.findall(r'^  File "([^"]*)", line (\d+)', stderr, re.MULTILINE)
    innermost = frames[-1] if frames else ("", "0")
    line = int(innermost[1]) if innermost[0] == str(script) else 0
    return Run(process.returncode, lines[-1] if lines else "", line, stderr)
