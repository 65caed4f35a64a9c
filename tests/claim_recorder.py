"""Notes whether each assert of a page held: imported by the page under report.

`claim_report` puts ``with _claim(line):`` before each assert. The name is a builtin,
made by ``sitecustomize``, so that a process that the page starts knows it too.
"""

from __future__ import annotations

import builtins
import json
import os

#: Names the file that takes one line of JSON for each assert that was reached.
RECORD = "CLAIM_RECORD"


class Claim:
    """Notes the outcome of the assert inside it, and lets the page go on.

    Any other error of the assert's own expression is an outcome, too: all that comes
    after the assert is as it was.
    """

    def __init__(self, line: int) -> None:
        self.line = line

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind, error, trace) -> bool:
        """Note the line and the error, "" if there was none."""
        if error is not None and not isinstance(error, Exception):
            return False  # the end of the process is not the claim's matter
        said = f"{kind.__name__}: {error}".rstrip(": ") if error is not None else ""
        with open(os.environ[RECORD], "a", encoding="utf-8") as file:  # noqa: PTH123
            file.write(json.dumps([self.line, said]) + "\n")
        return True


def install() -> None:
    """Make the name that the rewritten asserts use."""
    builtins._claim = Claim
