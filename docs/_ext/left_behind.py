"""What a page leaves behind: processes, threads, ports, files, changed settings.

A `Watch` looks once before a page, after each of its cells, and at its end. So it can
name the cell that made what is still there, and give the next page a clean start.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import random
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil

GRACE = 3.0  # seconds in which a process or thread that was told to end may do so

#: Made by multiprocessing for the life of the interpreter, not by a page.
HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")


class Watch:
    """What is there before a page, and since which cell it is not.

    Parameters
    ----------
    folder : Path
        The working folder of the page, which holds its script alone.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = psutil.Process()
        self._found = self._processes()
        self._before = self._now()
        self._restore = settings_to_restore()
        self._seen: dict[tuple, tuple[Any, int]] = {}
        self._is_seeded = self._has_looked = False
        self._own: set[str] = set()  # what the first cell seeded
        self._moved: list[tuple[int, str]] = []

    def look(self, line: int) -> None:
        """Note what the cell that begins at ``line`` made or changed."""
        now = self._now()
        if Path.cwd() != self._folder:  # sphinx-gallery goes back, a download does not
            self._moved.append((line, "left its working folder"))
        seed = ("torch's seed",)
        if not self._is_seeded and now[seed] != self._before[seed]:
            self._is_seeded = True  # the first one that a page sets is its own
            self._before[seed] = now[seed]
        for name in OTHER_SEEDS:
            if name in self._own or (
                not self._has_looked and (now[name,] != self._before[name,])
            ):
                self._own.add(name)
                self._before[name,] = now[name,]
        if not self._has_looked:  # one thread for all of the page, if it says so first
            self._before["the thread count",] = now["the thread count",]
        self._has_looked = True
        for key, value in now.items():
            if self._seen.get(key, (self._before.get(key), 0))[0] != value:
                self._seen[key] = (value, line)
        for key in self._seen.keys() - now.keys():
            del self._seen[key]

    def complaints(self) -> list[tuple[int, str]]:
        """Line and message for each thing that is not as it was.

        Waits up to `GRACE` for processes and threads that are about to end.
        """
        deadline = time.monotonic() + GRACE
        while (found := self._differences()) and any(
            key[0] in PASSING for key in found
        ):
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
        lines = {key: self._seen.get(key, (None, 1))[1] for key in found}
        left = [(lines[key], message) for key, message in found.items()]
        return sorted(left + self._moved[:1])

    def clean(self) -> None:
        """Give the next page what this one found; end what it left running."""
        for process in self._processes():
            if process in self._found:  # somebody else's, and still needed
                continue
            with contextlib.suppress(psutil.Error):
                process.kill()
        for restore in self._restore:
            restore()

    def _differences(self) -> dict[tuple, str]:
        multiprocessing.active_children()  # joins those that have ended
        found = {}
        for key, value in self._now().items():
            before = self._before.get(key)
            if before == value:
                continue
            what, *name = key
            if name:  # a thing that was not there
                found[key] = f"left a {what} behind: {name[-1]}"
            elif isinstance(value, bytes | dict | tuple):
                found[key] = f"left {what} changed"  # too long to show
            else:
                found[key] = f"left {what} changed: {value}, it was {before}"
        return found

    def _now(self) -> dict[tuple, Any]:
        """Everything that must be the same before and after a page."""
        now: dict[tuple, Any] = {(name,): value for name, value in settings().items()}
        for process in self._processes():
            with contextlib.suppress(psutil.Error):
                command = " ".join(Path(part).name for part in process.cmdline()[:3])
                now["child process", process.pid, command] = True
        for thread in threading.enumerate():
            if thread.is_alive():
                now["thread", thread.ident, thread.name] = True
        with contextlib.suppress(psutil.Error):
            for connection in self._process.net_connections(kind="inet"):
                if connection.status == psutil.CONN_LISTEN:
                    # The number of a free port is chance; that it listens is not.
                    name = connection.laddr.ip
                    now["listening port", connection.laddr.port, name] = True
        for path in self._folder.rglob("*"):
            name = path.relative_to(self._folder).as_posix()
            stamp = path.stat().st_mtime_ns if path.is_file() else 0
            now["file in the working folder", name] = stamp
        return now

    def _processes(self) -> list[psutil.Process]:
        """Descendants, and those that left the family but stayed in the folder."""
        found = {child.pid: child for child in self._process.children(recursive=True)}
        folder = str(self._folder)
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.cwd().startswith(folder) and process != self._process:
                    found[process.pid] = process
        return [process for process in found.values() if not is_helper(process)]


#: Global generators that a page may use if its first cell seeds them. TorchRL's
#: prioritized samplers draw from NumPy's.
OTHER_SEEDS = ("the state of random", "the state of numpy.random")

#: Kinds of things that may still be about to end when a page does.
PASSING = {"child process", "thread", "listening port"}


#: Words of a message, and what the line that is to blame may hold.
TELLTALES = {
    "child process": r"Popen|Process|subprocess|\.start\(",
    "thread": r"Thread|Executor|\.start\(",
    "listening port": r"listen|bind|erver",
    "file in": r"open|write|save|dump|mkdir|touch|copy|sqlite",
    "thread count": r"set_num_threads",
    "default dtype": r"set_default_dtype",
    "default device": r"set_default_device",
    "print options": r"set_printoptions",
    "start method": r"set_start_method",
    "gradient mode": r"set_grad_enabled",
    "deterministic": r"use_deterministic_algorithms",
    "seed": r"seed",
    "state of": r"seed|random",
    "environment": r"environ|env\b",
    "hooks": r"hook",
    "left its working folder": r"chdir",
    "warning filters": r"warnings\.",
    "SIGALRM": r"SIGALRM|alarm|setitimer",
}


def place(code: str, line: int, message: str) -> int:
    """The line to blame in a cell that begins at ``line``: the last that may fit."""
    patterns = [pattern for word, pattern in TELLTALES.items() if word in message]
    found = [
        number
        for number, text in enumerate(code.splitlines(), line)
        if any(re.search(pattern, text) for pattern in patterns)
    ]
    return found[-1] if found else line


def is_helper(process: psutil.Process) -> bool:
    """Whether multiprocessing keeps this process, or it has ended already."""
    try:
        command = " ".join(process.cmdline())
        ended = process.status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True
    return ended or any(helper in command for helper in HELPERS)


def settings() -> dict[str, Any]:
    """Settings of the whole process that a page can change, by name."""
    import torch

    # Another dtype than the default one would show in the text.
    kind = {"device": "cpu", "dtype": torch.get_default_dtype()}
    probe = torch.tensor([1 / 3, 1e-7, 12345.678], **kind).expand(2000, 3)
    wide = torch.linspace(0, 1, 40, **kind)
    return {
        "the thread count": torch.get_num_threads(),
        "the default dtype": torch.get_default_dtype(),
        "the default device": str(torch.get_default_device()),
        "the print options": f"{probe}{wide}{np.get_printoptions()}".encode(),
        "the start method": multiprocessing.get_start_method(allow_none=True),
        "the gradient mode": torch.is_grad_enabled(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "torch's seed": torch.initial_seed(),
        "the state of random": repr(random.getstate()).encode(),
        "the state of numpy.random": repr(np.random.get_state()).encode(),
        "the environment variables": environment(),
        "the exception hooks": (threading.excepthook, sys.unraisablehook),
        "the handler of SIGINT": (signal.getsignal(signal.SIGINT),),
    }


def environment() -> dict[str, str]:
    """The environment variables of this process."""
    return dict(os.environ)


def settings_to_restore() -> list[Callable[[], Any]]:
    """One call for each setting, that gives back what holds now."""
    import torch

    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    device, grad = torch.get_default_device(), torch.is_grad_enabled()
    strict = torch.are_deterministic_algorithms_enabled()
    start = multiprocessing.get_start_method(allow_none=True)
    printed, variables = np.get_printoptions(), environment()
    python, numpy, own = random.getstate(), np.random.get_state(), torch.get_rng_state()
    thread_hook, hook = threading.excepthook, sys.unraisablehook
    interrupt = signal.getsignal(signal.SIGINT)

    def environ() -> None:
        for name in environment().keys() - variables.keys():
            del os.environ[name]
        os.environ.update(variables)

    def hooks() -> None:
        threading.excepthook, sys.unraisablehook = thread_hook, hook

    return [
        lambda: torch.set_num_threads(threads),
        lambda: torch.set_default_dtype(dtype),
        # None, not the CPU itself: a default device slows each factory function down.
        lambda: torch.set_default_device(None if device.type == "cpu" else device),
        lambda: torch.set_printoptions(profile="default"),
        lambda: np.set_printoptions(**printed),
        lambda: torch.set_grad_enabled(grad),
        lambda: torch.use_deterministic_algorithms(strict),
        lambda: multiprocessing.set_start_method(start, force=True),
        lambda: random.setstate(python),
        lambda: np.random.set_state(numpy),
        lambda: torch.set_rng_state(own),
        lambda: signal.signal(signal.SIGINT, interrupt),
        environ,
        hooks,
    ]


def open_collectors() -> list[Any]:
    """Collectors of TorchRL in this process that were not shut down."""
    module = sys.modules.get("torchrl.collectors")
    if module is None:
        return []
    gc.collect()  # one that nobody holds is gone, and was shut down on the way
    base = module.BaseCollector
    with warnings.catch_warnings(action="ignore"):
        # Not isinstance(): that asks each object, and some answer with a warning.
        found = [item for item in gc.get_objects() if base in type(item).__mro__]
        return [item for item in found if not item.closed]
