"""What happens around the run of a page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import page_run
import pytest


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    """An empty repository with limits of its own."""
    (tmp_path / "tutorials").mkdir()
    (tmp_path / "tutorials" / "limits.toml").write_text(
        'default = 60\n[raised]\n"train/10_long" = 180\n'
    )
    monkeypatch.setattr(page_run, "TUTORIALS", tmp_path / "tutorials")
    monkeypatch.setattr(page_run, "RUNNING", tmp_path / "build" / "running")
    return tmp_path


@pytest.fixture
def armed(monkeypatch) -> list:
    """The limits that were armed, None for each disarming; none is armed for real."""
    calls: list = []
    fault = page_run.faulthandler
    monkeypatch.setattr(
        fault, "dump_traceback_later", lambda seconds, **_: calls.append(seconds)
    )
    monkeypatch.setattr(
        fault, "cancel_dump_traceback_later", lambda: calls.append(None)
    )
    return calls


def run(page: str) -> None:
    """One run of a page that does nothing."""
    page_run.around({}, f"{page}.py", "before")
    assert page_run.start({}, {"src_file": f"/x/tutorials/{page}.py"}) == []
    assert page_run.RUNNING.read_text() == page
    page_run.around({}, f"{page}.py", "after")


def test_a_page_is_announced_and_timed_on_the_terminal(repository, armed, capfd):
    run("assemble/10_a")
    assert re.fullmatch(r"  assemble/10_a … 0\.\d s\n", capfd.readouterr().out)
    assert not page_run.RUNNING.exists()


def test_each_page_has_a_limit_that_ends_with_it(repository, armed):
    run("assemble/10_a")
    run("train/10_long")
    assert armed == [60, None, 180, None]


def test_the_style_is_there_before_a_page_and_again_after_it(repository, armed):
    plt.figure()
    page_run.around({}, "a.py", "before")
    assert plt.get_fignums() == []
    assert plt.rcParams["figure.figsize"] == [5.4, 2.4]
    plt.rcParams["figure.figsize"] = (1, 1)
    page_run.around({}, "a.py", "after")
    assert plt.rcParams["figure.figsize"] == [5.4, 2.4]


def test_the_limits_of_the_site_are_readable():
    default, raised = page_run.limits()
    assert default == 60
    names = {page_run.page_name(p) for p in page_run.TUTORIALS.glob("*/*.py")}
    assert raised.keys() <= names
    assert all(seconds > default for seconds in raised.values())


@pytest.mark.parametrize("text", ["default = ", "default = 60", None])
def test_broken_limits_give_one_line(repository, text):
    file = repository / "tutorials" / "limits.toml"
    file.unlink() if text is None else file.write_text(text)
    with pytest.raises(ValueError, match=r"^tutorials/limits\.toml: ") as caught:
        page_run.limits()
    assert "\n" not in str(caught.value)


HANG = """
import sys
import page_run
from pathlib import Path
page_run.limits = lambda: (0.5, {})
page_run.RUNNING = Path(sys.argv[1]) / "running"
page_run.start({}, {"src_file": "/x/assemble/10_a.py"})
while True: pass  # one line, so that it is known where the page hangs
"""


def test_a_page_that_hangs_ends_with_its_stack(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", HANG, tmp_path],
        env={"PYTHONPATH": str(Path(page_run.__file__).parent)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "Timeout (0:00:00.5" in done.stderr
    assert 'File "<string>", line 8 in <module>' in done.stderr
    assert (tmp_path / "running").read_text() == "assemble/10_a"
