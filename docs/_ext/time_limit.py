"""The time limit of a page, which holds whatever the page does with an interruption.

At the limit the page's own code is interrupted by an exception, so that the build goes
on with the next page. A page may swallow that; it is remembered. A hang that no
exception can break ends the process a little later, with the stack of the stuck line.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
import time
from types import FrameType

REPEAT = 1.0  # seconds between interruptions of a page that goes on
GRACE = 5.0  # seconds from the limit to the end of the process


class TimeLimitError(Exception):
    """Interrupts a page. An ordinary exception: sphinx-gallery reports only those."""


class TimeLimit:
    """A clock for the code of one script, in the main thread of this process.

    Parameters
    ----------
    script : str
        Path of the script as the interpreter knows it.
    seconds : float
        How long it may run.
    """

    def __init__(self, script: str, seconds: float) -> None:
        self.script = script
        self.seconds = seconds
        self.line: int | None = None  #: where the limit was met; None if it was not
        self.was_taken = False  #: whether the page took the alarm for itself
        self._began = time.monotonic()

    @property
    def message(self) -> str:
        """What to tell a person."""
        return f"over its time limit of {self.seconds:g} s (tutorials/limits.toml)"

    def start(self) -> None:
        """Start the clock."""
        signal.signal(signal.SIGALRM, self._strike)
        signal.setitimer(signal.ITIMER_REAL, self.seconds, REPEAT)
        faulthandler.dump_traceback_later(
            self.seconds + GRACE, exit=True, file=sys.__stderr__
        )

    def stop(self, line: int) -> None:
        """Stop the clock; ``line`` is where a page was that outlived it unseen."""
        self.was_taken = signal.getsignal(signal.SIGALRM) != self._strike
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        faulthandler.cancel_dump_traceback_later()
        if self.line is None and time.monotonic() - self._began > self.seconds:
            self.line = line

    def _strike(self, number: int, frame: FrameType | None) -> None:
        """Interrupt the page, but not the gallery between two of its cells."""
        if line := line_in(self.script, frame):
            self.line = self.line or line
            raise TimeLimitError(self.message)


def line_in(script: str, frame: FrameType | None) -> int:
    """Line of a script that a frame was called from, 0 if it was not."""
    while frame is not None and frame.f_code.co_filename != script:
        frame = frame.f_back
    return frame.f_lineno if frame else 0
