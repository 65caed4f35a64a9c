"""What happens around the run of a page, without a gallery."""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import page_run
import pytest
import torch
from pageparts import Page

PAGE = '''"""
Title
=====
"""
x = 1

# %%
# Text.

{}
'''


@pytest.fixture(scope="module", autouse=True)
def loaded():
    """What libraries say at import is theirs, and said once."""
    with warnings.catch_warnings(action="ignore"):
        page_run.around({}, "", "before")


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    """A repository with limits of its own; threads and seeds are restored."""
    (tmp_path / "tutorials" / "assemble").mkdir(parents=True)
    (tmp_path / "tutorials" / "limits.toml").write_text(
        'default = 60\n[raised]\n"assemble/10_long" = 0.2\n'
    )
    (tmp_path / "tutorials" / "warnings.toml").write_text("")
    monkeypatch.setattr(page_run, "ROOT", tmp_path)
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    yield tmp_path
    torch.set_num_threads(threads)
    torch.set_rng_state(state)
    assert page_run._current == []


def run(root: Path, code: str, name: str = "10_a") -> page_run.Record:
    """Run a page the way sphinx-gallery does, cell by cell."""
    script = root / "tutorials" / "assemble" / f"{name}.py"
    script.write_text(PAGE.format(code))
    known = {"src_file": str(script), "execute_script": True, "example_globals": {}}
    page_run.around({}, script.name, "before")
    here, python_path = Path.cwd(), list(sys.path)
    assert page_run.start({}, known) == []
    for cell in Page(script).cells:
        if not known["execute_script"]:
            break
        os.chdir(Path(known["src_file"]).parent)
        try:
            text = "\n" * (cell.line - 1) + cell.code
            exec(compile(text, known["src_file"], "exec"), known["example_globals"])
        except Exception as error:
            known["execute_script"] = False
            known["formatted_exception"] = repr(error)
        finally:
            page_run.after_cell(SimpleNamespace(), known, {})
            os.chdir(here)
    page_run.around({}, script.name, "after")
    assert sys.path == python_path
    (record,) = page_run.records(root)
    assert not list((root / "build" / "run").iterdir())
    return record


def test_a_page_that_is_right_passes_and_is_timed(repository, capfd):
    record = run(repository, "assert x == 1")
    assert record.passed
    assert record.page == "assemble/10_a"
    assert 0 < record.seconds < 60
    pattern = r"  assemble/10_a …\n  assemble/10_a \d\.\d s\n"
    assert re.fullmatch(pattern, capfd.readouterr().out)


def test_a_page_runs_in_a_folder_with_its_script_alone(repository):
    code = "import os\nassert os.listdir() == ['10_a.py'], os.listdir()"
    assert run(repository, code).passed


def test_an_error_is_kept_and_what_is_left_then_is_not_told(repository):
    record = run(repository, "import torch\ntorch.set_num_threads(1)\n1 / 0")
    assert (record.error, record.wrong) == ("ZeroDivisionError('division by zero')", [])
    assert not record.passed
    assert torch.get_num_threads() == page_run.THREADS


def test_a_warning_is_an_error_on_the_page_and_nowhere_else(repository):
    code = "import warnings\nwarnings.warn('no', DeprecationWarning)"
    before = list(warnings.filters)
    assert run(repository, code).error == "DeprecationWarning('no')"
    assert list(warnings.filters) == before


def test_what_is_left_is_told_at_its_line(repository):
    record = run(repository, "import torch\n\ntorch.set_num_threads(1)\ny = 2")
    assert record.wrong == [[12, "left the thread count changed: 1, it was 2"]]


def test_an_exception_that_is_lost_is_told(repository):
    code = "class A:\n    def __del__(self): 1 / 0\n\na = A()\ndel a"
    assert run(repository, code).wrong == [
        [14, "an exception was lost: ZeroDivisionError: division by zero"]
    ]


def test_the_limit_of_a_page_is_its_own(repository):
    record = run(repository, "import time\n\ntime.sleep(30)", name="10_long")
    told = "over its time limit of 0.2 s (tutorials/limits.toml)"
    assert (record.wrong, record.error) == ([[12, told]], "")


def test_a_page_that_runs_has_a_record_without_seconds(repository):
    code = (
        "import json, pathlib\n"
        f"text = pathlib.Path({str(repository)!r}, 'build/runs/assemble_10_a.json')\n"
        "known = json.loads(text.read_text())\n"
        "assert (known['seconds'], known['line']) == (None, 9)"
    )
    assert run(repository, code).passed


def test_an_open_collector_is_told_where_its_name_is_bound(repository):
    code = (
        "from torchrl.collectors import Collector\n"
        "from torchrl.envs import GymEnv\n"
        "from torchrl.modules import RandomPolicy\n"
        "env = GymEnv('CartPole-v1')\n"
        "policy = RandomPolicy(env.action_spec)\n"
        "mine = Collector(env, policy, frames_per_batch=5)\n"
        "shut = Collector(GymEnv('CartPole-v1'), policy, frames_per_batch=5)\n"
        "shut.shutdown()"
    )
    told = "left an open Collector behind: call mine.shutdown()"
    assert run(repository, code).wrong == [[15, told]]
    assert run(repository, "y = 1").passed, "the next page is not blamed"


def test_the_style_is_there_before_a_page_and_again_after_it(repository):
    plt.figure()
    page_run.around({}, "a.py", "before")
    assert plt.get_fignums() == []
    assert plt.rcParams["figure.figsize"] == [5.4, 2.4]
    plt.rcParams["figure.figsize"] = (1, 1)
    page_run.around({}, "a.py", "after")
    assert plt.rcParams["figure.figsize"] == [5.4, 2.4]


def test_the_limits_of_the_site_are_readable():
    default, raised = page_run.limits(page_run.ROOT)
    assert default == 60
    names = {page_run.page_name(path) for path in page_run.pages(page_run.ROOT)}
    assert raised.keys() <= names
    assert all(seconds > default for seconds in raised.values())


@pytest.mark.parametrize("text", ["default = ", "default = 60", None])
def test_broken_limits_give_one_line(repository, text):
    file = repository / "tutorials" / "limits.toml"
    file.unlink() if text is None else file.write_text(text)
    with pytest.raises(ValueError, match=r"^tutorials/limits\.toml: ") as caught:
        page_run.limits(repository)
    assert "\n" not in str(caught.value)
