"""What a page leaves behind is found, placed, and cleaned up."""

from __future__ import annotations

import multiprocessing
import os
import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import left_behind
import numpy as np
import psutil
import pytest
import torch
from left_behind import Watch, place

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def watch(tmp_path, monkeypatch):
    """A watch on this process, with a folder of its own; cleans up afterwards."""
    monkeypatch.setattr(left_behind, "GRACE", 0.5)
    own = {"PYTEST_CURRENT_TEST"}  # where pytest notes what it is doing
    monkeypatch.setattr(
        left_behind,
        "environment",
        lambda: {k: v for k, v in os.environ.items() if k not in own},
    )
    (tmp_path / "page.py").touch()
    monkeypatch.chdir(tmp_path)
    watch = Watch(tmp_path)
    torch.manual_seed(98)
    watch.look(1)
    yield watch
    watch.clean()
    told = [text for _, text in watch.complaints() if "folder" not in text]
    told = [text for text in told if "torch's seed" not in text]  # this fixture's own
    assert told == []


def test_a_page_that_leaves_nothing_gets_no_complaint(watch):
    torch.rand(3), np.zeros(3)
    watch.look(4)
    assert watch.complaints() == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda: torch.set_num_threads(5), "the thread count changed: 5, it was "),
        (lambda: torch.set_default_dtype(torch.float64), "the default dtype changed"),
        (lambda: torch.set_default_device("meta"), "the default device changed: meta"),
        (lambda: torch.set_printoptions(precision=2), "the print options changed"),
        (lambda: torch.set_printoptions(sci_mode=True), "the print options changed"),
        (lambda: torch.set_printoptions(linewidth=30), "the print options changed"),
        (lambda: np.set_printoptions(precision=2), "the print options changed"),
        (lambda: torch.set_grad_enabled(False), "the gradient mode changed: False"),
        (lambda: torch.use_deterministic_algorithms(True), "deterministic algorithms"),
        (lambda: torch.manual_seed(99), "torch's seed changed: 99, it was"),
        (lambda: random.random(), "the state of random changed"),
        (lambda: np.random.rand(), "the state of numpy.random changed"),
        (lambda: os.environ.update(LEFT="1"), "the environment variables changed"),
        (
            lambda: setattr(threading, "excepthook", print),
            "the exception hooks changed",
        ),
    ],
)
def test_a_changed_setting_is_told_and_given_back(watch, change, told):
    change()
    watch.look(12)
    ((line, text),) = watch.complaints()
    assert line == 12
    assert text.startswith(f"left {told}")
    assert "0x" not in text


def test_a_start_method_is_told_and_given_back(watch):
    before = multiprocessing.get_start_method(allow_none=True)
    other = "fork" if before == "spawn" else "spawn"
    multiprocessing.set_start_method(other, force=True)
    watch.look(5)
    ((_, text),) = watch.complaints()
    assert text == f"left the start method changed: {other}, it was {before}"
    watch.clean()
    assert multiprocessing.get_start_method(allow_none=True) == before


def test_a_setting_that_a_page_gives_back_is_not_told(watch):
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    watch.look(3)
    torch.set_num_threads(before)
    watch.look(9)
    assert watch.complaints() == []


def test_the_first_seed_is_the_page_s_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    watch = Watch(tmp_path)
    watch.look(1)
    torch.manual_seed(41)
    torch.rand(3)
    watch.look(2)
    torch.manual_seed(41)
    watch.look(3)
    assert watch.complaints() == []
    torch.manual_seed(42)
    watch.look(4)
    assert watch.complaints() == [(4, "left torch's seed changed: 42, it was 41")]
    watch.clean()


def test_numbers_from_numpy_are_the_page_s_own_if_its_first_cell_seeds(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    watch = Watch(tmp_path)
    np.random.seed(0)
    watch.look(1)
    np.random.rand()
    watch.look(5)
    assert watch.complaints() == []
    random.random()
    watch.look(9)
    assert watch.complaints() == [(9, "left the state of random changed")]
    watch.clean()


def test_the_first_cell_may_choose_the_number_of_threads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = torch.get_num_threads()
    watch = Watch(tmp_path)
    torch.set_num_threads(before + 1)
    watch.look(1)
    assert watch.complaints() == []
    torch.set_num_threads(before + 2)
    watch.look(5)
    told = f"left the thread count changed: {before + 2}, it was {before + 1}"
    assert watch.complaints() == [(5, told)]
    watch.clean()
    assert torch.get_num_threads() == before


def test_another_working_folder_is_told_at_its_cell(watch, monkeypatch):
    monkeypatch.chdir("/")
    watch.look(7)
    assert watch.complaints() == [(7, "left its working folder")]


def test_a_child_is_named_by_its_cell_and_ended(watch):
    child = subprocess.Popen(SLEEP)
    watch.look(20)
    watch.look(30)
    ((line, text),) = watch.complaints()
    assert line == 20
    assert text.startswith("left a child process behind: python")
    assert text.endswith("-c import time; time.sleep(600)")
    watch.clean()
    assert child.wait(timeout=10) != 0


def test_a_child_that_was_there_before_the_page_lives_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    children = [subprocess.Popen(SLEEP, cwd="/")]
    try:
        watch = Watch(tmp_path)
        children.append(subprocess.Popen(SLEEP))
        watch.look(3)
        watch.clean()
        assert children[1].wait(timeout=10) != 0
        with pytest.raises(subprocess.TimeoutExpired):
            children[0].wait(timeout=1)  # a kill takes a moment to arrive
        assert watch.complaints() == []
    finally:  # or a failure would leave them, for ten minutes
        for child in children:
            child.kill()
            child.wait()


def test_a_process_that_left_the_family_is_found_by_its_folder(watch, tmp_path):
    code = "import subprocess, sys; subprocess.Popen([sys.executable, *sys.argv[1:]])"
    command = [sys.executable, "-c", code, *SLEEP[1:]]
    subprocess.run(command, cwd=tmp_path, start_new_session=True, check=True)
    watch.look(2)
    assert "left a child process behind" in watch.complaints()[0][1]
    watch.clean()
    deadline = time.monotonic() + 10  # a kill takes a moment to arrive
    while in_folder(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert in_folder(tmp_path) == []


def in_folder(folder: Path) -> list[psutil.Process]:
    """Processes whose working folder it is."""
    found = psutil.process_iter(["cwd"])
    inside = [process for process in found if process.info["cwd"] == str(folder)]
    return [process for process in inside if process.pid != os.getpid()]


def test_a_child_that_is_about_to_end_is_waited_for(watch, monkeypatch):
    monkeypatch.setattr(left_behind, "GRACE", 30.0)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.2)"])
    watch.look(2)
    assert watch.complaints() == []
    child.wait()


def test_a_thread_is_named(watch):
    release = threading.Event()
    thread = threading.Thread(target=release.wait, args=[60], name="waits")
    thread.start()
    watch.look(8)
    assert watch.complaints() == [(8, "left a thread behind: waits")]
    release.set()
    thread.join()


def test_a_port_is_named_without_its_number(watch):
    with socket.create_server(("127.0.0.1", 0)):
        watch.look(8)
        assert watch.complaints() == [(8, "left a listening port behind: 127.0.0.1")]


def test_files_are_named(watch, tmp_path):
    (tmp_path / "left.txt").write_text("x")
    (tmp_path / "folder").mkdir()
    watch.look(6)
    assert watch.complaints() == [
        (6, "left a file in the working folder behind: folder"),
        (6, "left a file in the working folder behind: left.txt"),
    ]


@pytest.mark.parametrize(
    ("message", "code", "line"),
    [
        ("left the thread count changed", "x = 1\ntorch.set_num_threads(1)\n", 11),
        ("left a thread behind: t", "t = Thread()\nx = 1\nt.start()\nx = 2", 12),
        ("left the default dtype changed", "x = 1\ny = 2", 10),
    ],
)
def test_the_line_to_blame_is_looked_for_in_the_cell(message, code, line):
    assert place(code, 10, message) == line


@pytest.mark.filterwarnings("ignore")  # what libraries say at import is theirs
def test_open_collectors_are_found_until_they_are_shut_down():
    from torchrl.collectors import Collector
    from torchrl.envs import GymEnv
    from torchrl.modules import RandomPolicy

    env = GymEnv("CartPole-v1")
    collector = Collector(env, RandomPolicy(env.action_spec), frames_per_batch=10)
    assert left_behind.open_collectors() == [collector]
    collector.shutdown()
    assert left_behind.open_collectors() == []
