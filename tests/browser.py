"""Finds a Chromium for the tests: on the machine, from Debian, or from Playwright."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DEADLINE = 600  # seconds for each attempt to install one

#: Playwright adds --headless itself; the rest keeps the browser from phoning home.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class NoBrowserError(RuntimeError):
    """No Chromium can be had, in one line."""


def on_path() -> str | None:
    """Path of a Chromium on this machine, None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def attempt(*command: str) -> bool:
    """Run an installer within the deadline; whether it succeeded."""
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(command, env=env, capture_output=True, timeout=DEADLINE)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def chromium() -> str | None:
    """Executable for Playwright; None for the one that Playwright downloaded.

    Raises
    ------
    NoBrowserError
        If neither the machine, nor Debian, nor Playwright's download has one.
    """
    if found := on_path():
        return found
    may_install = os.geteuid() == 0 and shutil.which("apt-get")
    if may_install and attempt("apt-get", "update"):
        attempt("apt-get", "install", "-y", "--no-install-recommends", "chromium")
        if found := on_path():
            return found
    if attempt(sys.executable, "-m", "playwright", "install", "chromium"):
        return None
    raise NoBrowserError(
        "no Chromium: none on the machine, none from apt-get, and Playwright's "
        "download failed; install chromium and run again"
    )
