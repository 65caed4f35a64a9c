"""What `make newest` installs: the requirements, less the pins of four packages."""

from __future__ import annotations

import newest
import pytest
from conftest import ROOT


def test_only_the_pages_own_packages_lose_their_pins(tmp_path):
    assert newest.main([], folder=tmp_path / "new") == 0
    old = (ROOT / "requirements.txt").read_text().splitlines()
    new = (tmp_path / "new" / "requirements.txt").read_text().splitlines()
    changed = [line.split("#")[0].strip() for line in new if line not in old]
    assert changed == ["torch", "torchrl", "tensordict", "gymnasium[classic-control]"]
    assert len(new) == len(old)


def test_nightly_builds_count_for_those_packages_alone(tmp_path):
    assert newest.main(["--nightly"], folder=tmp_path) == 0
    text = (tmp_path / "requirements.txt").read_text()
    assert text.count(">=0.dev0") == len(newest.FREED)
    assert "\ngymnasium[classic-control]>=0.dev0 " in text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (None, "newest: [Errno 2] No such file or directory"),
        ("torch>=2\n", "newest: requirements.txt pins torch 0 times, not once"),
        ("torch==2\ntorch==3\n", "newest: requirements.txt pins torch 2 times, not on"),
    ],
)
def test_requirements_that_cannot_be_read_are_one_line(tmp_path, capsys, text, line):
    if text:
        (tmp_path / "requirements.txt").write_text(text)
    assert newest.main([], root=tmp_path, folder=tmp_path / "new") == 2
    assert capsys.readouterr().err.startswith(line)
    assert not (tmp_path / "new").exists()
