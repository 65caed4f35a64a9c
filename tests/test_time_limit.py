"""The clock of a page: interrupts its own code, remembers, ends what nothing ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import time_limit
from time_limit import TimeLimit, TimeLimitError

HANG = """
import collections, itertools, sys
import time_limit
time_limit.GRACE = 0.3
time_limit.TimeLimit(__file__, 0.2).start()
collections.deque(itertools.count(), maxlen=0)
"""


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Interrupt often; never end the process that runs the tests."""
    monkeypatch.setattr(time_limit, "REPEAT", 0.05)
    monkeypatch.setattr(time_limit, "GRACE", 100.0)


def run(code: str, seconds: float = 0.1) -> TimeLimit:
    """Run code as the script ``page.py`` under a limit, as the gallery does."""
    limit = TimeLimit("page.py", seconds)
    limit.start()
    try:
        exec(compile(code, "page.py", "exec"), {})
    except TimeLimitError:
        pass
    finally:
        limit.stop(1)
    return limit


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("x = 1\nwhile True: x += 1", 2),
        ("import queue\n\nqueue.Queue().get()", 3),
        ("import time\ntry:\n    time.sleep(60)\nexcept Exception:\n    pass", 3),
        ("import threading\nthreading.Event().wait(60)", 2),
        ("def f():\n    while True: pass\n\nf()", 2),
    ],
)
def test_a_page_is_interrupted_at_its_line(code, line):
    limit = run(code)
    assert limit.line == line
    assert limit.message == "over its time limit of 0.1 s (tutorials/limits.toml)"


def test_a_page_in_time_is_left_alone():
    limit = run("x = 1", seconds=30)
    assert (limit.line, limit.was_taken) == (None, False)
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0


def test_a_page_that_takes_the_alarm_is_found_late_but_found():
    code = "import signal, time\nsignal.signal(14, signal.SIG_IGN)\ntime.sleep(0.2)"
    limit = run(code)
    assert (limit.line, limit.was_taken) == (1, True)


def test_code_that_is_not_the_page_is_not_interrupted():
    limit = TimeLimit("page.py", 0.05)
    limit.start()
    time.sleep(0.3)
    limit.stop(7)
    assert limit.line == 7, "over the limit all the same"


def test_threads_do_not_disturb_the_clock():
    thread = threading.Thread(target=time.sleep, args=[0.3])
    thread.start()
    assert run("import time\ntime.sleep(60)").line == 2
    thread.join()


def test_a_hang_that_no_exception_ends_leaves_its_stack(tmp_path):
    script = tmp_path / "page.py"
    script.write_text(HANG)
    done = subprocess.run(
        [sys.executable, script],
        env={"PYTHONPATH": str(Path(time_limit.__file__).parent)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "Timeout (0:00:00.5" in done.stderr
    assert f'File "{script}", line 6 in <module>' in done.stderr
